// Sessions, and lifts out of masses (see watch.h).
#include "daemon/policy/calibration/watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::calibration {
namespace {

constexpr double kTolerance = 1e-3;       // of a sum of shares that travelled with six digits
constexpr double kLeastMass = 1.0 / 256;  // memdecay_n's
constexpr uint32_t kRegionParts = 4;  // a page is of a region that has three parts of its tokens

absl::Status too_many(const char* what, size_t most) {
  return make_error(ErrorCode::kResourceExhausted, absl::StrCat("to follow the trace's ", what),
                    absl::StrCat("there are more than ", most, " at once"),
                    "calibrate on a part of the trace");
}

}  // namespace

absl::Status Watch::begin(const trace::Header& header) {
  const bool first = header_.regions.empty();
  if (!first && (header.regions != header_.regions || header.page_tokens != header_.page_tokens)) {
    return make_error(ErrorCode::kInvalidArgument, "to calibrate on these traces together",
                      "they differ in their regions or in the tokens of a page",
                      "calibrate on traces of one configuration");
  }
  header_ = header;
  sessions_.clear();
  open_pages_ = 0;
  for (size_t i = 0; i < header.regions.size(); ++i) {
    if (header.regions[i] == region_name(region_id(Region::kSystem))) {
      system_ = static_cast<RegionId>(i);
    }
  }
  return absl::OkStatus();
}

RegionId Watch::region_of(const std::vector<trace::RegionRun>& runs, uint32_t tokens) const {
  for (const trace::RegionRun& run : runs) {
    uint32_t of_region = 0;
    for (const trace::RegionRun& other : runs) {
      if (other.region == run.region) of_region += other.tokens;
    }
    if (of_region * kRegionParts >= tokens * (kRegionParts - 1)) return run.region;
  }
  return kMixed;
}

Watch::Page* Watch::find(Session& session, PageIndex page) {
  const bool there = page < session.pages.size() && session.pages[page].sealed;
  if (!there) ++counts_.unknown_pages;
  return there ? &session.pages[page] : nullptr;
}

template <typename Do>
void Watch::each(Session& session, const std::vector<PageIndex>& pages, Do change) {
  for (const PageIndex page : pages) {
    if (Page* found = find(session, page); found != nullptr) change(*found);
  }
}

std::optional<uint32_t> Watch::channel(const std::string& name) {
  const auto [at, is_new] =
      channel_numbers_.try_emplace(name, static_cast<uint32_t>(channels_.size()));
  if (is_new) {
    if (channels_.size() == kMostChannels) {
      channel_numbers_.erase(at);
      return std::nullopt;
    }
    channels_.push_back(name);
  }
  return at->second;
}

absl::Status Watch::seal(Session& session, const trace::Sealed& event) {
  const size_t before = session.pages.size();
  if (event.page >= before) {
    open_pages_ += event.page + size_t{1} - before;
    if (open_pages_ > kMostPages) return too_many("pages", kMostPages);
    session.pages.resize(event.page + size_t{1});
  }
  Page& page = session.pages[event.page];
  page = Page{};
  page.sealed = true;
  page.tokens = static_cast<uint16_t>(event.tokens);
  const uint64_t first = uint64_t{event.page} * header_.page_tokens;
  page.sinks = static_cast<uint16_t>(
      std::min<uint64_t>(header_.sinks > first ? header_.sinks - first : 0, event.tokens));
  page.region = region_of(event.runs, event.tokens);
  page.born = session.step;
  ++counts_.pages;
  return absl::OkStatus();
}

absl::Status Watch::take(const trace::Event& event, absl::FunctionRef<void(const Seen&)> use) {
  if (const auto* lost = std::get_if<trace::Lost>(&event.what)) {
    counts_.lost += lost->events;
    return absl::OkStatus();
  }
  if (event.session == 0) return absl::OkStatus();  // a look-up of nobody's
  if (std::holds_alternative<trace::Ended>(event.what)) {
    if (const auto ended = sessions_.find(event.session); ended != sessions_.end()) {
      open_pages_ -= ended->second.pages.size();
      sessions_.erase(ended);
    }
    return absl::OkStatus();
  }
  const auto [at, is_new] = sessions_.try_emplace(event.session);
  Session& session = at->second;
  if (is_new) {
    if (sessions_.size() > kMostSessions) return too_many("sessions", kMostSessions);
    session.family = session.number = ++counts_.sessions;
  }
  if (const auto* e = std::get_if<trace::Opened>(&event.what)) {
    session.born = e->born;
  } else if (const auto* sealed = std::get_if<trace::Sealed>(&event.what)) {
    return seal(session, *sealed);
  } else if (const auto* tagged = std::get_if<trace::Tagged>(&event.what)) {
    if (Page* page = find(session, tagged->page)) {
      page->region = region_of(tagged->runs, page->tokens);
    }
  } else if (const auto* stepped = std::get_if<trace::Stepped>(&event.what)) {
    session.step = std::max(session.step, stepped->step);
  } else if (const auto* pinned = std::get_if<trace::Pinned>(&event.what)) {
    each(session, pinned->pages, [](Page& page) { page.pinned = true; });
  } else if (const auto* unpinned = std::get_if<trace::Unpinned>(&event.what)) {
    each(session, unpinned->pages, [](Page& page) { page.pinned = false; });
  } else if (const auto* left = std::get_if<trace::Left>(&event.what)) {
    each(session, left->pages, [](Page& page) { page.resident = false; });
  } else if (const auto* back = std::get_if<trace::Returned>(&event.what)) {
    each(session, back->pages, [](Page& page) { page.resident = true; });
  } else if (const auto* cut = std::get_if<trace::Cut>(&event.what)) {
    const size_t kept = std::min<size_t>(cut->page, session.pages.size());
    open_pages_ -= session.pages.size() - kept;
    session.pages.resize(kept);
  } else if (const auto* forked = std::get_if<trace::Forked>(&event.what)) {
    const auto parent = sessions_.find(forked->of);
    if (parent != sessions_.end() && parent != at) {
      const trace::SessionNumber of = forked->of;
      open_pages_ += parent->second.pages.size() - session.pages.size();
      const uint64_t number = session.number;
      session = sessions_.at(of);
      session.number = number;
      if (open_pages_ > kMostPages) return too_many("pages", kMostPages);
    }
  } else if (const auto* seen = std::get_if<trace::Observed>(&event.what)) {
    if (!channel(seen->channel)) return too_many("channels", kMostChannels);
    observe(session, *seen, use);
  }
  return absl::OkStatus();
}

