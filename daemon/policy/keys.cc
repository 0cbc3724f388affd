// The table of options and how each kind of value reads and prints (keys.h).
#include "daemon/policy/keys.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/values.h"
#include "proto/contract/text.h"

namespace memdecay::policy {
namespace {

using base::Infinite;

constexpr RegionId kMostRegions = 1024;

// Where a key's value stands.
using TextPlace = std::string PolicyOptions::*;
using RealPlace = std::optional<double> PolicyOptions::*;
using RulePlace = std::optional<RefreshRule> PolicyOptions::*;
using LiftPlace = std::optional<ExpectedLift> PolicyOptions::*;
using NamesPlace = std::vector<std::string> PolicyOptions::*;
using RegionsPlace = std::optional<std::vector<RegionId>> PolicyOptions::*;

struct Row {
  OptionKey option;
  std::variant<TextPlace, RealPlace, RulePlace, LiftPlace, NamesPlace, RegionsPlace> place;
};

const Row kRows[] = {
    {{"name",
      "What a page is worth: memdecay_n, memdecay (as published), h2o, lru, memdecay_n0, norm_sum, "
      "random, snapkv, streaming, tova, truncation; with +pin system pages stay.",
      ""},
     &PolicyOptions::name},
    {{"own_regions", "Names of your own regions, in the order of their numbers from 7 on.",
      "[document]"},
     &PolicyOptions::own_regions},
    {{"pinned",
      "Regions whose pages are never victims while their session runs; unset: system for memdecay "
      "forms and +pin, none for others.",
      "[system]"},
     &PolicyOptions::pinned},
    {{"boost",
      "memdecay forms only: half-lives by which a page that attention refers to is lifted; it "
      "loses "
      "them as it ages.",
      "1"},
     &PolicyOptions::boost},
    {{"boost_neighbours", "Pages on each side that are lifted with it.", "1"},
     &PolicyOptions::boost_neighbours},
    {{"valve_score",
      "memdecay forms only: pages of this score and above do not go by score; when there are no "
      "others, the oldest of valve_regions go first.",
      "0.5"},
     &PolicyOptions::valve_score},
    {{"valve_regions", "Regions whose oldest pages the safety valve takes.", "[user, scratchpad]"},
     &PolicyOptions::valve_regions},
    {{"alpha", "memdecay only: weight of received attention.", "0.5"}, &PolicyOptions::alpha},
    {{"rho", "memdecay only: memory of received attention.", "0.9"}, &PolicyOptions::rho},
    {{"tau_uniform",
      "memdecay, and memdecay_n with refresh_rule uniform: attention that refreshes a page, in "
      "shares of 1/N.",
      "2"},
     &PolicyOptions::tau_uniform},
    {{"beta", "memdecay_n only: half-lives per bit of evidence; 0: none.", "1"},
     &PolicyOptions::beta},
    {{"gamma",
      "memdecay_n only: half-lives per bit of the highest lift over its expectation so far; 0: "
      "none.",
      "1"},
     &PolicyOptions::gamma},
    {{"decay_cap", "memdecay_n only: half-lives after which age counts no more; .inf: never.", "4"},
     &PolicyOptions::decay_cap},
    {{"memory_tokens", "memdecay_n only: half-life of the evidence in tokens.", "4096"},
     &PolicyOptions::memory_tokens},
    {{"prior_evidence", "memdecay_n only: observations that the prior is worth.", "2"},
     &PolicyOptions::prior_evidence},
    {{"expected_lift",
      "memdecay_n only: attention that a page at a distance gets anyway: shipped, shipped_heads "
      "(twelve chosen heads), one (no expectation), or a list, one number for each doubling of the "
      "distance in tokens from 1 on, the last for all beyond; expected_lift.REGION: its own.",
      "shipped"},
     &PolicyOptions::expected_lift},
    {{"refresh_rule",
      "memdecay_n only: what resets a page's age: lift, expected (lift over expected_lift), "
      "uniform "
      "(as published), none.",
      "none"},
     &PolicyOptions::refresh_rule},
    {{"refresh_lift", "memdecay_n, rules lift and expected: what the ratio must reach.", "4"},
     &PolicyOptions::refresh_lift},
    {{"refresh_fraction", "The same: and only within this top share of the movable pages.", "0.1"},
     &PolicyOptions::refresh_fraction},
    {{"seed", "random only: a whole number on which all draws depend.", "0"}, &PolicyOptions::seed},
    {{"window_queries", "snapkv only: the last queries that count, 1 to 32.", "32"},
     &PolicyOptions::window_queries},
};

constexpr std::string_view kTableNames[] = {"shipped", "one", "shipped_heads"};
constexpr std::string_view kRuleNames[] = {"lift", "expected", "uniform", "none"};

const Row* find_row(std::string_view key) {
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                         [key](const Row& row) { return row.option.key == key; });
  return found == std::end(kRows) ? nullptr : found;
}

absl::Status wrong(std::string_view value, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", as_absl(value), "\" ", as_absl(why)));
}

