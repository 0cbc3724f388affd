// The checks that concern several keys (config.h: resolve).
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/values.h"
#include "daemon/policy/layers.h"
#include "daemon/policy/policy.h"
#include "daemon/server/config.h"
#include "daemon/server/config_refusal.h"
#include "daemon/server/config_table.h"

namespace memdecay::server {
namespace {

absl::Status check_tenants(const Config& config, Occasion occasion) {
  uint64_t reserved = 0;
  for (size_t i = 0; i < config.ledger.tenants.size(); ++i) {
    const ledger::TenantOptions& tenant = config.ledger.tenants[i];
    const std::string key = absl::StrCat("tenants[", i, "].");
    for (size_t j = 0; j < i; ++j) {
      if (config.ledger.tenants[j].name == tenant.name) {
        return refuse(config, key + "name", absl::StrCat("there are two tenants ", tenant.name),
                      "give each its own name");
      }
    }
    if (tenant.limit_pages > 0 && tenant.reservation_pages > tenant.limit_pages) {
      return refuse(
          config, key + "reservation",
          absl::StrCat(tenant.reservation_pages, " pages, but its limit is ", tenant.limit_pages),
          "reserve no more than the limit");
    }
    reserved += tenant.reservation_pages;
    if (occasion == Occasion::kStart && reserved > config.ledger.device_pages) {
      return refuse(config, key + "reservation",
                    absl::StrCat("reservations up to here are ", reserved, " pages, the pool has ",
                                 config.ledger.device_pages),
                    "reserve less or raise device.pages");
    }
  }
  return absl::OkStatus();
}

// device.bytes → device_pages; a slab's pages lie in whole 4 KiB units.
absl::Status count_device(Config& config) {
  const bool pages_given = config.lines.contains("device.pages");
  if (config.device_bytes == 0) return absl::OkStatus();
  if (pages_given) {
    return refuse(config, "device.bytes",
                  absl::StrCat("contradicts ", place(config, "device.pages")), "leave one out");
  }
  if (config.page_bytes == 0) {
    return refuse(config, "device.bytes", "page_bytes is not given",
                  "give page_bytes as well, or count in device.pages");
  }
  constexpr uint64_t kUnit = 4096;
  const uint64_t slab_pages = config.ledger.slab_pages;
  const uint64_t slab_bytes = (config.page_bytes * slab_pages + kUnit - 1) / kUnit * kUnit;
  const uint64_t pages = config.device_bytes / slab_bytes * slab_pages;
  if (pages == 0 || pages > UINT32_MAX) {
    return refuse(config, "device.bytes",
                  absl::StrCat("holds ", pages, " pages of ", config.page_bytes, " bytes"),
                  "between 1 and 4294967295 pages are possible");
  }
  config.ledger.device_pages = static_cast<uint32_t>(pages);
  return absl::OkStatus();
}

// The refusal of an option, under the configuration's key.
absl::Status refuse_option(const Config& config, std::string_view owner,
                           const absl::Status& status) {
  const ErrorDetail detail = error_detail(status);
  // "policy option alpha" or "policy.alpha" → policy.alpha
  const size_t space = detail.asked.rfind(' ');
  std::string key = detail.asked.substr(space == std::string::npos ? 0 : space + 1);
  if (find_setting(key) == nullptr && find_setting("policy." + key) != nullptr) {
    key = "policy." + key;
  }
  if (!absl::StartsWith(key, "policy.") && find_setting(key) == nullptr) key = "policy.name";
  return refuse(config, absl::StrCat(as_absl(owner), key),
                absl::StrCat(detail.asked, ": ", detail.there), detail.todo);
}

absl::Status check_policy(Config& config) {
  policy::PolicyOptions& options = config.ledger.policy;
  config.ledger.presets = built_in_presets();
  if (!config.preset.empty()) {
    absl::StatusOr<policy::PolicyOptions> all =
        policy::layered(config.preset_policy, config.policy_words, config.ledger.presets);
    if (!all.ok()) return refuse_option(config, "", all.status());
    all->grace = options.grace;
    options = *std::move(all);
  }
  options.page_tokens = config.ledger.page_tokens;
  options.sinks = config.ledger.sinks;
  options.recent = config.ledger.recent;
  const auto made = policy::make_policy(options);
  if (!made.ok()) return refuse_option(config, "", made.status());
  config.tenant_words.resize(config.ledger.tenants.size());
  for (size_t i = 0; i < config.ledger.tenants.size(); ++i) {
    config.ledger.tenants[i].policy.reset();
    if (config.tenant_words[i].empty()) continue;
    const std::string owner = absl::StrCat("tenants[", i, "].");
    absl::StatusOr<policy::PolicyOptions> own =
        policy::layered(options, config.tenant_words[i], config.ledger.presets);
    absl::Status status = own.ok() ? policy::make_policy(*own).status() : own.status();
    if (!status.ok()) return refuse_option(config, owner, status);
    config.ledger.tenants[i].policy = *std::move(own);
  }
  return absl::OkStatus();
}

// Costs that say nothing, or by which the host tier would take no page at all.
absl::Status check_retention(const Config& config) {
  const ledger::RetentionSettings& retention = config.ledger.retention;
  if (retention.restore_bytes_per_s == 0) return absl::OkStatus();
  const std::string_view key = "retention.restore_bytes_per_s";
  if (retention.compute_us_per_token == 0) {
    return refuse(config, key, "it says nothing without retention.compute_us_per_token",
                  "give both, or leave this one out");
  }
  if (config.page_bytes == 0) return absl::OkStatus();
  const double restore_us = static_cast<double>(config.page_bytes) /
                            static_cast<double>(retention.restore_bytes_per_s) * 1e6;
  const double compute_us =
      static_cast<double>(retention.compute_us_per_token) * config.ledger.page_tokens;
  if (restore_us <= compute_us) return absl::OkStatus();
  return refuse(config, key,
                absl::StrCat("to restore a page takes ", restore_us, " us, to compute it ",
                             compute_us, " us: no entry would ever be stored"),
                "correct the two, or leave out the host tier");
}

absl::Status check_listen(const Config& config) {
  if (config.metrics_listen == "none") return absl::OkStatus();
  const size_t colon = config.metrics_listen.rfind(':');
  if (colon != std::string::npos && colon > 0) {
    const std::string_view port = std::string_view(config.metrics_listen).substr(colon + 1);
    if (base::parse_count(port, {.least = 0, .most = 65535}).ok()) return absl::OkStatus();
  }
  return refuse(config, "metrics.listen",
                absl::StrCat("\"", config.metrics_listen, "\" is no ADDRESS:PORT"),
                "write 127.0.0.1:9464, or none");
}

// Fewer bytes below than above is allowed, but hardly meant.
void warn_about_tiers(Config& config) {
  const ledger::Options& options = config.ledger;
  std::string there;
  if (options.host_pages > 0 && options.host_pages < options.device_pages) {
    there = absl::StrCat(options.host_pages, " pages, the device has ", options.device_pages);
  } else if (options.host_bytes > 0 && config.page_bytes > 0 &&
             options.host_bytes / config.page_bytes < options.device_pages) {
    there = absl::StrCat(options.host_bytes, " bytes, the device has ",
                         config.page_bytes * options.device_pages);
  }
  if (there.empty()) return;
  config.warnings.push_back(
      absl::StrCat(place(config, options.host_pages > 0 ? "host.pages" : "host.bytes"), ": ", there,
                   "; a lower tier is usually the larger one"));
}

}  // namespace

absl::StatusOr<Config> resolve(Config config, Occasion occasion) {
  config.warnings.clear();
  if (absl::Status status = count_device(config); !status.ok()) return status;
  const ledger::Options& options = config.ledger;
  if (options.host_pages > 0 && options.host_bytes > 0) {
    return refuse(config, "host.bytes", absl::StrCat("contradicts ", place(config, "host.pages")),
                  "leave one out");
  }
  if (options.watermark_low_percent > options.watermark_high_percent) {
    return refuse(config, "watermark.low",
                  absl::StrCat(options.watermark_low_percent, " is above watermark.high, ",
                               options.watermark_high_percent),
                  "low must not be above high");
  }
  if (options.slab_pages > options.device_pages) {
    return refuse(config, "device.slab_pages",
                  absl::StrCat(options.slab_pages, " pages, the pool has ", options.device_pages),
                  "a slab must fit into the pool");
  }
  if (options.mode == Mode::kLossy && options.lossy_allowed == ledger::Options::LossyAllowed::kNo) {
    return refuse(config, "mode", "lossy, but lossy_allowed is false", "change one of them");
  }
  for (absl::Status status : {check_tenants(config, occasion), check_policy(config),
                              check_retention(config), check_listen(config)}) {
    if (!status.ok()) return status;
  }
  warn_about_tiers(config);
  return config;
}

}  // namespace memdecay::server
