// From text to configuration (config.h).
// yaml-cpp throws; nothing else here does, and nothing leaves this file as an exception.
#include "daemon/server/config.h"

#include <yaml-cpp/yaml.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/values.h"
#include "daemon/policy/keys.h"
#include "daemon/server/config_refusal.h"
#include "daemon/server/config_table.h"
#include "daemon/server/preset_texts.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::server {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxTenants = 256;

absl::Status set_tenant_field(Config& config, size_t tenant, std::string_view name,
                              std::string_view value) {
  ledger::TenantOptions& options = config.ledger.tenants[tenant];
  TenantIdentity& identity = config.identities[tenant];
  const base::Bounds pages{.least = 0, .most = UINT32_MAX};
  const auto put = [](auto& target, const auto& parsed) -> absl::Status {
    if (!parsed.ok()) return parsed.status();
    if constexpr (requires { target.emplace(0u); }) {
      target.emplace(static_cast<uint32_t>(*parsed));
    } else {
      target = static_cast<std::decay_t<decltype(target)>>(*parsed);
    }
    return absl::OkStatus();
  };
  if (name == "name") {
    if (value.empty()) return absl::InvalidArgumentError("a tenant needs a name");
    options.name = std::string(value);
    return absl::OkStatus();
  }
  if (name == "uid") return put(identity.uid, base::parse_count(value, pages));
  if (name == "gid") return put(identity.gid, base::parse_count(value, pages));
  if (name == "reservation") return put(options.reservation_pages, base::parse_count(value, pages));
  if (name == "limit") return put(options.limit_pages, base::parse_count(value, pages));
  if (name == "priority") return put(options.priority, base::parse_signed(value));
  return absl::NotFoundError("name, uid, gid, reservation, limit, priority, policy");
}

absl::Status not_yet(const Config& config, std::string_view key) {
  return make_error(ErrorCode::kUnsupported, place(config, key), "not in this build yet",
                    "leave it out: pages go to the host tier only");
}

absl::Status load_preset(Config& config, std::string_view name, FileReader read);

// Sets one key whose line is known already.
absl::Status set_key(Config& config, std::string_view key, std::string_view value) {
  if (absl::StartsWith(as_absl(key), "disk") || absl::StartsWith(as_absl(key), "remote")) {
    return not_yet(config, key);
  }
  absl::Status status;
  constexpr std::string_view kPolicy = "policy.";
  const Setting* const setting = find_setting(key);
  if (setting != nullptr) {
    status = set_field(*setting, config, value);
  } else if (key == "policy.preset") {
    return load_preset(config, value, no_files);
  } else if (absl::StartsWith(as_absl(key), as_absl(kPolicy))) {
    status = policy::set_option(config.ledger.policy, key.substr(kPolicy.size()), value);
  } else {
    status = absl::NotFoundError("a key of deploy/memdecayd.example.yaml");
  }
  if (status.ok() && absl::StartsWith(as_absl(key), as_absl(kPolicy))) {
    config.policy_words.emplace_back(key.substr(kPolicy.size()), value);
  }
  if (status.ok()) return status;
  const std::string said(status.message());
  if (absl::IsNotFound(status)) {
    return refuse(config, key, "unknown key", absl::StrCat("write ", said));
  }
  return refuse(
      config, key, said,
      setting == nullptr ? "see deploy/memdecayd.example.yaml" : std::string(setting->meaning));
}

// Walks a YAML tree and sets what it finds.
class Loader {
 public:
  explicit Loader(Config config, FileReader read) : config_(std::move(config)), read_(read) {}

  // The keys alone, whatever they make together.
  absl::StatusOr<Config> lay_over(const YAML::Node& root) {
    if (!root.IsMap()) {
      return make_error(ErrorCode::kInvalidArgument, "preset", "is no list of keys",
                        "write KEY: VALUE lines");
    }
    if (absl::Status status = walk(root, ""); !status.ok()) return status;
    return std::move(config_);
  }

  absl::StatusOr<Config> load(const YAML::Node& root) {
    if (root.IsNull()) return resolve(std::move(config_));
    if (!root.IsMap()) {
      return make_error(ErrorCode::kInvalidArgument, "configuration", "is no list of keys",
                        "write KEY: VALUE lines");
    }
    absl::Status status = preset(root);
    if (status.ok()) status = walk(root, "");
    if (!status.ok()) return status;
    return resolve(std::move(config_));
  }

