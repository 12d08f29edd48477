// daemon/config.h — every setting of the daemon, and the one table of their names.
//
// What:    a setting comes from its flag, else from its environment variable, else from the file;
//          otherwise the default given here applies. The same table drives the file reader, the
//          flags and the help, so that the three cannot drift apart.
// Units:   durations as "30s" or "1h30m", sizes as "64KiB" or "512MiB"; in memory Millis and bytes.
// Errors:  all of them at once, each as "where: what is wrong; what to do", where `where` is
//          file:line:column, a flag, or an environment variable.
// Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/access.h"
#include "daemon/engine/clock_watch.h"
#include "daemon/engine/queue_settings.h"
#include "daemon/log.h"

namespace delayd {

inline constexpr std::string_view kConfigPathDefault = "/etc/delayd/delayd.yaml";

struct Config {
  std::string data_dir = "/var/lib/delayd";

  struct {
    uint64_t reserve = uint64_t{256} << 20;  // 0: off
  } storage;

  struct {
    std::string socket = "/run/delayd/delayd.sock";  // empty: off
    std::string listen;                              // "127.0.0.1:11380"; empty: off
  } api;

  // PEM files; both or neither. With them api.listen speaks TLS.
  struct {
    std::string certificate;
    std::string key;

    bool on() const { return !certificate.empty() && !key.empty(); }
  } tls;

  struct {
    std::string listen;
    std::string socket;
  } beanstalk;

  log::Options log;

  // Turns and commits that take longer are logged.
  struct {
    Millis turn{250};
    Millis commit{1000};
  } slow;

  struct {
    Millis horizon{std::chrono::minutes(10)};
    uint64_t budget = uint64_t{512} << 20;
  } memory;

  struct {
    Millis awake{0};  // 0: the processors may sleep
  } processors;

  AccessOptions access;
  engine::ClockWatchOptions clock;

  struct {
    uint32_t queues = 200;
  } metrics;

  struct {
    Millis commit_stuck{std::chrono::seconds(30)};
  } health;

  struct {
    uint64_t payload = limits::kPayloadBytesDefaultMax;
    uint64_t request_line = limits::kRequestLineBytesMax;
    uint64_t request_header = limits::kRequestHeaderBytesMax;
    uint64_t request_body = limits::kRequestBodyBytesMax;
    uint32_t connections = 1024;
    uint32_t jobs_per_user = 0;  // 0: no limit
    Millis idle{std::chrono::minutes(5)};
  } limits;

  engine::QueueSettings defaults;
  // Each is the defaults plus the file's settings for this queue. Filled by ConfigReader::Finish.
  std::map<std::string, engine::QueueSettings> queues;

  // Where each key that is set was read: "delayd.yaml:2:9", "--log-level" or "DELAYD_LOG_LEVEL".
  std::map<std::string, std::string, std::less<>> origins;

  // What an error about the value of a key begins with: "delayd.yaml:2:9: log.level", or the flag
  // or variable alone, which names the key.
  std::string PlaceOf(std::string_view key) const;

  // A daemon on the network must neither be overheard (TLS) nor serve everybody (tokens).
  bool is_fit_for_network() const { return tls.on() && !access.token_file.empty(); }
};

// An error if beanstalk clients over TCP, which cannot be identified, would be allowed nothing.
Status CheckBeanstalkOverTcp(const Config& config);

// One setting of a queue, which is also the default of all queues.
struct QueueKey {
  std::string_view default_name;  // "defaults.backoff.initial"
  std::string_view kind;
  std::string_view what;
  Status (*set)(std::string_view text, engine::QueueSettings* settings);

  // "backoff.initial"
  std::string_view name() const { return default_name.substr(sizeof "defaults." - 1); }
};

// In queue_config.cc, in the order of config/delayd.yaml.
std::span<const QueueKey> QueueKeys();
const QueueKey* FindQueueKey(std::string_view name);
// Checks settings against each other.
Status CheckQueueSettings(const engine::QueueSettings& settings);

// One row of the table of known keys.
struct ConfigKey {
  std::string_view name;  // "log.level"
  std::string_view flag;  // "--log-level", or empty: file and environment only
  std::string_view kind;  // "PATH", "DURATION", ...
  std::string_view what;
  Status (*set)(std::string_view text, Config* config);
  // Whether two configurations agree on this key; null if a reload applies the new value.
  bool (*same)(const Config& a, const Config& b) = nullptr;
  const QueueKey* of_queue = nullptr;  // set for a default of queues, whose setter is used
};

std::span<const ConfigKey> ConfigKeys();
const ConfigKey* FindConfigKey(std::string_view name);
// The keys that differ between the `running` configuration and `read`, and that only a restart
// applies, in the order of config/delayd.yaml.
std::vector<std::string_view> KeysForRestart(const Config& running, const Config& read);
inline constexpr std::string_view kEnvironmentPrefix = "DELAYD_";
// "log.level" -> "DELAYD_LOG_LEVEL".
std::string EnvironmentName(std::string_view key);

// Collects settings from their sources, the weakest first, and every error along the way.
class ConfigReader {
 public:
  // The whole file; `name` is what errors call it. Defined in config_file.cc.
  void ReadFile(const std::string& name, const std::string& yaml);
  // One setting from elsewhere; `where` is "--log-level" or "DELAYD_LOG_LEVEL".
  void Set(const ConfigKey& key, std::string_view text, std::string where);
  // One setting of one queue, in the file.
  void SetOfQueue(const std::string& queue,
                  const QueueKey& key,
                  std::string_view text,
                  std::string where);
  // Checks settings against each other. Call last.
  void Finish();

  const Config& config() const { return config_; }

  const std::vector<std::string>& errors() const { return errors_; }

 private:
  friend class ConfigFileWalk;

  struct Override {
    std::string queue;
    const QueueKey* key;
    std::string text;
    std::string where;
  };

  void FinishQueues();
  void FinishListen();
  void Fail(std::string_view where, std::string_view message);
  // Where the value of `key` came from. If it is the default, where the conflicting value of
  // `other` came from; "defaults" if both are defaults.
  std::string Where(std::string_view key, std::string_view other = {}) const;
  // Likewise for backoff.initial of one queue; empty if the queue takes both it and backoff.max
  // from the defaults.
  std::string WhereBackoff(const std::string& queue) const;

  Config config_;
  std::vector<Override> overrides_;  // in the order of the file
  std::vector<std::string> errors_;
};

}  // namespace delayd
