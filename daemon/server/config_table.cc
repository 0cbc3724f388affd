// The rows of the configuration, and how each kind of field reads and prints (config_table.h).
#include "daemon/server/config_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/values.h"
#include "daemon/policy/keys.h"
#include "proto/contract/layout.h"
#include "proto/contract/text.h"

namespace memdecay::server {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

// The place in a Config that a row fills.
#define MEMDECAY_AT(place) \
  [](Config & c) -> auto& { return place; }

ChoiceField device_kinds() {
  return {.words = {"host"},
          .get = [](const Config&) -> uint32_t { return 0; },
          .set = [](Config& c, uint32_t) { c.device_kind = "host"; }};
}

ChoiceField modes() {
  return {.words = {"exact", "lossy"},
          .get = [](const Config& c) { return static_cast<uint32_t>(c.ledger.mode); },
          .set = [](Config& c, uint32_t word) { c.ledger.mode = static_cast<Mode>(word); }};
}

ChoiceField lossy_allowed() {
  using Allowed = ledger::Options::LossyAllowed;
  return {
      .words = {"false", "true"},
      .get = [](const Config& c) { return static_cast<uint32_t>(c.ledger.lossy_allowed); },
      .set = [](Config& c, uint32_t word) { c.ledger.lossy_allowed = static_cast<Allowed>(word); }};
}

using RetainBy = ledger::RetentionSettings::By;
template <RetainBy ledger::RetentionSettings::*kTier>
ChoiceField retention_of() {
  return {.words = {"decay", "lru"},
          .get = [](const Config& c) { return static_cast<uint32_t>(c.ledger.retention.*kTier); },
          .set = [](Config& c,
                    uint32_t word) { c.ledger.retention.*kTier = static_cast<RetainBy>(word); }};
}

ChoiceField log_levels() {
  static constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error", "off"};
  return {.words = {std::begin(kLevels), std::end(kLevels)},
          .get =
              [](const Config& c) {
                const auto* const at =
                    std::find(std::begin(kLevels), std::end(kLevels), c.log.level);
                return static_cast<uint32_t>(at - std::begin(kLevels));
              },
          .set = [](Config& c, uint32_t word) { c.log.level = std::string(kLevels[word]); }};
}

std::vector<Setting> memory_rows() {
  return {
      {"device.kind", device_kinds(),
       "Where pages live: host (plain memory; serves engines on CPUs)."},
      {"device.pages", CountField{MEMDECAY_AT(c.ledger.device_pages), 1},
       "Size of the pool in pages, whatever their size in bytes."},
      {"device.bytes", SizeField{MEMDECAY_AT(c.device_bytes)},
       "Instead of device.pages: size of the pool in bytes; needs page_bytes.", "64GiB"},
      {"device.slab_pages", CountField{MEMDECAY_AT(c.ledger.slab_pages), 1, 1u << 20},
       "Pages of one slab, the unit that one engine fills and that is shared and freed."},
      {"device.retention", retention_of<&ledger::RetentionSettings::device>(),
       "What leaves first of the pages that no living session needs: decay (by use, recency and "
       "region) or lru; arc, s3_fifo and min are for memdecayctl replay."},
      {"host.bytes", SizeField{MEMDECAY_AT(c.ledger.host_bytes)},
       "Size of the host tier, which holds pages that left the device; 0: no such tier."},
      {"host.pages", CountField{MEMDECAY_AT(c.ledger.host_pages)},
       "Instead of host.bytes: size of the host tier in pages.", "4096"},
      {"host.retention", retention_of<&ledger::RetentionSettings::host>(),
       "What leaves the host tier first: decay or lru, as device.retention; arc, s3_fifo and min "
       "are for memdecayctl replay."},
      {"page_tokens", CountField{MEMDECAY_AT(c.ledger.page_tokens), 1, kMaxPageTokens},
       "Tokens of a page. Engines with another page size are refused."},
      {"page_bytes", SizeField{MEMDECAY_AT(c.page_bytes)},
       "Bytes of a page; 0: whatever the engines' layouts have."},
      {"watermark.high", CountField{MEMDECAY_AT(c.ledger.watermark_high_percent), 1, 100},
       "Percent of a tier above which it is emptied down to watermark.low."},
      {"watermark.low", CountField{MEMDECAY_AT(c.ledger.watermark_low_percent), 1, 100},
       "Equal to watermark.high: no page leaves earlier than it must."},
      {"sinks", CountField{MEMDECAY_AT(c.ledger.sinks)},
       "First tokens of a session whose pages are never victims while it runs."},
      {"recent", CountField{MEMDECAY_AT(c.ledger.recent)},
       "Last sealed pages of a session that are never victims while it runs."},
      {"grace", SwitchField{MEMDECAY_AT(c.ledger.policy.grace)},
       "Spare a page until attention has been observed on it once."},
      {"ahead", CountField{MEMDECAY_AT(c.ledger.ahead)},
       "Likely victims that are copied to the host tier ahead of need; 0: none."},
      {"lease_ms", MillisecondsField{MEMDECAY_AT(c.ledger.lease)},
       "How long an acquired prefix is held."},
      {"pin_budget", CountField{MEMDECAY_AT(c.ledger.pin_budget_pages)},
       "Pages that a tenant may pin; 0: as many as the pool has."},
      {"orphan_ttl_s", SecondsField{MEMDECAY_AT(c.ledger.orphan_ttl)},
       "How long a session without an engine can be resumed."},
      {"orphan_limit", CountField{MEMDECAY_AT(c.ledger.orphan_limit), 0, 1u << 20},
       "Sessions without an engine that are kept at most."},
      {"mode", modes(),
       "exact: running sessions are never asked for pages. lossy: they are, by score."},
      {"lossy_allowed", lossy_allowed(), "Whether sessions may ask for mode lossy."},
  };
}

// The policies' own table (policy/keys.h), under "policy.".
std::vector<Setting> policy_rows() {
  static const std::vector<std::string>* const kNames = [] {
    auto* const names = new std::vector<std::string>;
    for (const policy::OptionKey& option : policy::option_keys()) {
      names->push_back(absl::StrCat("policy.", as_absl(option.key)));
    }
    return names;
  }();
  std::vector<Setting> rows;
  for (const policy::OptionKey& option : policy::option_keys()) {
    rows.push_back(
        {(*kNames)[rows.size()], PolicyField{option.key}, option.meaning, option.example});
  }
  return rows;
}

std::vector<Setting> retention_rows() {
  return {
      {"retention.salt", CountField{MEMDECAY_AT(c.ledger.retention.salt)},
       "Chooses the keys from which decay learns how recency weighs against use."},
      {"retention.compute_us_per_token",
       CountField{MEMDECAY_AT(c.ledger.retention.compute_us_per_token), 0, 1'000'000'000},
       "What computing a token again takes; 0: not known. An entry that takes longer to restore "
       "is not stored."},
      {"retention.restore_bytes_per_s",
       SizeField{MEMDECAY_AT(c.ledger.retention.restore_bytes_per_s)},
       "What a restore moves in a second; 0: as measured."},
  };
}

std::vector<Setting> edge_rows() {
  return {
      {"socket.directory", TextField{MEMDECAY_AT(c.socket.directory)},
       "Where handles.sock and control.sock stand; \"\": $XDG_RUNTIME_DIR/memdecay, else "
       "/run/memdecay."},
      {"socket.group", TextField{MEMDECAY_AT(c.socket.group)},
       "Group of the sockets, by name or number; \"\": the daemon's own."},
      {"socket.mode", OctalField{MEMDECAY_AT(c.socket.mode)}, "File mode of the sockets."},
      {"socket.admin_uids", UidsField{MEMDECAY_AT(c.socket.admin_uids)},
       "Users who may call Admin; the daemon's own always may."},
      {"metrics.listen", TextField{MEMDECAY_AT(c.metrics_listen)},
       "ADDRESS:PORT of the Prometheus endpoint; port 0: any free one; none: no endpoint."},
      {"log.level", log_levels(), "debug, info, warning, error or off."},
      {"log.json", SwitchField{MEMDECAY_AT(c.log.json)}, "One JSON object a line."},
      {"limits.connections", CountField{MEMDECAY_AT(c.limits.connections), 1, 4096},
       "Handle sockets open at once."},
      {"limits.stream_queue", CountField{MEMDECAY_AT(c.limits.stream_queue), 16, 1u << 20},
       "Messages that may wait for one engine; one more and it is disconnected."},
      {"limits.stream_window", CountField{MEMDECAY_AT(c.limits.stream_window), 1, 1u << 16},
       "Requests of one engine without an answer; at the limit its stream is not read."},
      {"limits.replay", CountField{MEMDECAY_AT(c.limits.replay), 16, 1u << 20},
       "Answers kept for an engine that reconnects and sends again."},
      {"limits.silent_ms", MillisecondsField{MEMDECAY_AT(c.limits.silent)},
       "Without a word for so long an engine is flagged silent; nothing is taken from it."},
      {"limits.drain_ms", MillisecondsField{MEMDECAY_AT(c.limits.drain)},
       "After SIGTERM: how long copies in flight may take."},
      {"limits.hello_ms", MillisecondsField{MEMDECAY_AT(c.limits.hello)},
       "From a handle socket's connection to its whole Hello."},
      {"limits.ack_ms", MillisecondsField{MEMDECAY_AT(c.ledger.ack_late)},
       "An engine's answer to an eviction is late after this: others are asked too."},
      {"limits.request_ms", MillisecondsField{MEMDECAY_AT(c.ledger.request)},
       "How long a request may wait for pages."},
      {"limits.restore_ms", MillisecondsField{MEMDECAY_AT(c.ledger.restore)},
       "How long a restore may take before it is reported as failed."},
      {"limits.pending_ms", MillisecondsField{MEMDECAY_AT(c.ledger.pending)},
       "How long a lookup answers \"being written\" for an unfinished page."},
      {"limits.copy_lost_ms", MillisecondsField{MEMDECAY_AT(c.ledger.copy_lost)},
       "A copy without completion for so long is lost; its slot is quarantined until then."},
      {"limits.regret_steps", CountField{MEMDECAY_AT(c.ledger.regret_steps), 1, 1u << 20},
       "A page that is wanted again within so many steps of leaving counts as regret."},
      {"limits.regret_ms", MillisecondsField{MEMDECAY_AT(c.ledger.regret)},
       "The same for pages that left while their session waited."},
      {"limits.pin_ttl_s", SecondsField{MEMDECAY_AT(c.ledger.pin_ttl_cap)},
       "Longest time to live of a pin that has one."},
  };
}

#undef MEMDECAY_AT

std::vector<Setting> all_rows() {
  std::vector<Setting> rows = memory_rows();
  for (Setting& row : policy_rows()) rows.push_back(std::move(row));
  for (Setting& row : retention_rows()) rows.push_back(std::move(row));
  for (Setting& row : edge_rows()) rows.push_back(std::move(row));
  return rows;
}

absl::Status set_duration(Duration& place, std::string_view value, int64_t unit) {
  const absl::StatusOr<uint64_t> count =
      base::parse_count(value, {.least = 0, .most = static_cast<uint64_t>(INT64_MAX / unit / 4)});
  if (!count.ok()) return count.status();
  place = Duration{static_cast<int64_t>(*count) * unit};
  return absl::OkStatus();
}

absl::Status set_choice(const ChoiceField& field, Config& config, std::string_view value) {
  std::string_view wanted = value;
  if (field.words.size() == 2 && field.words[0] == "false") {
    const absl::StatusOr<bool> on = base::parse_switch(value);
    if (on.ok()) wanted = *on ? "true" : "false";
  }
  const auto found = std::find(field.words.begin(), field.words.end(), wanted);
  if (found == field.words.end()) {
    std::string list;
    for (const std::string_view word : field.words) {
      absl::StrAppend(&list, list.empty() ? "" : ", ", as_absl(word));
    }
    return absl::InvalidArgumentError(absl::StrCat("\"", as_absl(value), "\" is none of: ", list));
  }
  field.set(config, static_cast<uint32_t>(found - field.words.begin()));
  return absl::OkStatus();
}

absl::Status set_uids(std::vector<uint32_t>& place, std::string_view value) {
  std::vector<uint32_t> uids;
  for (const std::string_view word : base::list_words(value)) {
    const absl::StatusOr<uint64_t> uid =
        base::parse_count(word, {.least = 0, .most = UINT32_MAX - 1});
    if (!uid.ok()) return uid.status();
    uids.push_back(static_cast<uint32_t>(*uid));
  }
  place = std::move(uids);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Setting> settings() {
  static const std::vector<Setting>* const kRows = new std::vector<Setting>(all_rows());
  return *kRows;
}

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : settings()) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

absl::Status set_field(const Setting& setting, Config& config, std::string_view value) {
  // Takes what a parser gave into its place.
  const auto put = [](auto& place, const auto& parsed) -> absl::Status {
    if (!parsed.ok()) return parsed.status();
    place = static_cast<std::decay_t<decltype(place)>>(*parsed);
    return absl::OkStatus();
  };
  return std::visit(
      Overloaded{
          [&](const CountField& f) {
            return put(f.at(config), base::parse_count(value, {f.least, f.most}));
          },
          [&](const SizeField& f) { return put(f.at(config), base::parse_size(value)); },
          [&](const MillisecondsField& f) { return set_duration(f.at(config), value, 1'000'000); },
          [&](const SecondsField& f) { return set_duration(f.at(config), value, 1'000'000'000); },
          [&](const SwitchField& f) { return put(f.at(config), base::parse_switch(value)); },
          [&](const TextField& f) {
            f.at(config) = std::string(value);
            return absl::OkStatus();
          },
          [&](const ChoiceField& f) { return set_choice(f, config, value); },
          [&](const OctalField& f) { return put(f.at(config), base::parse_octal(value)); },
          [&](const UidsField& f) { return set_uids(f.at(config), value); },
          [&](const PolicyField& f) {
            return policy::set_option(config.ledger.policy, f.option, value);
          },
      },
      setting.field);
}

std::string get_field(const Setting& setting, const Config& given) {
  // The rows give writable places; reading one needs none of that.
  Config& config = const_cast<Config&>(given);
  return std::visit(
      Overloaded{
          [&](const CountField& f) { return absl::StrCat(f.at(config)); },
          [&](const SizeField& f) { return base::print_size(f.at(config)); },
          [&](const MillisecondsField& f) { return absl::StrCat(f.at(config).milliseconds()); },
          [&](const SecondsField& f) {
            return absl::StrCat(f.at(config).nanoseconds / 1'000'000'000);
          },
          [&](const SwitchField& f) { return std::string(f.at(config) ? "true" : "false"); },
          [&](const TextField& f) {
            return f.at(config).empty() ? std::string("\"\"") : f.at(config);
          },
          [&](const ChoiceField& f) { return std::string(f.words[f.get(config)]); },
          [&](const OctalField& f) { return absl::StrFormat("0%o", f.at(config)); },
          [&](const UidsField& f) {
            return absl::StrCat("[", absl::StrJoin(f.at(config), ", "), "]");
          },
          [&](const PolicyField& f) { return policy::get_option(config.ledger.policy, f.option); },
      },
      setting.field);
}

}  // namespace memdecay::server