// Which of the names; nothing: none of them.
std::optional<size_t> index_of(absl::Span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

absl::StatusOr<DistanceTable> parse_table(std::string_view value) {
  const std::vector<std::string_view> words = base::list_words(value);
  if (words.empty() || words.size() > kDistanceBins) {
    return wrong(value, absl::StrCat("is no list of 1 to ", kDistanceBins, " numbers"));
  }
  DistanceTable table{};
  double last = 0.0;
  for (size_t bin = 0; bin < table.size(); ++bin) {
    if (bin < words.size()) {
      const absl::StatusOr<double> lift = base::parse_real(words[bin], Infinite::kRefused);
      if (!lift.ok()) return lift.status();
      last = *lift;
    }
    table[bin] = last;
  }
  return table;
}

std::string print_table(const DistanceTable& table) {
  size_t bins = table.size();
  while (bins > 1 && table[bins - 2] == table[bins - 1]) --bins;
  std::string out = "[";
  for (size_t bin = 0; bin < bins; ++bin) {
    absl::StrAppend(&out, bin == 0 ? "" : ", ", base::print_real(table[bin]));
  }
  return out + "]";
}

constexpr std::string_view kRegionWanted =
    "a region's name (own_regions comes first), or its number";

// -- One reader and one printer a kind.

absl::Status read(const PolicyOptions&, std::string& place, std::string_view value) {
  place = std::string(value);
  return absl::OkStatus();
}

absl::Status read(const PolicyOptions&, std::optional<double>& place, std::string_view value) {
  const absl::StatusOr<double> number = base::parse_real(value, Infinite::kAllowed);
  if (!number.ok()) return number.status();
  place = *number;
  return absl::OkStatus();
}

absl::Status read(const PolicyOptions&, std::optional<RefreshRule>& place, std::string_view value) {
  const std::optional<size_t> rule = index_of(kRuleNames, value);
  if (!rule.has_value()) return wrong(value, "is none of: lift, expected, uniform, none");
  place = static_cast<RefreshRule>(*rule);
  return absl::OkStatus();
}

absl::Status read(const PolicyOptions&, std::optional<ExpectedLift>& place,
                  std::string_view value) {
  ExpectedLift lift = place.value_or(ExpectedLift{});
  if (value.empty() || value.front() != '[') {
    const std::optional<size_t> table = index_of(kTableNames, value);
    if (!table.has_value()) return wrong(value, "is none of: shipped, shipped_heads, one, a list");
    lift.table = static_cast<ExpectedLift::Table>(*table);
  } else {
    const absl::StatusOr<DistanceTable> table = parse_table(value);
    if (!table.ok()) return table.status();
    lift.table = ExpectedLift::Table::kGiven;
    lift.given = *table;
  }
  place = std::move(lift);
  return absl::OkStatus();
}

absl::Status read(const PolicyOptions&, std::vector<std::string>& place, std::string_view value) {
  place.clear();
  for (const std::string_view word : base::list_words(value)) place.emplace_back(word);
  return absl::OkStatus();
}

absl::Status read(const PolicyOptions& options, std::optional<std::vector<RegionId>>& place,
                  std::string_view value) {
  std::vector<RegionId> regions;
  for (const std::string_view word : base::list_words(value)) {
    const std::optional<RegionId> region = region_of(options, word);
    if (!region.has_value()) return wrong(word, "is no region");
    regions.push_back(*region);
  }
  place = std::move(regions);
  return absl::OkStatus();
}

std::string print(const PolicyOptions&, const std::string& value) { return value; }
std::string print(const PolicyOptions&, const std::optional<double>& value) {
  return value.has_value() ? base::print_real(*value) : std::string();
}
std::string print(const PolicyOptions&, const std::optional<RefreshRule>& value) {
  return value.has_value() ? std::string(kRuleNames[static_cast<size_t>(*value)]) : std::string();
}
std::string print(const PolicyOptions&, const std::optional<ExpectedLift>& value) {
  if (!value.has_value()) return "";
  if (value->table == ExpectedLift::Table::kGiven) return print_table(value->given);
  return std::string(kTableNames[static_cast<size_t>(value->table)]);
}
std::string print(const PolicyOptions&, const std::vector<std::string>& value) {
  return value.empty() ? "" : absl::StrCat("[", absl::StrJoin(value, ", "), "]");
}
std::string print(const PolicyOptions& options, const std::optional<std::vector<RegionId>>& value) {
  if (!value.has_value()) return "";
  std::string list;
  for (const RegionId region : *value) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", region_word(options, region));
  }
  return absl::StrCat("[", list, "]");
}

