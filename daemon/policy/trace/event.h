// What a trace says: the events of one recorded daemon as values, and the line that each one is
// written as. The format is JSON lines (proto/TRACE.md): a header, then one event a line. One
// writer for all who record, so that what one writes another reads; parser.h is the reader.
//
// No token text and no token ids travel: pages are numbers of their session, contents are salted
// hashes.
// Thread: values, any. Pure. Bounds: what one event may hold stands below; a recorder keeps to it,
// the parser refuses more.
// Not here: files and gzip (client/ctl/replay/lines.h), who records what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/policy/policy.h"
#include "proto/contract/ids.h"

namespace memdecay::trace {

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kMostInAList = size_t{1} << 20;  // pages, keys or masses of one event
inline constexpr size_t kMostRegions = 1024;
inline constexpr size_t kLongestText = 256;

using policy::PageMass;
using policy::RegionRun;
using policy::Step;

// Numbers of sessions and tenants are the trace's own.
using SessionNumber = uint64_t;

struct Header {
  uint32_t page_tokens = 16;
  uint32_t sinks = 4;                // positions at the start of a session that soak up attention
  std::vector<std::string> regions;  // by RegionId
  uint64_t started_unix = 0;         // seconds; 0: not told
};

struct Opened {
  uint64_t tenant = 0;
  std::string mode;    // exact or lossy
  std::string policy;  // what scored it while it was recorded
  // kOld: it was there before the recording; the time of its pages' seals is not theirs.
  enum class Born : uint8_t { kHere, kOld } born = Born::kHere;
};
struct Sealed {
  PageIndex page = 0;
  uint32_t tokens = 0;
  std::vector<RegionRun> runs;  // in position order; their tokens sum to `tokens`
  std::optional<uint64_t> key;  // salted name of the content; none: approximate
  std::optional<uint32_t> depth;
};
struct Tagged {
  PageIndex page = 0;
  std::vector<RegionRun> runs;
};
// The same numbers as policy::Observation.
struct Observed {
  Step step = 0;
  uint64_t query_position = 0;  // of the last observing query
  uint32_t queries = 1;
  double sink = 0.0;
  double tail = 0.0;
  double rest = 0.0;
  std::vector<PageMass> masses;
  std::string channel;  // which layers and heads; empty: what the daemon was sent
};
struct Stepped {
  Step step = 0;
};
struct Pinned {
  std::vector<PageIndex> pages;
};
struct Unpinned {
  std::vector<PageIndex> pages;
};
struct Left {  // out of the session's view
  std::vector<PageIndex> pages;
  std::string why;
};
struct Returned {
  std::vector<PageIndex> pages;
};
struct Became {
  std::string state;
};
struct Forked {  // the event's session is the new one
  SessionNumber of = 0;
};
struct Cut {  // only pages < page are left
  PageIndex page = 0;
};
struct Looked {  // a prefix look-up: keys of its whole blocks in order
  std::vector<uint64_t> keys;
  uint32_t hit = 0;
  enum class Tail : uint8_t { kNone, kPartial } tail = Tail::kNone;
  enum class Taken : uint8_t { kAcquired, kPeek } taken = Taken::kAcquired;
};
struct Ended {};
struct Lost {  // the recorder dropped that many events here
  uint64_t events = 0;
};

using What = std::variant<Opened, Sealed, Tagged, Observed, Stepped, Pinned, Unpinned, Left,
                          Returned, Became, Forked, Cut, Looked, Ended, Lost>;

struct Event {
  uint64_t at_ms = 0;         // since the header; never before the event before it
  SessionNumber session = 0;  // 0 in Lost, and in a look-up of nobody's
  What what = Ended{};
};

// One line without its newline. Every number is finite (what the ledger has checked).
std::string to_line(const Header& header);
std::string to_line(const Event& event);
// The same, behind what `out` holds: for recorders that write a lot.
void append_line(const Event& event, std::string& out);

}  // namespace memdecay::trace
