#include "storage/skip_list_memtable.h"

#include <array>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include <rocksdb/version.h>

#include "base/check.h"
#include "storage/insert_plan.h"
#include "storage/skip_list.h"

namespace delayd::storage {
namespace {

// Where this thread collects its counts.
thread_local SkipList::Count* collected = nullptr;

using rocksdb::KeyHandle;
using rocksdb::MemTableRep;

class ListIterator : public MemTableRep::Iterator {
 public:
  explicit ListIterator(const SkipList* list) : list_(list) {}

  bool Valid() const override { return at_ != nullptr; }

  const char* key() const override { return SkipList::EntryOf(at_); }

  void Next() override { at_ = SkipList::NextOfMany(at_); }

  void Prev() override { at_ = list_->LastBefore(SkipList::Target::OfEntry(list_->kind(), key())); }

  void Seek(const rocksdb::Slice& internal_key, const char* /*memtable_key*/) override {
    at_ = list_->FirstNotBefore(
        SkipList::Target::OfInternalKey(list_->kind(), internal_key.ToStringView()));
  }

  void SeekForPrev(const rocksdb::Slice& internal_key, const char* memtable_key) override {
    Seek(internal_key, memtable_key);
    if (!Valid()) {
      SeekToLast();
    } else if (SkipList::Target::OfEntry(list_->kind(), key()) !=
               SkipList::Target::OfInternalKey(list_->kind(), internal_key.ToStringView())) {
      Prev();
    }
  }

  void SeekToFirst() override { at_ = list_->First(); }  // allowed: this is how a flush begins

  void SeekToLast() override { at_ = list_->Last(); }

 private:
  const SkipList* list_;
  const SkipList::Node* at_ = nullptr;
};

// Memory for iterators whose users only call the destructor: RocksDB would take it from its arena,
// which is not in its public headers. The slots live as long as their memtable and are reused.
class IteratorPool {
 public:
  static constexpr size_t kSlotBytes = 64;

  void* Take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      return &slots_.emplace_back();
    }
    void* slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void GiveBack(void* slot) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(slot);
  }

 private:
  struct Slot {
    alignas(std::max_align_t) char bytes[kSlotBytes];
  };

  std::mutex mutex_;
  std::deque<Slot> slots_;
  std::vector<void*> free_;
};

// As the first base class it is destroyed last: only then may another iterator get the memory.
class Lease {
 public:
  Lease(IteratorPool* pool, void* slot) : pool_(pool), slot_(slot) {}

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  ~Lease() { pool_->GiveBack(slot_); }

 private:
  IteratorPool* pool_;
  void* slot_;
};

class PooledIterator final : private Lease, public ListIterator {
 public:
  static ListIterator* New(IteratorPool* pool, const SkipList* list) {
    static_assert(sizeof(PooledIterator) <= IteratorPool::kSlotBytes);
    void* slot = pool->Take();
    return new (slot) PooledIterator(pool, slot, list);
  }

 private:
  PooledIterator(IteratorPool* pool, void* slot, const SkipList* list)
      : Lease(pool, slot), ListIterator(list) {}
};

class SkipListMemtable final : public MemTableRep {
 public:
  SkipListMemtable(HeadKind kind, rocksdb::Allocator* allocator)
      : MemTableRep(allocator), list_(kind) {}

  // The handle returned by the base's Allocate is the entry.
  void Insert(KeyHandle handle) override { DELAYD_CHECK(InsertKey(handle)); }

  bool InsertKey(KeyHandle handle) override {
    if (InsertPlan* plan = InsertPlan::OfThisThread()) {
      plan->Begin();
      if (!list_.expects()) {
        std::array<KeyHead, SkipList::kExpectedMax> heads;
        list_.Expect(std::span(heads).first(plan->Next(heads)));
      }
      plan->Advance();
    }
    return list_.Insert(static_cast<const char*>(handle));
  }

  bool Contains(const char* key) const override {
    const auto target = SkipList::Target::OfEntry(list_.kind(), key);
    const SkipList::Node* at = list_.FirstNotBefore(target);
    return at != nullptr &&
           SkipList::Target::OfEntry(list_.kind(), SkipList::EntryOf(at)) == target;
  }

  // Does not include what came from the allocator.
  size_t ApproximateMemoryUsage() override { return list_.MemoryUsage(); }

  uint64_t ApproximateNumEntries(const rocksdb::Slice& from, const rocksdb::Slice& to) override {
    const SkipList::Count count =
        list_.EstimateCount(SkipList::Target::OfInternalKey(list_.kind(), from.ToStringView()),
                            SkipList::Target::OfInternalKey(list_.kind(), to.ToStringView()));
    if (collected != nullptr) {
      collected->entries += count.entries;
      collected->deletes += count.deletes;
    }
    return count.entries;
  }

  Iterator* GetIterator(rocksdb::Arena* arena) override {
    return arena == nullptr ? new ListIterator(&list_) : PooledIterator::New(&iterators_, &list_);
  }

  // Without prefixes only the base's Get asks for one. It never gives the iterator back, and needs
  // it only during that call: so in 7.8.3, 8.9.1, 9.10.0 and 9.11.2 (db/memtable.cc); to be checked
  // for any later version.
  static_assert(ROCKSDB_MAJOR < 9 || (ROCKSDB_MAJOR == 9 && ROCKSDB_MINOR <= 11));

  Iterator* GetDynamicPrefixIterator(rocksdb::Arena* arena) override {
    DELAYD_CHECK(arena == nullptr);
    alignas(ListIterator) thread_local char memory[sizeof(ListIterator)];
    return new (memory) ListIterator(&list_);
  }

 private:
  SkipList list_;
  IteratorPool iterators_;
};

class SkipListMemtables final : public rocksdb::MemTableRepFactory {
 public:
  explicit SkipListMemtables(HeadKind kind) : kind_(kind) {}

  using MemTableRepFactory::CreateMemTableRep;

  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& /*comparator*/,
                                 rocksdb::Allocator* allocator,
                                 const rocksdb::SliceTransform* /*transform*/,
                                 rocksdb::Logger* /*logger*/) override {
    return new SkipListMemtable(kind_, allocator);
  }

  const char* Name() const override { return "delayd.SkipList"; }

  bool CanHandleDuplicatedKey() const override { return true; }

 private:
  const HeadKind kind_;
};

}  // namespace

MemtableCount::MemtableCount() {
  DELAYD_CHECK(collected == nullptr);
  collected = &sum_;
}

MemtableCount::~MemtableCount() {
  collected = nullptr;
}

std::shared_ptr<rocksdb::MemTableRepFactory> NewSkipListMemtables(HeadKind kind) {
  return std::make_shared<SkipListMemtables>(kind);
}

}  // namespace delayd::storage