constexpr std::string_view kClockNames[] = {"tokens", "turns", "seconds"};
constexpr std::string_view kRegionFields =
    "regions.REGION.b, .half_life_tokens, .half_life_turns, .half_life_seconds, .doubling_tokens, "
    ".doubling_turns, .doubling_seconds, .turn_decay, .held";

// A region ages one way: what says how replaces what was said before.
absl::Status set_aging(RegionParameters& region, std::string_view field, double number) {
  const size_t unit_at = field.rfind('_') + 1;  // 0: none
  const std::optional<size_t> clock = index_of(kClockNames, field.substr(unit_at));
  const std::string_view what = field.substr(0, unit_at == 0 ? 0 : unit_at - 1);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!clock.has_value() || (what != "half_life" && what != "doubling")) {
    return absl::NotFoundError(as_absl(kRegionFields));
  }
  region.clock = static_cast<Clock>(*clock);
  region.half_life = what == "half_life" ? number : kNever;
  region.doubling = what == "doubling" ? number : kNever;
  return absl::OkStatus();
}

absl::Status set_region(PolicyOptions& options, std::string_view path, std::string_view value) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return absl::NotFoundError(as_absl(kRegionFields));
  const std::string_view field = path.substr(dot + 1);
  const std::optional<RegionId> id = region_of(options, path.substr(0, dot));
  if (!id.has_value()) return absl::NotFoundError(as_absl(kRegionWanted));
  std::vector<RegionParameters> regions = options.regions;
  if (regions.empty()) regions = default_regions();
  if (regions.size() <= *id) regions.resize(size_t{*id} + 1);
  RegionParameters& region = regions[*id];
  absl::Status status;
  if (field == "held") {
    const absl::StatusOr<bool> held = base::parse_switch(value);
    if (!held.ok()) return held.status();
    region.held = *held ? Held::kUntilEnded : Held::kNo;
  } else {
    const absl::StatusOr<double> number = base::parse_real(value, Infinite::kAllowed);
    if (field == "b" || field == "turn_decay") {
      if (!number.ok()) return number.status();
      (field == "b" ? region.b : region.turn_decay) = *number;
    } else {
      status = set_aging(region, field, number.value_or(1.0));
      if (status.ok()) status = number.status();
    }
  }
  if (status.ok()) options.regions = std::move(regions);
  return status;
}