void Watch::observe(Session& session, const trace::Observed& seen,
                    absl::FunctionRef<void(const Seen&)> use) {
  ++counts_.observations;
  Seen out;
  out.session = session.number;
  out.family = session.family;
  out.channel = *channel(seen.channel);
  if (session.observed.size() <= out.channel) session.observed.resize(out.channel + size_t{1}, 0);
  policy::Step& observed = session.observed[out.channel];
  // Queries of generated tokens are never more than the tokens since the last observation.
  out.kind =
      observed + seen.queries <= seen.step ? Seen::Queries::kDecode : Seen::Queries::kPrefill;
  observed = seen.step;
  session.step = std::max(session.step, seen.step);
  out.step = session.step;
  out.queries = seen.queries;
  out.ages = session.born == trace::Opened::Born::kOld ? Seen::Ages::kUnknown : Seen::Ages::kKnown;
  if (seen.queries == 0 || !lifts(session, seen)) return;
  out.pages = lifts_;
  use(out);
}

// Of the pages' attention per token, the one in the middle; of those that have any, if it has none.
double Watch::middle() {
  order_.clear();
  for (const PageLift& page : lifts_) order_.push_back(page.lift);
  const auto middle = order_.begin() + static_cast<ptrdiff_t>(order_.size() / 2);
  std::nth_element(order_.begin(), middle, order_.end());
  if (*middle > 0) return *middle;
  double least = std::numeric_limits<double>::infinity();
  for (const double one : order_) {
    if (one > 0) least = std::min(least, one);
  }
  return least;
}

// False: the observation says nothing; counted.
bool Watch::lifts(const Session& session, const trace::Observed& seen) {
  double sum = seen.sink + seen.tail + seen.rest;
  mass_.assign(session.pages.size(), -1);
  for (const trace::PageMass& mass : seen.masses) {
    sum += mass.mass;
    if (mass.page < mass_.size() && session.pages[mass.page].sealed) {
      mass_[mass.page] = mass.mass;
    } else {
      ++counts_.unknown_pages;
    }
  }
  if (std::abs(sum - 1) > kTolerance) {
    ++counts_.beyond;
    return false;
  }
  // `rest` is shared evenly by the tokens of the pages that were not named.
  uint64_t unnamed = 0;
  for (size_t i = 0; i < session.pages.size(); ++i) {
    const Page& page = session.pages[i];
    if (!page.sealed) continue;
    ++counts_.page_views;
    counts_.absent_views += page.resident ? 0 : 1;
    if (page.resident && mass_[i] < 0) unnamed += page.tokens - page.sinks;
  }
  const double each_unnamed = unnamed > 0 ? seen.rest / static_cast<double>(unnamed) : 0;
  const uint64_t half = (seen.queries - 1) / 2;
  const uint64_t query = seen.query_position > half ? seen.query_position - half : 0;
  double movable_mass = 0;
  uint64_t movable_tokens = 0;
  lifts_.clear();
  for (size_t i = 0; i < session.pages.size(); ++i) {
    const Page& page = session.pages[i];
    const auto tokens = static_cast<uint16_t>(page.tokens - page.sinks);
    if (!page.sealed || !page.resident || tokens == 0) continue;
    const double mass = mass_[i] < 0 ? each_unnamed * tokens : mass_[i];
    if (movable(page)) {
      movable_mass += mass;
      movable_tokens += tokens;
    }
    const uint64_t last = i * header_.page_tokens + page.tokens - 1;
    lifts_.push_back({.page = static_cast<PageIndex>(i),
                      .region = page.region,
                      .tokens = tokens,
                      .age = session.step > page.born ? session.step - page.born : 0,
                      .distance = query > last ? query - last : 0,
                      .lift = mass / tokens});
  }
  if (movable_mass < kLeastMass) {
    ++counts_.no_mass;
    return false;
  }
  const double scale = static_cast<double>(movable_tokens) / movable_mass;
  const double middle = this->middle();
  for (PageLift& page : lifts_) {
    page.relative = page.lift / middle;
    page.lift *= scale;
  }
  return true;
}

}  // namespace memdecay::calibration
