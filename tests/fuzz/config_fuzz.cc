// The text of a configuration file, and every setting as a flag or a variable of the environment.
// Errors name their place; without one every value is within its limits.
#include <string>
#include <string_view>

#include "base/size_text.h"
#include "daemon/config.h"
#include "daemon/config_values.h"
#include "tests/fuzz/require.h"

namespace {

using namespace delayd;
using fuzz::Require;

constexpr std::string_view kName = "delayd.yaml";

void RequireSound(const Config& config) {
  Require(!config.data_dir.empty(), "there is a place for the data");
  Require(config.limits.connections > 0, "a client may come");
  Require(config.limits.payload <= config.limits.request_body, "a payload fits into its request");
  Require(config.defaults.backoff.factor >= 1, "a wait grows");
  Require(config.defaults.backoff.initial <= config.defaults.backoff.max, "the first is least");
  Require(config.memory.horizon > Millis(0), "something is near");
  const auto loopback = [](const std::string& listen) {
    return listen.empty() || IsLoopback(*ParseListenAddress(listen));
  };
  Require(loopback(config.beanstalk.listen), "a protocol without login stays on this machine");
  Require(loopback(config.api.listen) || (config.tls.on() && !config.access.token_file.empty()),
          "beyond this machine there are TLS and tokens");
}

void TryFile(const std::string& yaml) {
  ConfigReader reader;
  reader.ReadFile(std::string(kName), yaml);
  const size_t in_file = reader.errors().size();
  for (const std::string& error : reader.errors()) {
    Require(error.starts_with(kName), "an error names the file");
  }
  reader.Finish();
  if (in_file == 0 && reader.errors().empty()) {
    RequireSound(reader.config());
  }
}

void TrySettings(std::string_view text) {
  for (const ConfigKey& key : ConfigKeys()) {
    ConfigReader reader;
    reader.Set(key, text, EnvironmentName(key.name));
    reader.Finish();
    if (reader.errors().empty()) {
      RequireSound(reader.config());
    }
  }
  const StatusOr<uint64_t> size = ParseSize(text, 0, uint64_t{1} << 50);
  if (size.ok()) {
    Require(*ParseSize(FormatSize(*size), 0, uint64_t{1} << 50) == *size, FormatSize(*size));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (size <= 32) {
    TrySettings(text);
  }
  TryFile(text);
  return 0;
}
