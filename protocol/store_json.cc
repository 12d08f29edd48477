#include "protocol/store_json.h"

#include <array>
#include <utility>

#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "protocol/problem.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 1> kBackupMembers = {"dir"};

std::string FindingToJson(const StoreFinding& finding) {
  JsonObjectWriter writer;
  writer.String("table", finding.table);
  writer.String("what", finding.what);
  writer.Bool("repairable", finding.repairable);
  return writer.Take();
}

std::string StringsToJson(const std::vector<std::string>& strings) {
  return JsonArray(strings, JsonString);
}

std::string IdsToJson(const std::vector<JobId>& ids) {
  return JsonArray(ids, [](JobId id) { return std::to_string(ToInt(id)); });
}

Status SetStrings(std::string_view name, const JsonValue& value, std::vector<std::string>* out) {
  return SetEach(name, value, [out](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(std::string text, JsonToString(element));
    out->push_back(std::move(text));
    return OkStatus();
  });
}

Status SetIds(std::string_view name, const JsonValue& value, std::vector<JobId>* out) {
  return SetEach(name, value, [out](const JsonValue& element) -> Status {
    DELAYD_ASSIGN_OR_RETURN(const uint64_t id, JsonToUint(element, kCountMax));
    out->push_back(JobId{id});
    return OkStatus();
  });
}

StatusOr<StoreFinding> ParseFinding(std::string_view json) {
  StoreFinding finding;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "table") {
          return SetString(name, value, &finding.table);
        }
        if (name == "what") {
          return SetString(name, value, &finding.what);
        }
        return name == "repairable" ? SetBool(name, value, &finding.repairable) : OkStatus();
      }));
  return finding;
}

std::string ProgressToJson(const StoreProgress& progress) {
  JsonObjectWriter writer;
  writer.String("table", progress.table);
  writer.Number("rows", progress.rows);
  writer.Number("rows_total", progress.rows_total);
  return writer.Take();
}

StatusOr<StoreProgress> ParseProgress(std::string_view json) {
  StoreProgress progress;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "table") {
          return SetString(name, value, &progress.table);
        }
        if (name == "rows") {
          return SetUint64(name, value, kCountMax, &progress.rows);
        }
        return name == "rows_total" ? SetUint64(name, value, kCountMax, &progress.rows_total)
                                    : OkStatus();
      }));
  return progress;
}

StatusOr<int> HttpStatusIn(std::string_view problem) {
  constexpr uint64_t kStatusMax = 599;
  uint64_t status = 500;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(problem, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "status" ? SetUint64(name, value, kStatusMax, &status) : OkStatus();
      }));
  return static_cast<int>(status);
}

}  // namespace

std::string VerifyResultToJson(const VerifyResult& result) {
  JsonObjectWriter writer;
  writer.Bool("whole", result.whole());
  writer.Number("rows", result.rows);
  writer.Number("pending", result.pending);
  writer.Number("dead", result.dead);
  writer.Number("disagreements", result.disagreements);
  writer.Number("repaired", result.repaired);
  writer.Raw("findings", JsonArray(result.findings, FindingToJson));
  writer.Raw("notes", StringsToJson(result.notes));
  writer.Number("elapsed_ms", result.elapsed_ms);
  return writer.Take();
}

StatusOr<VerifyResult> ParseVerifyResult(std::string_view json) {
  VerifyResult result;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json,
      {"whole", "disagreements"},
      [&](std::string_view name, const JsonValue& value) -> Status {
        for (const auto& [known, field] : {std::pair("rows", &result.rows),
                                           std::pair("pending", &result.pending),
                                           std::pair("dead", &result.dead),
                                           std::pair("disagreements", &result.disagreements),
                                           std::pair("repaired", &result.repaired),
                                           std::pair("elapsed_ms", &result.elapsed_ms)}) {
          if (name == known) {
            return SetUint64(name, value, kCountMax, field);
          }
        }
        if (name == "findings") {
          return SetObjects(name, value, ParseFinding, &result.findings);
        }
        return name == "notes" ? SetStrings(name, value, &result.notes) : OkStatus();
      }));
  return result;
}

