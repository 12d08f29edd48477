// base/status.h — the outcome of every call that can fail, as a value.
//
// Errors:  a Status holds a code (which branch the caller takes), a stable reason slug (what a
//          program sees on the wire, such as "lease_lost"), a message for people that names the
//          object and says what to do, and details, so that no program has to read the message.
// Threads: a value; share copies.
// Cost:    one word; an OK status is a null pointer, any other one allocation. Code that leads to
//          an error is cold: the compiler places it apart from the hot path.
// Source:  names and meanings follow Abseil's canonical codes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace delayd {

enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument,     // the request is wrong in any state
  kNotFound,            // no such job, key, queue or file
  kAlreadyExists,       // the key belongs to a live job with other content
  kFailedPrecondition,  // right request, wrong state: leased, stale lease, newer schema
  kResourceExhausted,   // a limit was met; the message says which
  kUnavailable,         // cannot be served now, safe to retry
  kUnknown,             // the outcome is not known: it may have happened, once
  kDataLoss,            // stored bytes are damaged or gone
  kPermissionDenied,
  kDeadlineExceeded,
  kInternal,  // our bug
};

// "not_found" for kNotFound, and so on: the default reason slug of a code.
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;

  // `reason` must be a string literal or outlive the status; empty takes the code's own name.
  [[gnu::cold]] Status(StatusCode code, std::string message, std::string_view reason = {});

  Status(Status&&) = default;
  Status& operator=(Status&&) = default;
  ~Status() = default;

  Status(const Status& other) : failure_(other.ok() ? nullptr : Copy(*other.failure_)) {}

  Status& operator=(const Status& other) {
    failure_ = other.ok() ? nullptr : Copy(*other.failure_);
    return *this;
  }

  bool ok() const { return failure_ == nullptr; }

  StatusCode code() const { return ok() ? StatusCode::kOk : failure_->code; }

  std::string_view reason() const { return ok() ? std::string_view() : failure_->reason; }

  const std::string& message() const;

  // Further named members of the problem report, such as when a finished job ended.
  using Details = std::vector<std::pair<std::string, std::string>>;
  const Details& details() const;
  void AddDetail(std::string_view name, std::string value);

  // The same status with another message.
  Status WithMessage(std::string message) const;
  // The same status with `context` and ": " before its message.
  Status WithContext(std::string_view context) const;
  // The same status with `more` after its message: "; what to do", " (how far it came)".
  Status Followed(std::string_view more) const;

 private:
  struct Failure {
    StatusCode code;
    std::string_view reason;
    std::string message;
    Details details;
  };

  struct Free {
    [[gnu::cold]] void operator()(const Failure* failure) const;
  };

  using FailurePtr = std::unique_ptr<Failure, Free>;

  [[gnu::cold]] static FailurePtr Copy(const Failure& failure);

  FailurePtr failure_;
};

inline Status OkStatus() {
  return {};
}

[[gnu::cold]] Status InvalidArgument(std::string message, std::string_view reason = {});
[[gnu::cold]] Status NotFound(std::string message, std::string_view reason = {});
[[gnu::cold]] Status AlreadyExists(std::string message, std::string_view reason = {});
[[gnu::cold]] Status FailedPrecondition(std::string message, std::string_view reason = {});
[[gnu::cold]] Status ResourceExhausted(std::string message, std::string_view reason = {});
[[gnu::cold]] Status Unavailable(std::string message, std::string_view reason = {});
[[gnu::cold]] Status Unknown(std::string message, std::string_view reason = {});
[[gnu::cold]] Status DataLoss(std::string message, std::string_view reason = {});
[[gnu::cold]] Status PermissionDenied(std::string message, std::string_view reason = {});
[[gnu::cold]] Status DeadlineExceeded(std::string message, std::string_view reason = {});
[[gnu::cold]] Status Internal(std::string message, std::string_view reason = {});

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    DELAYD_CHECK(!status_.ok());
  }

  StatusOr(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }

  const Status& status() const { return status_; }

  T& value() & {
    DELAYD_CHECK(value_.has_value());
    return *value_;
  }

  const T& value() const& {
    DELAYD_CHECK(value_.has_value());
    return *value_;
  }

  T&& value() && {
    DELAYD_CHECK(value_.has_value());
    return std::move(*value_);
  }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(*this).value(); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace delayd

#define DELAYD_RETURN_IF_ERROR(expression)          \
  do {                                              \
    ::delayd::Status delayd_status_ = (expression); \
    if (!delayd_status_.ok()) [[unlikely]] {        \
      return delayd_status_;                        \
    }                                               \
  } while (false)

#define DELAYD_CONCAT_INNER(a, b) a##b
#define DELAYD_CONCAT(a, b) DELAYD_CONCAT_INNER(a, b)

// DELAYD_ASSIGN_OR_RETURN(auto job, store.Get(id));
#define DELAYD_ASSIGN_OR_RETURN(declaration, expression) \
  DELAYD_ASSIGN_OR_RETURN_IMPL(DELAYD_CONCAT(delayd_result_, __LINE__), declaration, expression)
#define DELAYD_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                         \
  if (!result.ok()) [[unlikely]] {                                    \
    return result.status();                                           \
  }                                                                   \
  declaration = std::move(result).value()
