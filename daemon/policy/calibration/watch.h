// Follows the sessions of a trace and turns each observation into lifts: how much more attention a
// page got than its even share, with the page's region, age and distance at that moment. Raw
// attention falls as 1/N and would make pages that last look mortal; lifts do not.
//
// Age: tokens that the session has generated since the page was sealed. Not since its last refresh:
// a page that was not refreshed for long is mostly one that is not needed any more, so lift against
// that age measures how often pages are used, not how long (see README.md).
// Distance: positions from the page's last token to the middle of the queries.
// A page counts for a region that has three quarters of its tokens; others count in the sums only.
//
// Thread: the owner's. Pure. Memory: the open sessions' pages, kMostPages of them all together;
// more is refused. Events that do not fit (a page that was never sealed) are counted, not fatal: a
// recorder may have lost some.
// Not here: what is made of the lifts (tally.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::calibration {

inline constexpr size_t kMostPages = size_t{8} << 20;     // of all open sessions
inline constexpr size_t kMostSessions = size_t{1} << 16;  // open at once
inline constexpr size_t kMostChannels = 1024;
inline constexpr RegionId kMixed = 0xffff;

struct PageLift {
  PageIndex page = 0;
  RegionId region = kMixed;
  uint16_t tokens = 0;  // without sinks
  uint64_t age = 0;
  uint64_t distance = 0;
  double lift = 0.0;  // against all movable tokens of the session: their mean is 1
  // Against the session's middle page at that moment. The mean goes up with each page that is in
  // use somewhere, the middle page hardly ever is: what others do does not show in it.
  double relative = 0.0;
};

struct Seen {
  uint64_t session = 0;  // from 1, unique over all traces
  uint64_t family = 0;   // from 1; sessions that share pages by forks have one
  policy::Step step = 0;
  uint32_t queries = 1;
  uint32_t channel = 0;  // index into Watch::channels()
  // Of generated tokens, or of a prompt, while which the clock stands.
  enum class Queries : uint8_t { kPrefill, kDecode } kind = Queries::kDecode;
  // Whether the seals' times are known: sessions that were there before the recording have none.
  enum class Ages : uint8_t { kKnown, kUnknown } ages = Ages::kKnown;
  absl::Span<const PageLift> pages;
};

struct WatchCounts {
  uint64_t sessions = 0;
  uint64_t pages = 0;
  uint64_t observations = 0;
  uint64_t no_mass = 0;        // too little on movable pages to say anything; skipped
  uint64_t beyond = 0;         // masses do not sum to 1 within the tolerance; skipped
  uint64_t unknown_pages = 0;  // named, but never sealed
  uint64_t lost = 0;           // events that the recorder left out
  uint64_t page_views = 0;     // pages times observations
  uint64_t absent_views = 0;   // of those, pages that had been evicted
};

class Watch {
 public:
  // A trace begins; sessions of the one before it are over. invalid_argument: its pages or regions
  // are not those of the one before.
  absl::Status begin(const trace::Header& header);

  // Calls `use` for an observation, once the event is one. resource_exhausted: more pages, sessions
  // or channels than the bounds above.
  absl::Status take(const trace::Event& event, absl::FunctionRef<void(const Seen&)> use);

  const WatchCounts& counts() const { return counts_; }
  // Names of channels, in the order of their first observation.
  const std::vector<std::string>& channels() const { return channels_; }

 private:
  struct Page {
    RegionId region = kMixed;
    uint16_t tokens = 0;  // all
    uint16_t sinks = 0;   // of those
    bool sealed = false;
    bool resident = true;
    bool pinned = false;
    policy::Step born = 0;
  };
  struct Session {
    uint64_t number = 0;
    uint64_t family = 0;
    policy::Step step = 0;
    trace::Opened::Born born = trace::Opened::Born::kHere;
    std::vector<Page> pages;
    std::vector<policy::Step> observed;  // step of the last observation, by channel
  };

  absl::Status seal(Session& session, const trace::Sealed& event);
  void observe(Session& session, const trace::Observed& seen,
               absl::FunctionRef<void(const Seen&)> use);
  template <typename Do>
  void each(Session& session, const std::vector<PageIndex>& pages, Do change);
  bool lifts(const Session& session, const trace::Observed& seen);
  double middle();
  bool movable(const Page& page) const { return !page.pinned && page.region != system_; }
  Page* find(Session& session, PageIndex page);
  RegionId region_of(const std::vector<trace::RegionRun>& runs, uint32_t tokens) const;
  std::optional<uint32_t> channel(const std::string& name);

  trace::Header header_;      // without regions: none has begun
  RegionId system_ = kMixed;  // protected by default, so not movable
  absl::flat_hash_map<trace::SessionNumber, Session> sessions_;
  absl::flat_hash_map<std::string, uint32_t> channel_numbers_;
  std::vector<std::string> channels_;
  size_t open_pages_ = 0;
  WatchCounts counts_;
  std::vector<double> mass_;  // scratch, by page
  std::vector<PageLift> lifts_;
  std::vector<double> order_;
};

}  // namespace memdecay::calibration
