// The configuration as YAML: what is in effect, and the annotated example (config.h).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/policy/keys.h"
#include "daemon/server/config.h"
#include "daemon/server/config_table.h"
#include "proto/contract/text.h"

namespace memdecay::server {
namespace {

absl::string_view section_of(absl::string_view key) {
  const size_t dot = key.find('.');
  return dot == absl::string_view::npos ? absl::string_view() : key.substr(0, dot);
}

std::string print_tenants(const Config& config) {
  std::string out = "tenants:\n";
  for (size_t i = 0; i < config.ledger.tenants.size(); ++i) {
    const ledger::TenantOptions& tenant = config.ledger.tenants[i];
    absl::StrAppend(&out, "  - name: ", tenant.name, "\n");
    const TenantIdentity& identity = config.identities[i];
    if (identity.uid.has_value()) absl::StrAppend(&out, "    uid: ", *identity.uid, "\n");
    if (identity.gid.has_value()) absl::StrAppend(&out, "    gid: ", *identity.gid, "\n");
    absl::StrAppend(&out, "    reservation: ", tenant.reservation_pages,
                    "\n    limit: ", tenant.limit_pages, "\n    priority: ", tenant.priority, "\n");
    for (const auto& [key, value] : config.tenant_words[i]) {
      absl::StrAppend(&out, "    policy.", key, ": ", value, "\n");
    }
  }
  return out;
}

}  // namespace

std::string print_yaml(const Config& config) {
  std::string out;
  if (!config.preset.empty()) {
    absl::StrAppend(&out, "# policy.preset: ", config.preset, ", written out below\n");
  }
  absl::string_view section;
  for (const Setting& setting : settings()) {
    if (setting.key == "device.pages" && config.device_bytes > 0) continue;
    if (setting.key == "device.bytes" && config.device_bytes == 0) continue;
    const std::string value = get_field(setting, config);
    if (value.empty()) continue;
    const absl::string_view key = as_absl(setting.key);
    if (section_of(key) != section) {
      section = section_of(key);
      if (!section.empty()) absl::StrAppend(&out, section, ":\n");
    }
    absl::StrAppend(&out, section.empty() ? "" : "  ",
                    section.empty() ? key : key.substr(section.size() + 1), ": ", value, "\n");
  }
  for (const auto& [key, value] : policy::tables(config.ledger.policy)) {
    absl::StrAppend(&out, "policy.", key, ": ", value, "\n");
  }
  return out + print_tenants(config);
}

std::string example_yaml() {
  const Config defaults;
  std::string out =
      "# Configuration of memdecayd: every key, with its default and what it means.\n"
      "# Commented keys are alternatives or unset. Sizes: KB, MB, GB are powers of 1000, KiB, "
      "MiB,\n"
      "# GiB powers of 1024. `memdecayd --check-config --config FILE` checks a file, and\n"
      "# `--print-config` shows what is in effect. Nested keys may also be written as\n"
      "# `device.pages: 8`. This file is made by `memdecayd --print-example`.\n";
  absl::string_view section;
  for (const Setting& setting : settings()) {
    const absl::string_view key = as_absl(setting.key);
    const bool opens = section_of(key) != section || section_of(key).empty();
    section = section_of(key);
    if (opens) absl::StrAppend(&out, "\n");
    if (opens && !section.empty()) absl::StrAppend(&out, section, ":\n");
    const absl::string_view indent = section.empty() ? "" : "  ";
    const absl::string_view name = section.empty() ? key : key.substr(section.size() + 1);
    absl::StrAppend(&out, indent, "# ", as_absl(setting.meaning), "\n", indent);
    if (setting.example.empty()) {
      absl::StrAppend(&out, name, ": ", get_field(setting, defaults), "\n");
    } else {
      absl::StrAppend(&out, "#", name, ": ", as_absl(setting.example), "\n");
    }
  }
  return out +
         "\n# A preset lies below all other policy keys: default, paper (as published), practice "
         "(with "
         "its\n# watermarks), or the path of a file like them, from `memdecayctl calibrate` for "
         "example.\n"
         "#policy.preset: practice\n"
         "\n# Worth and half-life of a fresh page of a region, by name or by your own number from "
         "7\n"
         "# on; .inf never decays.\n"
         "#policy.regions.tool_out.b: 0.6\n"
         "#policy.regions.tool_out.half_life_tokens: 37\n"
         "\n# Who may attach. A peer belongs to the first tenant whose uid and gid are its own; "
         "the\n"
         "# daemon's own uid belongs to the first one if none matches. reservation: pages that\n"
         "# nobody else's pressure takes. limit: 0 is the whole pool. A higher priority leaves\n"
         "# later.\n"
         "tenants:\n"
         "  - name: default\n"
         "    #uid: 1000\n"
         "    #gid: 1000\n"
         "    reservation: 0\n"
         "    limit: 0\n"
         "    priority: 0\n"
         "    #policy: {preset: paper}\n";
}

}  // namespace memdecay::server
