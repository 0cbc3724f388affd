// The table of configuration keys: name, type and bounds, meaning. One row makes a key known to the
// file, to key=value words, to the printed configuration and to the example.
// Thread: constant data, any thread. Not here: lists of maps (tenants: config.cc); what the
// policies' keys mean (policy/keys.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/server/config.h"

namespace memdecay::server {

// What a key holds, with the place in Config that it fills.
struct CountField {
  uint32_t& (*at)(Config&);
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
};
struct SizeField {
  uint64_t& (*at)(Config&);
};
struct MillisecondsField {
  Duration& (*at)(Config&);
};
struct SecondsField {
  Duration& (*at)(Config&);
};
struct SwitchField {
  bool& (*at)(Config&);
};
struct TextField {
  std::string& (*at)(Config&);
};
// One of a few words.
struct ChoiceField {
  std::vector<std::string_view> words;
  uint32_t (*get)(const Config&);
  void (*set)(Config&, uint32_t word);
};
// File mode, octal.
struct OctalField {
  uint32_t& (*at)(Config&);
};
struct UidsField {
  std::vector<uint32_t>& (*at)(Config&);
};
// An option of the policies (policy/keys.h), without "policy.".
struct PolicyField {
  std::string_view option;
};

using Field = std::variant<CountField, SizeField, MillisecondsField, SecondsField, SwitchField,
                           TextField, ChoiceField, OctalField, UidsField, PolicyField>;

struct Setting {
  std::string_view key;
  Field field;
  std::string_view meaning;
  // Not empty: commented out in the example, with this value.
  std::string_view example = {};
};

// In the order of the example: keys of a section ("device.") stand together.
absl::Span<const Setting> settings();
const Setting* find_setting(std::string_view key);

// invalid_argument whose message says what is wrong with the value.
absl::Status set_field(const Setting& setting, Config& config, std::string_view value);
// As it is written in YAML; empty when it is not set.
std::string get_field(const Setting& setting, const Config& config);

}  // namespace memdecay::server
