// Why a page is spared (see choose.h). The same reasons answer explain, refuse an eviction by hand
// and keep a page out of the choice: there is one list.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/ledger/choose.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

bool engine_silent(const State& state, const Session& session) { return !can_ask(state, session); }

// What protects one view, whoever asks.
void view_reasons(const State& state, const Session& session, PageIndex page,
                  std::vector<Reason>& reasons) {
  const View& view = session.pages.at(page);
  if (view.pinned) reasons.push_back(Reason::kPinned);
  if (engine_silent(state, session)) reasons.push_back(Reason::kInUse);
  if (!is_running(session)) return;
  if (session.mode == Mode::kExact) {
    reasons.push_back(Reason::kExactModeRunning);
    return;
  }
  switch (session.policy->protection(page)) {
    case policy::Protection::kSink:
      reasons.push_back(Reason::kSink);
      break;
    case policy::Protection::kRegion:
      reasons.push_back(Reason::kPinned);
      break;
    case policy::Protection::kRecent:
      reasons.push_back(Reason::kRecent);
      break;
    case policy::Protection::kPin:
    case policy::Protection::kNone:
      break;
  }
}

void content_reasons(const State& state, const Content& content, ViewRef ref, Scope scope,
                     std::vector<Reason>& reasons) {
  if (content.leases > 0) reasons.push_back(Reason::kLeased);
  if (content.open_fences > 0 || content.copy || content.store_failed) {
    reasons.push_back(Reason::kInUse);
  }
  if (scope == Scope::kSession) return;
  for (const ViewRef& other : content.views) {
    if (other == ref) continue;
    const Session& session = *state.sessions.at(other.session);
    const View& view = session.pages.at(other.page);
    if (view.pinned) {
      reasons.push_back(Reason::kPinned);
      return;
    }
    if (!is_mapped(view.state) && view.state != PageState::kRestoring) continue;
    if (is_running(session) || engine_silent(state, session) ||
        view.state == PageState::kRestoring) {
      reasons.push_back(Reason::kShared);
      return;
    }
  }
}

// An atomic span leaves whole or not at all.
bool span_stays(const State& state, const Session& session, PageIndex page) {
  const auto span = atomic_pages(session, page);
  if (!span.has_value()) return false;
  for (PageIndex at = span->first; at <= span->second; ++at) {
    if (at >= session.sealed_pages) return true;
    if (at == page || session.pages[at].state == PageState::kHole) continue;
    std::vector<Reason> reasons;
    view_reasons(state, session, at, reasons);
    const auto content = state.contents.find(session.pages[at].content);
    if (!reasons.empty() || content == state.contents.end() || content->second->leases > 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Reason> spare_reasons(const State& state, ViewRef ref, Scope scope) {
  const Session& session = *state.sessions.at(ref.session);
  const View& view = session.pages.at(ref.page);
  std::vector<Reason> reasons;
  if (is_unsealed(view.state)) return {Reason::kNotSealed};
  if (view.state == PageState::kSealing) return {Reason::kFenceOpen};
  view_reasons(state, session, ref.page, reasons);
  const auto content = state.contents.find(view.content);
  if (content != state.contents.end()) {
    content_reasons(state, *content->second, ref, scope, reasons);
  }
  if (view.state != PageState::kMapped && reasons.empty()) reasons.push_back(Reason::kInUse);
  if (reasons.empty() && span_stays(state, session, ref.page)) {
    reasons.push_back(Reason::kAtomicSpan);
  }
  return reasons;
}

std::string who_holds(const State& state) {
  constexpr size_t kShown = 6;
  std::vector<std::string> holders;
  for (const auto& [id, session] : state.sessions) {
    absl::btree_map<Reason, uint32_t> spared;
    uint32_t pages = 0;
    for (PageIndex page = 0; page < session->pages.size(); ++page) {
      if (!occupies(session->pages[page].state)) continue;
      ++pages;
      const auto reasons = spare_reasons(state, {id, page}, Scope::kPool);
      if (!reasons.empty()) ++spared[reasons.front()];
    }
    if (pages == 0) continue;
    std::string text = absl::StrCat("session ", session->name, " holds ", pages);
    for (const auto& [reason, count] : spared) {
      absl::StrAppend(&text, " (", count, " ", as_absl(reason_name(reason)), ")");
    }
    holders.push_back(std::move(text));
    if (holders.size() == kShown) break;
  }
  return absl::StrCat(free_slots(state), " slots free", holders.empty() ? "" : "; ",
                      absl::StrJoin(holders, ", "));
}

}  // namespace memdecay::ledger
