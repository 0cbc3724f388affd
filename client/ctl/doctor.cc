// The rules (see doctor.h), in the order in which they are told.
#include "client/ctl/doctor.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memdecay::ctl {
namespace {

constexpr const char* kForgotten = "instructions forgotten";
constexpr const char* kIncoherent = "incoherent turns";
constexpr const char* kNotFalling = "memory not falling";
constexpr const char* kThrash = "thrash";
constexpr const char* kSlow = "slow steps";

// Fewer events than these prove nothing.
constexpr uint64_t kEvictions = 20;
constexpr uint64_t kLookups = 50;
constexpr uint64_t kPages = 50;
constexpr uint64_t kThrashes = 5;
constexpr uint64_t kSkips = 100;

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(uint64_t part, uint64_t whole) {
  return absl::StrFormat("%.0f %%", share(part, whole) * 100);
}

uint64_t count_of(const google::protobuf::RepeatedPtrField<v1::Count>& counts,
                  const std::string& name) {
  for (const v1::Count& count : counts) {
    if (count.name() == name) return count.value();
  }
  return 0;
}

uint64_t sum_of(const google::protobuf::RepeatedPtrField<v1::Count>& counts) {
  uint64_t sum = 0;
  for (const v1::Count& count : counts) sum += count.value();
  return sum;
}

uint64_t evictions_of(const v1::GetFiguresResponse& f) {
  uint64_t sum = 0;
  for (const v1::RegionFigures& region : f.regions()) sum += region.evictions();
  return sum;
}

bool has_half_lives(const std::string& policy) { return absl::StartsWith(policy, "memdecay"); }

using Findings = std::vector<Finding>;

void pins_overflow(const v1::GetFiguresResponse& f, Findings& out) {
  if (f.pin_overflows() == 0) return;
  out.push_back(
      {"pin_overflow", kForgotten,
       absl::StrCat("pages of pinned regions lost their protection ", f.pin_overflows(),
                    " times: they do not fit the pin budget of ", f.pin_budget_pages(), " pages"),
       "raise pin_budget, or tag less text as system", "pin_budget"});
}

// A system page that leaves a session is the prompt itself.
void system_leaves(const v1::GetFiguresResponse& f, Findings& out) {
  for (const v1::RegionFigures& region : f.regions()) {
    if (region.name() != "system" || region.pinned() || region.evictions() == 0) continue;
    out.push_back(
        {"system_leaves", kForgotten,
         absl::StrCat(region.evictions(), " system pages were chosen to leave; policy ", f.policy(),
                      " does not pin them"),
         absl::StrCat("pin them: policy.pinned [system], or policy.name ", f.policy(), "+pin"),
         "policy.pinned"});
  }
}

// One page in five comes back: its region decays too fast, or there is too little room.
void regrets(const v1::GetFiguresResponse& f, Findings& out) {
  for (const v1::RegionFigures& region : f.regions()) {
    if (region.evictions() < kEvictions || share(region.regrets(), region.evictions()) < 0.2) {
      continue;
    }
    const double half_life = region.half_life_tokens();
    const bool tunable = has_half_lives(f.policy()) && std::isfinite(half_life);
    const std::string key = absl::StrCat("policy.regions.", region.name(), ".half_life_tokens");
    out.push_back({"regret", region.name() == "system" ? kForgotten : kIncoherent,
                   absl::StrCat(region.name(), " pages come back often: ", region.regrets(), " of ",
                                region.evictions(), " evictions returned within ", f.regret_steps(),
                                " steps"),
                   tunable ? absl::StrFormat("raise half_life of %s (%g -> %g)", region.name(),
                                             half_life, half_life * 2)
                           : std::string("raise the sessions' budgets"),
                   tunable ? key : "budget"});
  }
}

void waiting_sessions_fetch(const v1::GetFiguresResponse& f, Findings& out) {
  uint64_t back = 0;
  for (const v1::RegionFigures& region : f.regions()) back += region.idle_regrets();
  const uint64_t all = evictions_of(f);
  if (all < kEvictions || share(back, all) < 0.2) return;
  out.push_back({"idle_regret", kSlow,
                 absl::StrCat("pages of waiting sessions are fetched back at once: ", back, " of ",
                              all, " evictions returned within ",
                              absl::StrFormat("%g s", static_cast<double>(f.regret_ms()) / 1e3)),
                 "raise device.pages, or run fewer sessions at a time", "device.pages"});
}

void thrash(const v1::GetFiguresResponse& f, Findings& out) {
  const uint64_t all = evictions_of(f);
  if (f.thrashes() < kThrashes || share(f.thrashes(), all) < 0.05) return;
  out.push_back({"thrash", kThrash,
                 absl::StrCat("pages go back and forth: ", f.thrashes(), " of ", all,
                              " evictions hit a page that had just come back"),
                 "raise the budget of these sessions (memdecayctl decisions names them), or lower "
                 "watermark.low so that more leaves at once",
                 "watermark.low"});
}

// Recall is promised, equality is not: beyond a third of the pages it shows.
void approximate(const v1::GetFiguresResponse& f, Findings& out) {
  if (f.pages() < kPages || share(f.approximate_pages(), f.pages()) < 0.33) return;
  out.push_back({"approximate", kIncoherent,
                 absl::StrCat(f.approximate_pages(), " of ", f.pages(),
                              " pages were computed while an earlier page was missing (",
                              percent(f.approximate_pages(), f.pages()), ")"),
                 "raise the budgets of lossy sessions, repair them at a pause, or open them exact",
                 "mode"});
}

void lookups(const v1::GetFiguresResponse& f, Findings& out) {
  const uint64_t all = sum_of(f.lookups());
  const uint64_t missed = count_of(f.lookups(), "miss");
  if (all < kLookups || share(missed, all) < 0.8) return;
  out.push_back(
      {"lookups_miss", kSlow,
       absl::StrCat(missed, " of ", all, " look-ups found nothing (", percent(missed, all), ")"),
       "if prompts do begin alike, look for a layout or extra key that differs between "
       "engines, then raise host.pages",
       "host.pages"});
}

// What leaves has nowhere to go.
void host_tier(const v1::GetFiguresResponse& f, Findings& out) {
  const uint64_t gone = f.host_dropped() + f.store_rejected();
  const bool none = std::none_of(f.tiers().begin(), f.tiers().end(), [](const v1::TierStatus& t) {
    return t.tier() == v1::TIER_HOST && (t.limit_bytes() > 0 || t.limit_pages() > 0);
  });
  const uint64_t all = evictions_of(f);
  if (f.lost_pages() == 0 && (gone < kEvictions || share(gone, all + gone) < 0.2)) return;
  out.push_back({"host_full", f.lost_pages() > 0 ? kIncoherent : kSlow,
                 absl::StrCat(none ? "there is no host tier" : "the host tier is too small", ": ",
                              f.lost_pages(), " pages of sessions were lost for good, ", gone,
                              " were dropped or not taken"),
                 "raise host.bytes (or host.pages)", "host.bytes"});
}

std::string what_holds(const std::string& reason) {
  if (reason == "exact_mode_running") return "let sessions wait (park), or open some lossy";
  if (reason == "pinned") return "unpin pages, or raise device.pages";
  if (reason == "leased") return "release leases, or lower lease_ms";
  if (reason == "in_use") return "see that engines answer: memdecayctl sessions";
  if (reason == "shared") return "sessions share these pages: raise device.pages";
  if (reason == "reservation") return "lower tenants[].reservation";
  return "raise device.pages";
}

void nothing_leaves(const v1::GetFiguresResponse& f, Findings& out) {
  const uint64_t skipped = sum_of(f.skipped());
  if (f.exhausted() == 0 || skipped < kSkips || share(skipped, skipped + evictions_of(f)) < 0.9) {
    return;
  }
  const auto& most = *std::max_element(
      f.skipped().begin(), f.skipped().end(),
      [](const v1::Count& a, const v1::Count& b) { return a.value() < b.value(); });
  out.push_back({"nothing_leaves", kNotFalling,
                 absl::StrCat(f.exhausted(), " requests found no room, and pages were passed over ",
                              skipped, " times, mostly for ", most.name(), " (", most.value(),
                              "), against ", evictions_of(f), " that left"),
                 what_holds(most.name()), "device.pages"});
}

void late_answers(const v1::GetFiguresResponse& f, Findings& out) {
  if (f.asked() < kEvictions || share(f.late_answers(), f.asked()) < 0.05) return;
  out.push_back({"late_answers", kSlow,
                 absl::StrCat("engines answer late: ", f.late_answers(), " of ", f.asked(),
                              " pages that were asked back came after limits.ack_ms"),
                 "poll the client between steps more often, make prefill chunks shorter, or lower "
                 "watermark.high so that less is asked in a hurry",
                 "limits.ack_ms"});
}

}  // namespace

std::vector<Finding> diagnose(const v1::GetFiguresResponse& figures) {
  Findings findings;
  for (const auto rule : {pins_overflow, system_leaves, host_tier, regrets, approximate, thrash,
                          nothing_leaves, late_answers, waiting_sessions_fetch, lookups}) {
    rule(figures, findings);
  }
  return findings;
}

std::string render(const std::vector<Finding>& findings, const v1::GetFiguresResponse& figures) {
  if (findings.empty()) {
    return absl::StrCat("healthy: ", evictions_of(figures), " evictions, ",
                        sum_of(figures.lookups()), " look-ups, nothing to advise\n");
  }
  std::string out;
  for (const Finding& finding : findings) {
    absl::StrAppend(&out, finding.symptom, " [", finding.name, "]\n  ", finding.seen, "\n  -> ",
                    finding.advice, "\n");
  }
  return out;
}

}  // namespace memdecay::ctl
