// Reports: what status, sessions, pages, explain and the metrics say, read from the state of the
// ledger as plain values. Nothing here changes anything.
// Thread: the ledger's (the reactor runs inspections there); the values travel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/ledger.h"
#include "daemon/policy/policy.h"

namespace memdecay::ledger {

// Where the bytes of a page are now.
struct Whereabouts {
  bool device = false;
  bool host = false;
  bool clean = false;        // device and host both valid
  bool quarantined = false;  // its slot is
};

struct PageReport {
  PageView view;
  ContentId content;
  Whereabouts where;
  std::vector<std::pair<RegionId, uint32_t>> regions;  // tokens per region
  double score = 0;
  std::string key_hex;         // empty: no content key
  std::vector<Reason> spared;  // why it would not be chosen now
};

struct SessionReport {
  SessionId session;
  std::string name;
  std::string tenant;
  EngineId engine;
  SessionState state = SessionState::kDecoding;
  Mode mode = Mode::kExact;
  std::string policy;
  std::vector<policy::OptionWord> policy_options;  // in effect, where they are not the daemon's
  int32_t priority = 0;
  uint32_t budget_pages = 0;
  uint32_t pages = 0;
  uint32_t resident_pages = 0;
  uint32_t hole_pages = 0;
  uint32_t dropped_pages = 0;
  uint32_t approximate_pages = 0;
  uint32_t position = 0;
  uint64_t step = 0;
  enum class Ready : uint8_t { kNo, kYes } ready = Ready::kYes;
};

struct TierReport {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;
  uint32_t used_pages = 0;
  uint32_t limit_pages = 0;
  std::string retention;  // decay or lru
  double h_s = 0;         // decay: seconds of recency that one doubling of use is worth now
  uint64_t hits = 0;      // uses that found the page in the tier, and that did not
  uint64_t misses = 0;
  std::string admission;  // what is worth storing
};

struct StatusReport {
  std::array<uint32_t, kSlotStates> slots{};
  TierReport device;
  TierReport host;
  uint32_t sessions = 0;
  uint32_t entries = 0;  // keys that Lookup can find
  uint32_t leases = 0;
  uint32_t pinned_pages = 0;
  uint32_t copies_in_flight = 0;
  uint32_t waiting_requests = 0;
  std::array<uint32_t, kEngineStates> engines{};
};

// Why a page left, came back, or was dropped.
struct DecisionReport {
  DecisionId decision;
  Instant when;
  std::string kind;  // evict restore drop withdraw
  SessionId session;
  PageIndex page = 0;
  Reason reason = Reason::kScore;
  double score = 0;
  std::vector<std::pair<std::string, double>> terms;
  std::string pressure;      // "needed 2 slots, 0 free"
  std::string first_spared;  // "session a page 7: score -1.2", "… , pinned; then …"
  std::string saved_by;  // "a pin; b of user >= 0.83; half_life of user >= 44; budget + 3 pages"
};

// A metric sample: name without the prefix, label pairs in vocabulary order, value.
struct Sample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

StatusReport report_status(const Ledger& ledger);
std::vector<SessionReport> report_sessions(const Ledger& ledger, TenantId tenant);  // 0: all
absl::StatusOr<SessionReport> report_session(const Ledger& ledger, SessionId session);
absl::StatusOr<std::vector<PageReport>> report_pages(const Ledger& ledger, SessionId session);
// The session of that name (tenant 0: any tenant).
std::optional<SessionId> find_session(const Ledger& ledger, TenantId tenant,
                                      const std::string& name);
// The last decisions about a page (newest first), and one by its number.
std::vector<DecisionReport> report_decisions(const Ledger& ledger, SessionId session,
                                             std::optional<PageIndex> page);
absl::StatusOr<DecisionReport> report_decision(const Ledger& ledger, DecisionId decision);
// Victims that the session's policy would choose now, lowest first.
std::vector<std::pair<PageIndex, double>> report_victims(const Ledger& ledger, SessionId session,
                                                         uint32_t count);
// The addends of the page's score now.
std::vector<std::pair<std::string, double>> report_terms(const Ledger& ledger, SessionId session,
                                                         PageIndex page);
// The last `most` decisions, of one session or (0) of all; newest first.
std::vector<DecisionReport> report_last_decisions(const Ledger& ledger, SessionId session,
                                                  size_t most);

// What decisions have come to since the start.
struct RegionFigures {
  std::string name;
  double b = 0;
  double half_life_tokens = 0;
  enum class Pinned : uint8_t { kNo, kYes } pinned = Pinned::kNo;
  uint64_t evictions = 0;  // by choice
  uint64_t regrets = 0;
  uint64_t idle_regrets = 0;
};
struct Figures {
  std::string policy;
  std::vector<RegionFigures> regions;
  uint64_t thrashes = 0;
  uint64_t asked = 0;
  uint32_t regret_steps = 0;
  Duration regret;
  uint32_t pin_budget_pages = 0;
  uint64_t pages = 0;
  uint64_t approximate_pages = 0;
};
Figures report_figures(const Ledger& ledger);
// A counter of the metrics by its name and labels ("result=hit"), 0 if nothing was counted; and
// all values of one that has a single label, by the label's value.
uint64_t report_count(const Ledger& ledger, const std::string& name, const std::string& labels);
std::vector<std::pair<std::string, uint64_t>> report_counts(const Ledger& ledger,
                                                            const std::string& name);
std::vector<Sample> report_metrics(const Ledger& ledger);
// Copies in flight: for tests that hold, finish and fail them by page.
std::vector<StartCopy> report_copies(const Ledger& ledger);

}  // namespace memdecay::ledger
