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
  return absl::NotFoundError("name, uid, gid, reservation, limit, priority");
}

absl::Status not_yet(const Config& config, std::string_view key) {
  return make_error(ErrorCode::kUnsupported, place(config, key), "not in this build yet",
                    "leave it out: pages go to the host tier only");
}

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
  } else if (absl::StartsWith(as_absl(key), as_absl(kPolicy))) {
    status = policy::set_option(config.ledger.policy, key.substr(kPolicy.size()), value);
  } else {
    status = absl::NotFoundError("a key of deploy/memdecayd.example.yaml");
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
  absl::StatusOr<Config> load(const YAML::Node& root) {
    if (root.IsNull()) return resolve(std::move(config_));
    if (!root.IsMap()) {
      return make_error(ErrorCode::kInvalidArgument, "configuration", "is no list of keys",
                        "write KEY: VALUE lines");
    }
    if (absl::Status status = walk(root, ""); !status.ok()) return status;
    return resolve(std::move(config_));
  }

 private:
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
    std::string text;
    if (value.IsScalar()) {
      text = value.Scalar();
    } else if (value.IsSequence()) {
      text = "[";
      for (const YAML::Node& part : value) {
        if (!part.IsScalar()) return refuse(config_, key, "is a list of lists", "write words");
        absl::StrAppend(&text, text.size() > 1 ? "," : "", part.Scalar());
      }
      text += "]";
    } else if (find_setting(key) != nullptr) {
      return refuse(config_, key, "has no value", std::string(find_setting(key)->meaning));
    }
    return set_key(config_, key, text);
  }

  absl::Status tenants(const YAML::Node& name, const YAML::Node& list) {
    if (absl::Status status = remember("tenants", line_of(name)); !status.ok()) return status;
    if (!list.IsSequence() || list.size() == 0 || list.size() > kMaxTenants) {
      return refuse(config_, "tenants", "is no list of 1 to 256 tenants", "write \"- name: …\"");
    }
    config_.ledger.tenants.assign(list.size(), ledger::TenantOptions{});
    config_.identities.assign(list.size(), TenantIdentity{});
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].IsMap()) return refuse(config_, "tenants", "has an entry that is no map", "");
      for (const auto& item : list[i]) {
        const std::string field = item.first.IsScalar() ? item.first.Scalar() : "?";
        const std::string key = absl::StrCat("tenants[", i, "].", field);
        if (absl::Status status = remember(key, line_of(item.first)); !status.ok()) return status;
        const std::string value = item.second.IsScalar() ? item.second.Scalar() : std::string();
        const absl::Status status = set_tenant_field(config_, i, field, value);
        if (status.ok()) continue;
        const std::string said(status.message());
        if (absl::IsNotFound(status)) {
          return refuse(config_, key, "unknown key", absl::StrCat("write one of ", said));
        }
        return refuse(config_, key, said, "see deploy/memdecayd.example.yaml");
      }
    }
    return absl::OkStatus();
  }

  Config config_;
};

}  // namespace

absl::StatusOr<Config> parse_yaml(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return make_error(ErrorCode::kInvalidArgument, "configuration", "is larger than 1 MiB", "");
  }
  try {
    return Loader().load(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("configuration (line ", error.mark.line + 1, ")"), error.msg,
                      "write it as deploy/memdecayd.example.yaml is written");
  }
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
