// Reads the history event by event and compares each decision at once; a decision is followed by
// the eviction that the history names, so that one difference does not hide the rest. Thread: pure
// functions.
#include "tests/support/golden_policy.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/policy/policy.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::test {
namespace {

using Json = nlohmann::json;
using policy::Observation;
using policy::PageMass;
using policy::Policy;
using policy::PolicyOptions;
using policy::RegionRun;
using policy::Victim;

constexpr double kTolerance = 1e-9;
constexpr size_t kMostDifferences = 20;
constexpr uint32_t kSinks = 4;
constexpr uint32_t kRecent = 2;

absl::Status malformed(std::string_view what) {
  return make_error(ErrorCode::kInvalidArgument, "a golden policy history", std::string(what),
                    "see tests/golden/policy/README.md");
}

absl::StatusOr<RegionId> region_of(const Json& name) {
  if (!name.is_string()) return malformed("a region is not a string");
  const std::optional<RegionId> region = region_from_name(name.get_ref<const std::string&>());
  if (!region.has_value()) return malformed(absl::StrCat("unknown region ", name.dump()));
  return *region;
}

absl::StatusOr<PolicyOptions> read_options(const Json& history) {
  PolicyOptions options{.sinks = kSinks, .recent = kRecent};
  options.name = history.value("policy", std::string());
  const bool pins = history.contains("pinned");
  if (pins || !absl::EndsWith(options.name, "+pin")) options.pinned.emplace();
  options.page_tokens = history.value("page_tokens", 16U);
  options.regions = policy::default_regions();
  const Json worths = history.value("b", Json::object());
  for (const auto& [name, b] : worths.items()) {
    const absl::StatusOr<RegionId> region = region_of(name);
    if (!region.ok()) return region.status();
    if (!b.is_number()) return malformed("a b is not a number");
    options.regions[*region].b = b.get<double>();
  }
  const Json half_lives = history.value("half_life", Json::object());
  for (const auto& [name, half_life] : half_lives.items()) {
    const absl::StatusOr<RegionId> region = region_of(name);
    if (!region.ok()) return region.status();
    if (!half_life.is_number()) return malformed("a half_life is not a number");
    options.regions[*region].half_life = half_life.get<double>();
  }
  for (const Json& name : history.value("pinned", Json::array())) {
    const absl::StatusOr<RegionId> region = region_of(name);
    if (!region.ok()) return region.status();
    options.pinned->push_back(*region);
  }
  return options;
}

absl::StatusOr<std::vector<RegionRun>> read_runs(const Json& event, const Policy& subject) {
  std::vector<RegionRun> runs;
  uint32_t tokens = 0;
  for (const Json& pair : event.value("regions", Json::array())) {
    if (!pair.is_array() || pair.size() != 2) return malformed("a run is not [region, tokens]");
    const absl::StatusOr<RegionId> region = region_of(pair[0]);
    if (!region.ok()) return region.status();
    runs.push_back({.region = *region, .tokens = pair[1].get<uint16_t>()});
    tokens += runs.back().tokens;
  }
  if (tokens != subject.options().page_tokens) return malformed("a page is not full");
  return runs;
}

// One history against one policy.
class Run {
 public:
  Run(std::unique_ptr<Policy> subject, std::string name)
      : subject_(std::move(subject)), result_{.policy = std::move(name)} {}

  absl::Status apply(const Json& event);
  GoldenResult take() { return std::move(result_); }

 private:
  absl::Status seal(const Json& event);
  absl::Status retag(const Json& event);
  absl::Status observe(const Json& attend);
  absl::Status evict(const Json& event);
  absl::Status apply_to_page(std::string_view kind, PageIndex page);
  void compare(const Json& pages, const Json& scores, std::string_view kind);
  void compare_scores(const std::vector<Victim>& victims, const Json& scores,
                      std::string_view where);
  void differ(std::string text) {
    if (result_.differences.size() < kMostDifferences) {
      result_.differences.push_back(std::move(text));
    }
  }