std::string RecoverResultToJson(const RecoverResult& result) {
  JsonObjectWriter writer;
  writer.Bool("damaged", result.damaged);
  writer.Bool("changed", result.changed);
  writer.Bool("opens", result.opens);
  writer.Bool("unread", result.unread);
  writer.Number("still_wrong", result.still_wrong);
  writer.Number("lost_batches", result.lost_batches);
  writer.Bool("lists_complete", result.lists_complete);
  writer.Bool("lists_capped", result.lists_capped);
  writer.Raw("gone", IdsToJson(result.gone));
  writer.Raw("older", IdsToJson(result.older));
  writer.Raw("revived", IdsToJson(result.revived));
  writer.Raw("notes", StringsToJson(result.notes));
  return writer.Take();
}

StatusOr<RecoverResult> ParseRecoverResult(std::string_view json) {
  RecoverResult result;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        for (const auto& [known, field] : {std::pair("damaged", &result.damaged),
                                           std::pair("changed", &result.changed),
                                           std::pair("opens", &result.opens),
                                           std::pair("unread", &result.unread),
                                           std::pair("lists_complete", &result.lists_complete),
                                           std::pair("lists_capped", &result.lists_capped)}) {
          if (name == known) {
            return SetBool(name, value, field);
          }
        }
        for (const auto& [known, field] : {std::pair("gone", &result.gone),
                                           std::pair("older", &result.older),
                                           std::pair("revived", &result.revived)}) {
          if (name == known) {
            return SetIds(name, value, field);
          }
        }
        for (const auto& [known, field] : {std::pair("lost_batches", &result.lost_batches),
                                           std::pair("still_wrong", &result.still_wrong)}) {
          if (name == known) {
            return SetUint64(name, value, kCountMax, field);
          }
        }
        return name == "notes" ? SetStrings(name, value, &result.notes) : OkStatus();
      }));
  return result;
}

std::string BackupRequestToJson(const BackupRequest& request) {
  JsonObjectWriter writer;
  writer.String("dir", request.dir);
  return writer.Take();
}

StatusOr<BackupRequest> ParseBackupRequest(std::string_view json) {
  BackupRequest request;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "dir" ? SetString(name, value, &request.dir)
                             : UnknownMember(name, kBackupMembers);
      }));
  if (!request.dir.starts_with('/') || request.dir.find('\0') != std::string::npos) {
    return InvalidArgument(
        "member 'dir': expected an absolute path of a directory that does not exist yet, such as "
        "/var/backups/delayd-1",
        "invalid_member");
  }
  return request;
}

std::string BackupResultToJson(const BackupResult& result) {
  JsonObjectWriter writer;
  writer.String("dir", result.dir);
  writer.Number("bytes", result.bytes);
  writer.Number("elapsed_ms", result.elapsed_ms);
  return writer.Take();
}

StatusOr<BackupResult> ParseBackupResult(std::string_view json) {
  BackupResult result;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json, {"dir", "bytes"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "dir") {
          return SetString(name, value, &result.dir);
        }
        if (name == "bytes") {
          return SetUint64(name, value, kCountMax, &result.bytes);
        }
        return name == "elapsed_ms" ? SetUint64(name, value, kCountMax, &result.elapsed_ms)
                                    : OkStatus();
      }));
  return result;
}

std::string StoreLineToJson(const StoreLine& line) {
  JsonObjectWriter writer;
  if (const auto* progress = std::get_if<StoreProgress>(&line)) {
    writer.Raw("progress", ProgressToJson(*progress));
  } else if (const auto* verify = std::get_if<VerifyResult>(&line)) {
    writer.Raw("verify", VerifyResultToJson(*verify));
  } else if (const auto* recover = std::get_if<RecoverResult>(&line)) {
    writer.Raw("recover", RecoverResultToJson(*recover));
  } else {
    writer.Raw("problem", ProblemToJson(std::get<Status>(line)));
  }
  return writer.Take();
}

StatusOr<StoreLine> ParseStoreLine(std::string_view json) {
  std::optional<StoreLine> line;
  const auto take = [&line](auto parsed) -> Status {
    DELAYD_RETURN_IF_ERROR(parsed.status());
    line = std::move(parsed).value();
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "progress") {
          return take(ParseProgress(value.text));
        }
        if (name == "verify") {
          return take(ParseVerifyResult(value.text));
        }
        if (name == "recover") {
          return take(ParseRecoverResult(value.text));
        }
        if (name == "problem") {
          DELAYD_ASSIGN_OR_RETURN(const int status, HttpStatusIn(value.text));
          line = ParseProblem(status, value.text);
        }
        return OkStatus();
      }));
  if (!line.has_value()) {
    return InvalidArgument("expected one of progress, verify, recover and problem");
  }
  return *std::move(line);
}

}  // namespace delayd::protocol
