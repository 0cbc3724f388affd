// See configure.h.
#include "tests/scenario/configure.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

absl::Status set_tenant(const std::string& key, const std::string& value,
                        ledger::TenantOptions& options, server::TenantIdentity& identity) {
  const absl::StatusOr<int64_t> number = parse_integer(value);
  if (!number.ok()) return number.status();
  if (key == "priority") {
    options.priority = static_cast<int32_t>(*number);
    return absl::OkStatus();
  }
  const absl::StatusOr<uint32_t> count = parse_count(value);
  if (!count.ok()) return count.status();
  if (key == "limit") options.limit_pages = *count;
  if (key == "reservation") options.reservation_pages = *count;
  if (key == "uid") identity.uid = *count;
  if (key == "gid") identity.gid = *count;
  return absl::OkStatus();
}

}  // namespace

Settings default_settings() { return {{"sinks", "0"}, {"recent", "0"}, {"grace", "1"}}; }

absl::StatusOr<server::Config> make_config(const DaemonSpec& spec, server::Occasion occasion) {
  server::Config config;
  for (const Settings& settings : {default_settings(), spec.settings}) {
    for (const auto& [key, value] : settings) {
      // Tiers that are not built yet may be switched off in words.
      if ((key == "disk" || key == "remote") && value == "0") continue;
      if (absl::Status set = server::apply_setting(config, key, value); !set.ok()) return set;
    }
  }
  if (!spec.tenants.empty()) {
    config.ledger.tenants.clear();
    config.identities.clear();
  }
  for (const TenantSpec& tenant : spec.tenants) {
    ledger::TenantOptions options{.name = tenant.name};
    server::TenantIdentity identity;
    for (const auto& [key, value] : tenant.settings) {
      if (absl::Status set = set_tenant(key, value, options, identity); !set.ok()) return set;
    }
    config.ledger.tenants.push_back(std::move(options));
    config.identities.push_back(identity);
  }
  return server::resolve(std::move(config), occasion);
}

}  // namespace memdecay::scenario
