// What the fields of a line mean (see parser.h).
#include "daemon/policy/trace/parser.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/policy/trace/fields.h"
#include "proto/contract/error.h"

namespace memdecay::trace {

struct Parser::Fields : LineFields {};

namespace {

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kWord = std::numeric_limits<uint32_t>::max();
constexpr double kLatestSecond = 9e9;  // what nanoseconds can hold
constexpr uint32_t kMostPageTokens = std::numeric_limits<uint16_t>::max();

// The event's own kind, kept where the line before was of that kind too: its vectors have memory.
template <typename Kind>
Kind& as(What& what) {
  Kind* kept = std::get_if<Kind>(&what);
  return kept != nullptr ? *kept : what.emplace<Kind>();
}

PageIndex page(LineFields& fields) { return static_cast<PageIndex>(fields.whole(Name::kP, kWord)); }

void take_sealed(LineFields& fields, Sealed& out) {
  out.page = page(fields);
  out.tokens = static_cast<uint32_t>(fields.whole(Name::kN, kMostPageTokens));
  fields.runs(Name::kR, out.runs);
  uint64_t sum = 0;
  for (const RegionRun& run : out.runs) sum += run.tokens;
  if (sum != out.tokens) {
    fields.complain(absl::StrCat("its runs have ", sum, " tokens and n is ", out.tokens));
  }
  out.key.reset();
  out.depth.reset();
  if (fields.has(Name::kK)) out.key = fields.key(Name::kK);
  if (fields.has(Name::kD)) out.depth = static_cast<uint32_t>(fields.whole(Name::kD, kWord));
}

void take_observed(LineFields& fields, Observed& out) {
  out.step = fields.whole(Name::kStep, kAny);
  out.query_position = fields.whole(Name::kQ, kAny);
  out.queries = static_cast<uint32_t>(fields.whole_or(Name::kNq, kWord, 1));
  out.sink = fields.share(Name::kSink);
  out.tail = fields.share(Name::kTail);
  out.rest = fields.share(Name::kRest);
  fields.masses(Name::kM, out.masses);
  out.channel.clear();
  if (fields.has(Name::kC)) out.channel = fields.text(Name::kC);
}

void take_looked(LineFields& fields, Looked& out) {
  fields.keys(Name::kK, out.keys);
  out.hit = static_cast<uint32_t>(fields.whole(Name::kHit, kWord));
  const bool partial = fields.whole_or(Name::kTail, 1, 0) == 1;
  const bool peek = fields.whole_or(Name::kPeek, 1, 0) == 1;
  out.tail = partial ? Looked::Tail::kPartial : Looked::Tail::kNone;
  out.taken = peek ? Looked::Taken::kPeek : Looked::Taken::kAcquired;
}

// False: a kind that is not known.
bool take_kind(const std::string& kind, LineFields& fields, What& what) {
  if (kind == "obs") {
    take_observed(fields, as<Observed>(what));
  } else if (kind == "step") {
    as<Stepped>(what).step = fields.whole(Name::kStep, kAny);
  } else if (kind == "seal") {
    take_sealed(fields, as<Sealed>(what));
  } else if (kind == "tag") {
    as<Tagged>(what).page = page(fields);
    fields.runs(Name::kR, as<Tagged>(what).runs);
  } else if (kind == "open") {
    Opened& opened = as<Opened>(what);
    opened.tenant = fields.whole_or(Name::kTenant, kAny, 0);
    opened.mode = fields.has(Name::kMode) ? fields.text(Name::kMode) : "";
    opened.policy = fields.has(Name::kPolicy) ? fields.text(Name::kPolicy) : "";
    const bool old = fields.whole_or(Name::kOld, 1, 0) == 1;
    opened.born = old ? Opened::Born::kOld : Opened::Born::kHere;
  } else if (kind == "pin") {
    fields.pages(Name::kP, as<Pinned>(what).pages);
  } else if (kind == "unpin") {
    fields.pages(Name::kP, as<Unpinned>(what).pages);
  } else if (kind == "out") {
    fields.pages(Name::kP, as<Left>(what).pages);
    as<Left>(what).why = fields.has(Name::kWhy) ? fields.text(Name::kWhy) : "";
  } else if (kind == "in") {
    fields.pages(Name::kP, as<Returned>(what).pages);
  } else if (kind == "state") {
    as<Became>(what).state = fields.text(Name::kTo);
  } else if (kind == "fork") {
    as<Forked>(what).of = fields.whole(Name::kOf, kAny);
  } else if (kind == "cut") {
    as<Cut>(what).page = page(fields);
  } else if (kind == "look") {
    take_looked(fields, as<Looked>(what));
  } else if (kind == "end") {
    as<Ended>(what);
  } else if (kind == "lost") {
    as<Lost>(what).events = fields.whole(Name::kEvents, kAny);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Parser::Parser(std::string name) : name_(std::move(name)), fields_(std::make_unique<Fields>()) {}
Parser::~Parser() = default;
Parser::Parser(Parser&&) noexcept = default;

bool Parser::is_header(std::string_view text) {
  LineFields fields;
  return fields.read(text) && fields.has(Name::kTrace);
}

absl::Status Parser::refuse(uint64_t number, std::string there, std::string todo) const {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("trace ", name_, ", line ", number),
                    std::move(there), std::move(todo));
}

absl::Status Parser::take_header(uint64_t number) {
  Fields& f = *fields_;
  const std::string todo = "give a trace that memdecayd has recorded (proto/TRACE.md)";
  if (!f.has(Name::kTrace)) {
    return refuse(number, "the first line is no header: there is no memdecay_trace", todo);
  }
  const uint64_t version = f.whole(Name::kTrace, kAny);
  if (f.wrong().empty() && version != kVersion) {
    return refuse(number, absl::StrCat("the trace is of version ", version),
                  absl::StrCat("this program reads version ", kVersion));
  }
  header_.page_tokens = static_cast<uint32_t>(f.whole(Name::kPageTokens, kMostPageTokens));
  if (header_.page_tokens == 0) f.complain("page_tokens is 0");
  header_.sinks = static_cast<uint32_t>(f.whole(Name::kSinks, kWord));
  f.texts(Name::kRegions, header_.regions);
  if (header_.regions.empty()) f.complain("it names no regions");
  if (header_.regions.size() > kMostRegions) {
    f.complain(absl::StrCat("it names more than ", kMostRegions, " regions"));
  }
  header_.started_unix = f.whole_or(Name::kStarted, kAny, 0);
  if (!f.wrong().empty()) return refuse(number, absl::StrCat("in the header: ", f.wrong()), todo);
  has_header_ = true;
  return absl::OkStatus();
}

absl::StatusOr<const Event*> Parser::take(std::string_view text, uint64_t number) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return nullptr;
  Fields& f = *fields_;
  const std::string todo = "the format is in proto/TRACE.md; record it again, or drop this line";
  if (!f.read(text)) return refuse(number, f.wrong(), todo);
  ignored_fields_ += f.others();
  if (f.others() > 0) an_ignored_name_ = f.other();
  if (!has_header_) {
    if (absl::Status taken = take_header(number); !taken.ok()) return taken;
    return nullptr;
  }
  const double seconds = f.number(Name::kT);
  if (seconds < 0) f.complain(absl::StrCat("t is negative: ", seconds));
  if (!(seconds <= kLatestSecond)) f.complain(absl::StrCat("t is beyond this clock: ", seconds));
  const std::string kind = f.text(Name::kE);
  if (!f.wrong().empty()) return refuse(number, f.wrong(), todo);
  const auto at_ms = static_cast<uint64_t>(std::llround(seconds * 1e3));
  if (at_ms < event_.at_ms) {
    return refuse(number, "its time is before that of the event above it",
                  "sort the trace by t, or record it again");
  }
  event_.at_ms = at_ms;
  event_.session = f.whole_or(Name::kS, kAny, 0);
  if (!take_kind(kind, f, event_.what)) {
    ++ignored_events_;
    an_ignored_name_ = kind;
    return nullptr;
  }
  if (!f.wrong().empty()) return refuse(number, f.wrong(), todo);
  return &event_;
}

}  // namespace memdecay::trace
