// What engines say between steps: observations, and what they took out of or put into their tables
// (see apply.h). An acknowledgement is honoured however late; one about a page that has moved on is
// void.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/regret.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

// How far the parts of an observation may be from 1 together.
constexpr double kMassTolerance = 1e-3;

absl::Status bad_mass(std::string_view name, double value) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat(std::string(name), " mass ", value),
                    "masses are finite, at least 0, and sum to 1", "send what attention gave");
}

bool is_mass(double value) { return std::isfinite(value) && value >= 0; }

absl::Status check_masses(const Session& session, const Observe& event) {
  if (event.queries == 0) return absl::OkStatus();
  if (!is_mass(event.sink)) return bad_mass("sink", event.sink);
  if (!is_mass(event.tail)) return bad_mass("tail", event.tail);
  if (!is_mass(event.rest)) return bad_mass("rest", event.rest);
  double sum = event.sink + event.tail + event.rest;
  absl::btree_set<PageIndex> seen;
  for (const auto& [page, mass] : event.masses) {
    if (page >= session.sealed_pages) {
      return make_error(ErrorCode::kUnknownPage, absl::StrCat("mass of page ", page),
                        absl::StrCat("the session has ", session.sealed_pages, " sealed pages"),
                        "count mass on tokens that are not sealed as tail");
    }
    if (!is_mass(mass)) return bad_mass("page", mass);
    if (!seen.insert(page).second) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("page ", page, " listed twice"),
                        {}, "list each page once");
    }
    sum += mass;
  }
  if (std::abs(sum - 1) > kMassTolerance) return bad_mass("total", sum);
  return absl::OkStatus();
}

void observe(Session& session, const Observe& event) {
  session.step = std::max(session.step, event.step);
  if (event.queries == 0) {
    session.policy->on_step(session.step);
    return;
  }
  std::vector<policy::PageMass> masses;
  masses.reserve(event.masses.size());
  for (const auto& [page, mass] : event.masses) masses.push_back({page, mass});
  session.policy->on_observe({.step = session.step,
                              .query_position = session.position,
                              .queries = event.queries,
                              .sink = event.sink,
                              .tail = event.tail,
                              .rest = event.rest,
                              .masses = masses});
}

absl::Status check_page(const Session& session, PageIndex page) {
  if (page < session.pages.size()) return absl::OkStatus();
  return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                    absl::StrCat("session ", session.name, " has ", session.pages.size(), " pages"),
                    "name pages that are there");
}

absl::Status check_listed(const Session& session, const std::vector<PageIndex>& pages) {
  for (const PageIndex page : pages) {
    const absl::Status status = check_page(session, page);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

void apply(Context& context, const Observe& event) {
  const absl::StatusOr<Session*> found = own_session(context.state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const absl::Status status = check_masses(session, event);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  note_written(session, event.position);
  observe(session, event);
  tape_observe(context.state, session, event);
  reply(context, event.origin.request);
}

void apply(Context& context, const GaveUp& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  note_written(session, event.position);
  for (const PageIndex page : event.pages) {
    if (page >= session.pages.size()) continue;  // truncated since
    const ViewRef ref{session.id, page};
    const View& view = session.pages[page];
    if (!is_mapped(view.state)) continue;  // answered before, or it has moved on
    if (view.late) count(state, "ack_late_total");
    Content& content = *state.contents.at(view.content);
    if (mapping_views(state, content) <= 1) {
      content.leaving = true;
      state.leaving.insert(content.id);
    }
    give_up(context, ref, session.engine, event.fence);
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Kept& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  for (const PageIndex page : event.pages) {
    if (page >= session.pages.size() || session.pages[page].state != PageState::kAsked) continue;
    const ViewRef ref{session.id, page};
    set_page_state(state, ref, PageState::kMapped);
    session.pages[page].left_idle = false;
    note_kept(state, ref);
    stay(context, *state.contents.at(session.pages[page].content));
    for (const OpId op : ops_with(state, ref)) op_page_there(context, op, page);
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Resident& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  absl::Status status = found.ok() ? check_listed(**found, event.pages) : found.status();
  if (status.ok() && event.generations.size() != event.pages.size()) {
    status = make_error(
        ErrorCode::kInvalidArgument,
        absl::StrCat(event.generations.size(), " generations for ", event.pages.size(), " pages"),
        {}, "name the generation of each slot");
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  note_written(session, event.position);
  for (size_t i = 0; i < event.pages.size(); ++i) {
    const View& view = session.pages[event.pages[i]];
    if (view.state != PageState::kRestoring || !view.announced) continue;
    const Content& content = *state.contents.at(view.content);
    if (!content.slot_valid || content.slot->generation != event.generations[i]) {
      count(state, "void_messages_total");
      continue;
    }
    page_resident(context, {session.id, event.pages[i]});
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const ReadFence& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  absl::Status status = found.ok() ? check_listed(**found, event.pages) : found.status();
  for (const PageIndex page : event.pages) {
    if (status.ok() && !is_mapped((*found)->pages[page].state)) {
      status = make_error(ErrorCode::kNotSealed, absl::StrCat("read fence on page ", page),
                          std::string(page_state_name((*found)->pages[page].state)),
                          "only mapped pages can be read");
    }
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  for (const PageIndex page : event.pages) {
    Content& content = *state.contents.at(session.pages[page].content);
    if (watch(context, session.engine, event.fence, {FenceWatch::Why::kRead, {}, content.id, {}})) {
      ++content.open_fences;
    }
  }
  reply(context, event.origin.request);
}

}  // namespace memdecay::ledger
