// wheel/segmented_array.h — an array that grows at its end without moving its elements.
//
// What:    a list of segments, each twice as large as the one before it. A vector that doubles
//          would move millions of elements at once, while everybody waits.
// Errors:  an index beyond the end is the caller's mistake.
// Threads: one owner.
// Cost:    O(1), and no element is ever moved. One empty segment is kept, so that going back and
//          forth across a segment boundary costs no allocation. The unused part of the last
//          segments is never touched.
// Source:  Brodnik, Carlsson, Demaine, Munro, Sedgewick, "Resizable arrays in optimal time and
//         space", 1999, of which this is the simplest form.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace delayd::wheel {

template <typename T>
class SegmentedArray {
 public:
  T& operator[](size_t index) {
    const Place place(index);
    return segments_[place.segment][place.offset];
  }

  const T& operator[](size_t index) const {
    const Place place(index);
    return segments_[place.segment][place.offset];
  }

  T& front() { return segments_.front().front(); }

  const T& front() const { return segments_.front().front(); }

  T& back() { return (*this)[size_ - 1]; }

  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    const size_t segment = Place(size_).segment;
    if (segment == segments_.size()) {
      segments_.emplace_back().reserve(kFirst << segment);
    }
    segments_[segment].push_back(std::move(value));
    ++size_;
  }

  void pop_back() {
    --size_;
    const Place place(size_);
    segments_[place.segment].pop_back();
    if (place.offset == 0) {
      segments_.resize(place.segment + 1);
    }
  }

  void Truncate(size_t size) {
    while (size_ > size) {
      pop_back();
    }
  }

  void clear() {
    if (!segments_.empty()) {
      segments_.resize(1);
      segments_.front().clear();
    }
    size_ = 0;
  }

  size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

  // The number of elements that fit without a new segment.
  size_t capacity() const { return (kFirst << segments_.size()) - kFirst; }

 private:
  // There may be 100,000 arrays of one element.
  static constexpr unsigned kFirstBits = 1;
  static constexpr size_t kFirst = size_t{1} << kFirstBits;

  // After adding kFirst, the highest bit of an index determines its segment.
  struct Place {
    explicit Place(size_t index) {
      const size_t number = index + kFirst;
      // `| 1` tells the compiler that the argument is not zero.
      const auto highest = static_cast<unsigned>(std::bit_width(number | 1)) - 1;
      segment = highest - kFirstBits;
      offset = number - (kFirst << segment);
    }

    size_t segment;
    size_t offset;
  };

  // The last segment may be empty; all segments before the one with the last element are full.
  std::vector<std::vector<T>> segments_;
  size_t size_ = 0;
};

}  // namespace delayd::wheel