absl::Status set_own_table(PolicyOptions& options, std::string_view word, std::string_view value) {
  if (word == "all") return read(options, options.expected_lift, value);
  const std::optional<RegionId> region = region_of(options, word);
  if (!region.has_value()) return absl::NotFoundError(as_absl(kRegionWanted));
  const absl::StatusOr<DistanceTable> table = parse_table(value);
  if (!table.ok()) return table.status();
  if (!options.expected_lift.has_value()) options.expected_lift.emplace();
  options.expected_lift->regions[*region] = *table;
  return absl::OkStatus();
}

constexpr std::string_view kRegions = "regions.";
constexpr std::string_view kLifts = "expected_lift.";

}  // namespace

absl::Span<const OptionKey> option_keys() {
  static const std::vector<OptionKey>* const kKeys = [] {
    auto* const keys = new std::vector<OptionKey>;
    for (const Row& row : kRows) keys->push_back(row.option);
    return keys;
  }();
  return *kKeys;
}

std::string region_word(const PolicyOptions& options, RegionId region) {
  if (region < kBuiltInRegions) return std::string(region_name(region));
  const size_t own = region - size_t{kBuiltInRegions};
  return own < options.own_regions.size() ? options.own_regions[own] : absl::StrCat(region);
}

std::optional<RegionId> region_of(const PolicyOptions& options, std::string_view word) {
  const std::optional<RegionId> region = region_from_name(word);
  if (region.has_value()) return region;
  for (size_t own = 0; own < options.own_regions.size(); ++own) {
    if (options.own_regions[own] == word) return static_cast<RegionId>(kBuiltInRegions + own);
  }
  const absl::StatusOr<uint64_t> number =
      base::parse_count(word, {.least = 0, .most = kMostRegions - 1});
  if (!number.ok()) return std::nullopt;
  return static_cast<RegionId>(*number);
}

const OptionKey* find_option(std::string_view key) {
  const Row* const row = find_row(key);
  return row == nullptr ? nullptr : &row->option;
}

absl::Status set_option(PolicyOptions& options, std::string_view key, std::string_view value) {
  if (const Row* const row = find_row(key)) {
    return std::visit([&](const auto place) { return read(options, options.*place, value); },
                      row->place);
  }
  if (absl::StartsWith(as_absl(key), as_absl(kRegions))) {
    return set_region(options, key.substr(kRegions.size()), value);
  }
  if (absl::StartsWith(as_absl(key), as_absl(kLifts))) {
    return set_own_table(options, key.substr(kLifts.size()), value);
  }
  std::string known;
  for (const OptionKey& option : option_keys()) {
    absl::StrAppend(&known, as_absl(option.key), ", ");
  }
  return absl::NotFoundError(absl::StrCat(known, as_absl(kRegionFields)));
}

std::string get_option(const PolicyOptions& options, std::string_view key) {
  const Row* const row = find_row(key);
  if (row == nullptr) return "";
  return std::visit([&](const auto place) { return print(options, options.*place); }, row->place);
}

std::vector<std::pair<std::string, std::string>> tables(const PolicyOptions& options) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (size_t i = 0; i < options.regions.size(); ++i) {
    const RegionParameters& region = options.regions[i];
    const std::string of =
        absl::StrCat("regions.", region_word(options, static_cast<RegionId>(i)), ".");
    const std::string_view clock = kClockNames[static_cast<size_t>(region.clock)];
    lines.emplace_back(of + "b", base::print_real(region.b));
    lines.emplace_back(
        absl::StrCat(of, region.grows() ? "doubling_" : "half_life_", as_absl(clock)),
        base::print_real(region.grows() ? region.doubling : region.half_life));
    if (region.turn_decay != 0.0) {
      lines.emplace_back(of + "turn_decay", base::print_real(region.turn_decay));
    }
    if (region.held == Held::kUntilEnded) lines.emplace_back(of + "held", "true");
  }
  if (!options.expected_lift.has_value()) return lines;
  for (const auto& [region, table] : options.expected_lift->regions) {
    lines.emplace_back(absl::StrCat("expected_lift.", region_word(options, region)),
                       print_table(table));
  }
  return lines;
}

}  // namespace memdecay::policy
