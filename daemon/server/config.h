// Configuration of the daemon as one value: what the ledger is told, plus sockets, device, log and
// limits of the edges. Read from YAML (memdecayd) or from key=value words (scenarios, Lab.Reload);
// both go through one table of keys (config_table.h), so a key exists in both or in neither.
// Thread: values and pure functions, any thread. Invariant: a Config that resolve() returned holds
// no contradiction; unknown, mistyped and contradictory keys are refused with key and line.
// Not here: gRPC, sockets, reading the file (main.cc), what can change on reload (ledger).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ledger/options.h"
#include "proto/contract/clock.h"

namespace memdecay::server {

// Who belongs to a tenant: same index as Config::ledger.tenants. Both set: both must match.
struct TenantIdentity {
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
};

struct SocketConfig {
  std::string directory;             // empty: $XDG_RUNTIME_DIR/memdecay, else /run/memdecay
  std::string group;                 // name or number; empty: the daemon's own
  uint32_t mode = 0660;              // of the socket files
  std::vector<uint32_t> admin_uids;  // besides the daemon's own uid
};

struct LogConfig {
  std::string level = "info";
  bool json = false;
};

struct EdgeLimits {
  uint32_t connections = 256;    // handle sockets open at once
  uint32_t stream_queue = 4096;  // messages waiting for one engine to read them
  uint32_t replay = 4096;        // answers kept for an engine that reconnects
  uint32_t stream_window = 256;  // requests of one engine without an answer yet
  Duration silent = Duration::from_milliseconds(10'000);
  Duration drain = Duration::from_milliseconds(5'000);
  Duration hello = Duration::from_milliseconds(5'000);  // from connect to a whole Hello
};

struct Config {
  std::string device_kind = "host";
  uint64_t device_bytes = 0;  // 0: counted in pages
  uint64_t page_bytes = 0;    // 0: whatever layouts bring; needed with device.bytes
  ledger::Options ledger;
  std::vector<TenantIdentity> identities = {TenantIdentity{}};
  SocketConfig socket;
  std::string metrics_listen = "127.0.0.1:9464";  // "none": no endpoint; port 0: any free one
  LogConfig log;
  EdgeLimits limits;

  // The policy's layers (policy/layers.h): a preset, the keys above it, each tenant's above those.
  std::string preset;  // its name or file; empty: none
  policy::PolicyOptions preset_policy;
  std::vector<policy::OptionWord> policy_words;
  std::vector<std::vector<policy::OptionWord>> tenant_words = {{}};

  std::map<std::string, int> lines;   // key → line of the file it came from
  std::vector<std::string> warnings;  // what resolve() found odd and let pass
};

// Reads a preset file that the configuration names.
using FileReader = absl::FunctionRef<absl::StatusOr<std::string>(const std::string& path)>;
// Only the presets that are built in.
absl::StatusOr<std::string> no_files(const std::string& path);

// default, paper and practice: the files of daemon/policy/presets as they were built in.
const policy::Presets& built_in_presets();

// The file's text. invalid_argument (unsupported for disk.* and remote.*): `asked` names key and
// line, `there` what is wrong, `todo` what would be right. The result is resolved.
absl::StatusOr<Config> parse_yaml(std::string_view text, FileReader read = no_files);

// One key=value word on top of a configuration; call resolve() after the last one. Besides the keys
// of the file it knows the scenarios' short forms: device (device.pages), host (host.pages), page
// (page_bytes), policy (policy.name). policy.preset drops what was said of the policy before.
absl::Status apply_setting(Config& config, std::string_view key, std::string_view value);
// "device=8" split at the first '='.
absl::Status apply_setting_word(Config& config, std::string_view word);

// Puts the policy's layers together and checks what no single key can: order of tiers and
// watermarks, reservations, the policy's own constants; turns device.bytes into pages. Fills
// `warnings`.
//
// A pool that shrinks while the daemon runs may be smaller than its reservations: the ledger scales
// them. At the start that is a mistake.
enum class Occasion : uint8_t { kStart, kReload };
absl::StatusOr<Config> resolve(Config config, Occasion occasion = Occasion::kStart);

// The effective configuration as YAML; parse_yaml() of it gives the same configuration.
std::string print_yaml(const Config& config);
// deploy/memdecayd.example.yaml: every key with its default and what it means.
std::string example_yaml();

}  // namespace memdecay::server
