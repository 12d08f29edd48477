#include "base/status.h"

namespace delayd {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kAlreadyExists:
      return "already_exists";
    case StatusCode::kFailedPrecondition:
      return "failed_precondition";
    case StatusCode::kResourceExhausted:
      return "resource_exhausted";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kUnknown:
      return "outcome_unknown";
    case StatusCode::kDataLoss:
      return "data_loss";
    case StatusCode::kPermissionDenied:
      return "permission_denied";
    case StatusCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case StatusCode::kInternal:
      return "internal";
  }
  DELAYD_CHECK(false);
}

Status::Status(StatusCode code, std::string message, std::string_view reason)
    : failure_(new Failure{.code = code,
                           .reason = reason.empty() ? StatusCodeName(code) : reason,
                           .message = std::move(message),
                           .details = {}}) {
  DELAYD_CHECK(code != StatusCode::kOk);
}

void Status::Free::operator()(const Failure* failure) const {
  delete failure;
}

Status::FailurePtr Status::Copy(const Failure& failure) {
  return FailurePtr(new Failure(failure));
}

const std::string& Status::message() const {
  static const std::string kNone;
  return ok() ? kNone : failure_->message;
}

const Status::Details& Status::details() const {
  static const Details kNone;
  return ok() ? kNone : failure_->details;
}

void Status::AddDetail(std::string_view name, std::string value) {
  DELAYD_CHECK(!ok());
  failure_->details.emplace_back(name, std::move(value));
}

Status Status::WithMessage(std::string message) const {
  Status status = *this;
  if (!ok()) {
    status.failure_->message = std::move(message);
  }
  return status;
}

Status Status::WithContext(std::string_view context) const {
  return ok() ? Status() : WithMessage(std::string(context) + ": " + message());
}

Status Status::Followed(std::string_view more) const {
  return ok() ? Status() : WithMessage(message() + std::string(more));
}

Status InvalidArgument(std::string message, std::string_view reason) {
  return {StatusCode::kInvalidArgument, std::move(message), reason};
}

Status NotFound(std::string message, std::string_view reason) {
  return {StatusCode::kNotFound, std::move(message), reason};
}

Status AlreadyExists(std::string message, std::string_view reason) {
  return {StatusCode::kAlreadyExists, std::move(message), reason};
}

Status FailedPrecondition(std::string message, std::string_view reason) {
  return {StatusCode::kFailedPrecondition, std::move(message), reason};
}

Status ResourceExhausted(std::string message, std::string_view reason) {
  return {StatusCode::kResourceExhausted, std::move(message), reason};
}

Status Unavailable(std::string message, std::string_view reason) {
  return {StatusCode::kUnavailable, std::move(message), reason};
}

Status Unknown(std::string message, std::string_view reason) {
  return {StatusCode::kUnknown, std::move(message), reason};
}

Status DataLoss(std::string message, std::string_view reason) {
  return {StatusCode::kDataLoss, std::move(message), reason};
}

Status PermissionDenied(std::string message, std::string_view reason) {
  return {StatusCode::kPermissionDenied, std::move(message), reason};
}

Status DeadlineExceeded(std::string message, std::string_view reason) {
  return {StatusCode::kDeadlineExceeded, std::move(message), reason};
}

Status Internal(std::string message, std::string_view reason) {
  return {StatusCode::kInternal, std::move(message), reason};
}

}  // namespace delayd