 private:
  // It lies below all other keys, wherever it stands.
  absl::Status preset(const YAML::Node& root) {
    std::optional<std::string> name = scalar_at(root, "policy.preset");
    for (const auto& item : root) {
      if (item.first.IsScalar() && item.first.Scalar() == "policy" && item.second.IsMap()) {
        if (!name.has_value()) name = scalar_at(item.second, "preset");
      }
    }
    return name.has_value() ? load_preset(config_, *name, read_) : absl::OkStatus();
  }

  static std::optional<std::string> scalar_at(const YAML::Node& map, std::string_view key) {
    for (const auto& item : map) {
      if (item.first.IsScalar() && item.first.Scalar() == key && item.second.IsScalar()) {
        return item.second.Scalar();
      }
    }
    return std::nullopt;
  }

  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  absl::Status remember(const std::string& key, int line) {
    const auto [at, fresh] = config_.lines.emplace(key, line);
    if (fresh) return absl::OkStatus();
    return refuse(config_, key, absl::StrCat("is given again in line ", line), "leave one out");
  }

  absl::Status walk(const YAML::Node& map, const std::string& prefix) {
    for (const auto& item : map) {
      if (!item.first.IsScalar()) {
        return make_error(ErrorCode::kInvalidArgument, absl::StrCat("line ", line_of(item.first)),
                          "a key must be a word", "");
      }
      const std::string key = prefix + item.first.Scalar();
      const YAML::Node& value = item.second;
      absl::Status status;
      if (key == "tenants") {
        status = tenants(item.first, value);
      } else if (key == "policy.preset" && value.IsScalar()) {
        status = remember(key, line_of(item.first));  // preset() has read it
      } else if (value.IsMap()) {
        status = walk(value, key + ".");
      } else {
        status = scalar(key, line_of(item.first), value);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status scalar(const std::string& key, int line, const YAML::Node& value) {
    if (absl::Status status = remember(key, line); !status.ok()) return status;
    const absl::StatusOr<std::string> text = text_of(key, value);
    if (!text.ok()) return text.status();
    return set_key(config_, key, *text);
  }

  absl::StatusOr<std::string> text_of(const std::string& key, const YAML::Node& value) {
    if (value.IsScalar()) return value.Scalar();
    if (value.IsSequence()) {
      std::string text = "[";
      for (const YAML::Node& part : value) {
        if (!part.IsScalar()) return refuse(config_, key, "is a list of lists", "write words");
        absl::StrAppend(&text, text.size() > 1 ? "," : "", part.Scalar());
      }
      return text + "]";
    }
    if (const Setting* const setting = find_setting(key)) {
      return refuse(config_, key, "has no value", std::string(setting->meaning));
    }
    return std::string();
  }

  absl::Status tenants(const YAML::Node& name, const YAML::Node& list) {
    if (absl::Status status = remember("tenants", line_of(name)); !status.ok()) return status;
    if (!list.IsSequence() || list.size() == 0 || list.size() > kMaxTenants) {
      return refuse(config_, "tenants", "is no list of 1 to 256 tenants", "write \"- name: …\"");
    }
    config_.ledger.tenants.assign(list.size(), ledger::TenantOptions{});
    config_.identities.assign(list.size(), TenantIdentity{});
    config_.tenant_words.assign(list.size(), {});
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].IsMap()) return refuse(config_, "tenants", "has an entry that is no map", "");
      if (absl::Status status = tenant(list[i], i, ""); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Its fields; `prefix` is "policy." and so on inside a map.
  absl::Status tenant(const YAML::Node& map, size_t i, const std::string& prefix) {
    for (const auto& item : map) {
      const std::string field = prefix + (item.first.IsScalar() ? item.first.Scalar() : "?");
      const std::string key = absl::StrCat("tenants[", i, "].", field);
      absl::Status status;
      if (item.second.IsMap()) {
        status = tenant(item.second, i, field + ".");
      } else {
        status = remember(key, line_of(item.first));
        const auto text = status.ok() ? text_of(key, item.second) : status;
        status = text.ok() ? set_tenant(key, i, field, *text) : text.status();
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status set_tenant(const std::string& key, size_t i, const std::string& field,
                          const std::string& value) {
    if (absl::StartsWith(field, "policy.")) {  // resolve() puts the layers together
      config_.tenant_words[i].emplace_back(field.substr(sizeof("policy.") - 1), value);
      return absl::OkStatus();
    }
    const absl::Status status = set_tenant_field(config_, i, field, value);
    if (status.ok()) return status;
    const std::string said(status.message());
    if (absl::IsNotFound(status)) {
      return refuse(config_, key, "unknown key", absl::StrCat("write one of ", said));
    }
    return refuse(config_, key, said, "see deploy/memdecayd.example.yaml");
  }

  Config config_;
  FileReader read_;
};

// A YAML text as a tree; its own exceptions become errors.
template <typename Use>
auto with_tree(std::string_view text, Use use) -> decltype(use(YAML::Node())) {
  if (text.size() > kMaxFileBytes) {
    return make_error(ErrorCode::kInvalidArgument, "configuration", "is larger than 1 MiB", "");
  }
  try {
    return use(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("configuration (line ", error.mark.line + 1, ")"), error.msg,
                      "write it as deploy/memdecayd.example.yaml is written");
  }
}

// What a preset may speak about: where victims are sought, and what a page is worth.
absl::Status check_preset_keys(const Config& config, std::string_view name) {
  for (const auto& [key, line] : config.lines) {
    const bool of_policy = absl::StartsWith(key, "policy.") && key != "policy.preset";
    if (of_policy || absl::StartsWith(key, "watermark.")) continue;
    return refuse(config, key, absl::StrCat("stands in preset ", as_absl(name)),
                  "a preset holds policy.* and watermark.* only");
  }
  return absl::OkStatus();
}

absl::Status load_preset(Config& config, std::string_view name, FileReader read) {
  absl::StatusOr<std::string> text = built_in_preset(name);
  if (!text.ok()) text = read(std::string(name));
  if (!text.ok()) return text.status();
  Config below = config;
  below.lines.clear();
  below.policy_words.clear();
  below.ledger.policy = policy::PolicyOptions{.page_tokens = config.ledger.policy.page_tokens,
                                              .grace = config.ledger.policy.grace};
  absl::StatusOr<Config> laid = with_tree(*text, [&](const YAML::Node& root) {
    return Loader(std::move(below), no_files).lay_over(root);
  });
  absl::Status status = laid.ok() ? check_preset_keys(*laid, name) : laid.status();
  if (!status.ok()) return status;
  laid->preset = std::string(name);
  laid->preset_policy = laid->ledger.policy;
  laid->policy_words.clear();
  laid->lines = std::move(config.lines);
  config = *std::move(laid);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> no_files(const std::string& path) {
  return make_error(ErrorCode::kInvalidArgument, "policy.preset",
                    absl::StrCat("there is no preset \"", path, "\""),
                    "write default, paper or practice; a file only in the daemon's own file");
}

const policy::Presets& built_in_presets() {
  static const policy::Presets* const kPresets = [] {
    auto* const presets = new policy::Presets;
    for (const char* name : {"default", "paper", "practice"}) {
      Config config;
      const absl::Status status = load_preset(config, name, no_files);
      MEMDECAY_CHECK(status.ok());  // tests/unit/daemon/server reads them
      presets->emplace(name, config.preset_policy);
    }
    return presets;
  }();
  return *kPresets;
}

absl::StatusOr<Config> parse_yaml(std::string_view text, FileReader read) {
  return with_tree(text, [&](const YAML::Node& root) { return Loader(Config{}, read).load(root); });
}

absl::Status apply_setting(Config& config, std::string_view key, std::string_view value) {
  std::string_view whole = key;
  if (key == "device") whole = "device.pages";
  if (key == "host") whole = "host.pages";
  if (key == "page") whole = "page_bytes";
  if (key == "policy") whole = "policy.name";
  config.lines[std::string(whole)] = 0;
  return set_key(config, whole, value);
}

absl::Status apply_setting_word(Config& config, std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    return make_error(ErrorCode::kInvalidArgument, std::string(word), "is no key=value", "");
  }
  return apply_setting(config, word.substr(0, equals), word.substr(equals + 1));
}

}  // namespace memdecay::server