  std::unique_ptr<Policy> subject_;
  GoldenResult result_;
};

absl::Status Run::apply(const Json& event) {
  ++result_.events;
  subject_->on_step(event.value("t", subject_->now()));
  if (event.contains("seal")) return seal(event);
  if (event.contains("retag")) return retag(event);
  if (event.contains("attend")) return observe(event["attend"]);
  if (event.contains("evict")) return evict(event);
  if (event.contains("order")) {
    compare(event["order"], event.value("scores", Json::array()), "order");
    return absl::OkStatus();
  }
  for (const char* kind : {"pin", "unpin", "restore"}) {
    if (event.contains(kind)) return apply_to_page(kind, event[kind].get<PageIndex>());
  }
  return malformed(absl::StrCat("unknown event ", event.dump().substr(0, 80)));
}

absl::Status Run::seal(const Json& event) {
  const PageIndex page = event["seal"].get<PageIndex>();
  const absl::StatusOr<std::vector<RegionRun>> runs = read_runs(event, *subject_);
  if (!runs.ok()) return runs.status();
  if (subject_->sealed(page)) return malformed(absl::StrCat("page ", page, " is sealed twice"));
  subject_->on_seal(page, *runs);
  return absl::OkStatus();
}

absl::Status Run::retag(const Json& event) {
  const PageIndex page = event["retag"].get<PageIndex>();
  const absl::StatusOr<std::vector<RegionRun>> runs = read_runs(event, *subject_);
  if (!runs.ok()) return runs.status();
  if (!subject_->sealed(page)) return malformed(absl::StrCat("page ", page, " is not sealed"));
  subject_->on_retag(page, *runs);
  return absl::OkStatus();
}

absl::Status Run::evict(const Json& event) {
  compare(event["evict"], event.value("scores", Json::array()), "evict");
  for (const Json& entry : event["evict"]) {
    const PageIndex page = entry.get<PageIndex>();
    if (!subject_->resident(page)) return malformed(absl::StrCat("page ", page, " is not there"));
    subject_->on_evicted(page);
  }
  return absl::OkStatus();
}

absl::Status Run::apply_to_page(std::string_view kind, PageIndex page) {
  if (!subject_->sealed(page)) return malformed(absl::StrCat("page ", page, " is not sealed"));
  if (kind == "pin") {
    subject_->on_pin(page);
  } else if (kind == "unpin") {
    subject_->on_unpin(page);
  } else if (subject_->resident(page)) {
    return malformed(absl::StrCat("page ", page, " is restored but was never away"));
  } else {
    subject_->on_restored(page);
  }
  return absl::OkStatus();
}

absl::Status Run::observe(const Json& attend) {
  std::vector<PageMass> masses;
  const Json by_page = attend.value("masses", Json::object());
  for (const auto& [page, mass] : by_page.items()) {
    PageIndex index = 0;
    if (!absl::SimpleAtoi(page, &index)) return malformed("a mass is not by page");
    masses.push_back({.page = index, .mass = mass.get<double>()});
  }
  subject_->on_observe({.step = subject_->now(),
                        .query_position = attend.value("query_position", uint64_t{0}),
                        .queries = attend.value("queries", 1U),
                        .sink = attend.value("sink", 0.0),
                        .tail = attend.value("tail", 0.0),
                        .rest = attend.value("rest", 0.0),
                        .masses = masses});
  return absl::OkStatus();
}

void Run::compare(const Json& pages, const Json& scores, std::string_view kind) {
  ++result_.decisions;
  // An `order` names every possible victim: one more must not be found.
  const size_t asked = pages.size() + (kind == "order" ? 1 : 0);
  const std::vector<Victim> victims =
      subject_->lowest(asked, policy::Activity::kActive, [](PageIndex) { return true; });
  result_.victims += victims.size();
  const std::string where = absl::StrCat(as_absl(kind), " at t=", subject_->now());
  std::vector<PageIndex> chosen;
  for (const Victim& victim : victims) chosen.push_back(victim.page);
  if (chosen != pages.get<std::vector<PageIndex>>()) {
    differ(
        absl::StrCat(where, ": chose [", absl::StrJoin(chosen, ","), "], expected ", pages.dump()));
    return;
  }
  compare_scores(victims, scores, where);
}

void Run::compare_scores(const std::vector<Victim>& victims, const Json& scores,
                         std::string_view where) {
  if (scores.size() != victims.size()) {
    differ(absl::StrCat(as_absl(where), ": ", victims.size(), " scores, expected ", scores.size()));
    return;
  }
  for (size_t i = 0; i < victims.size(); ++i) {
    const double expected = scores[i].get<double>();
    const double error =
        std::abs(victims[i].score - expected) / std::max(std::abs(expected), 1e-300);
    result_.worst_relative_error = std::max(result_.worst_relative_error, error);
    if (!(error <= kTolerance)) {
      differ(absl::StrCat(as_absl(where), ": page ", victims[i].page, " scores ", victims[i].score,
                          ", expected ", expected));
    }
  }
}

}  // namespace

absl::StatusOr<GoldenResult> run_golden_history(std::string_view json) {
  const Json history = Json::parse(json.begin(), json.end(), nullptr, false);
  if (history.is_discarded() || !history.is_object()) return malformed("not a JSON object");
  if (!history.contains("events") || !history["events"].is_array()) return malformed("no events");
  try {
    const absl::StatusOr<PolicyOptions> options = read_options(history);
    if (!options.ok()) return options.status();
    absl::StatusOr<std::unique_ptr<Policy>> subject = policy::make_policy(*options);
    if (!subject.ok()) return subject.status();
    Run run(*std::move(subject), options->name);
    for (const Json& event : history["events"]) {
      const absl::Status status = run.apply(event);
      if (!status.ok()) return status;
    }
    return run.take();
  } catch (const Json::exception& wrong_type) {
    return malformed(wrong_type.what());
  }
}

}  // namespace memdecay::test
