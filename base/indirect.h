// base/indirect.h — a value stored on the heap, so that a large and rare alternative of a variant
// takes no more room in it than a pointer.
//
// Errors:  none; a moved-from object may only be assigned to or destroyed.
// Threads: a value.
// Cost:    one allocation for each object made or copied; a move is that of a pointer.
// Source:  std::indirect of C++26.
#pragma once

#include <memory>
#include <utility>

namespace delayd {

template <typename T>
class Indirect {
 public:
  Indirect(T value)  // NOLINT(google-explicit-constructor)
      : value_(std::make_unique<T>(std::move(value))) {}

  Indirect(Indirect&&) noexcept = default;
  Indirect& operator=(Indirect&&) noexcept = default;
  ~Indirect() = default;

  Indirect(const Indirect& other) : value_(std::make_unique<T>(*other)) {}

  Indirect& operator=(const Indirect& other) {
    value_ = std::make_unique<T>(*other);
    return *this;
  }

  T& operator*() { return *value_; }

  const T& operator*() const { return *value_; }

  T* operator->() { return value_.get(); }

  const T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace delayd
