// Events as requests (see recorded.h).
#include "client/ctl/replay/recorded.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

size_t common_prefix(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

}  // namespace

Recorded::Made Recorded::looked(Session* session, const trace::Looked& look,
                                TraceRequest& request) {
  if (look.taken == trace::Looked::Taken::kPeek) {
    ++peeks_;
    return Made::kNothing;
  }
  size_t known = 0;
  if (session != nullptr) {
    known = common_prefix(look.keys, session->turn);
    session->asked = look.keys;
    session->turn = look.keys;
  }
  if (known == look.keys.size()) return Made::kNothing;
  request.blocks.assign(look.keys.begin() + static_cast<ptrdiff_t>(known), look.keys.end());
  request.depth = static_cast<uint32_t>(known);
  return Made::kRequest;
}

Recorded::Made Recorded::sealed(Session& session, const trace::Sealed& seal,
                                TraceRequest& request) {
  session.turn.clear();
  if (seal.page >= session.pages.size()) session.pages.resize(seal.page + 1);
  session.pages[seal.page] = seal.key;
  if (!seal.key.has_value()) return Made::kNothing;
  if (seal.page < session.asked.size() && session.asked[seal.page] == *seal.key) {
    return Made::kNothing;  // a reference of that look-up already
  }
  request.blocks.assign(1, *seal.key);
  request.depth = seal.depth.value_or(seal.page);
  request.kind = TraceRequest::Kind::kStored;
  return Made::kRequest;
}

Recorded::Made Recorded::became(Session& session, const std::string& state, TraceRequest& request) {
  const bool computes = state == "decoding";
  if (!std::exchange(session.waits, !computes) || !computes) return Made::kNothing;
  request.blocks.clear();
  for (const std::optional<uint64_t>& key : session.pages) {
    if (key.has_value()) request.blocks.push_back(*key);
  }
  request.depth = 0;
  session.turn = request.blocks;
  return request.blocks.empty() ? Made::kNothing : Made::kRequest;
}

Recorded::Made Recorded::apply(Session* session, const trace::Event& event, TraceRequest& request) {
  if (const auto* look = std::get_if<trace::Looked>(&event.what)) {
    return looked(session, *look, request);
  }
  if (const auto* lost = std::get_if<trace::Lost>(&event.what)) lost_ += lost->events;
  if (session == nullptr) return Made::kNothing;
  if (const auto* seal = std::get_if<trace::Sealed>(&event.what)) {
    return sealed(*session, *seal, request);
  }
  if (const auto* became_one = std::get_if<trace::Became>(&event.what)) {
    return became(*session, became_one->state, request);
  }
  if (const auto* fork = std::get_if<trace::Forked>(&event.what)) {
    session->pages = sessions_[fork->of].pages;
  } else if (const auto* cut = std::get_if<trace::Cut>(&event.what)) {
    session->pages.resize(std::min<size_t>(session->pages.size(), cut->page));
    session->turn.clear();
  } else if (std::holds_alternative<trace::Ended>(event.what)) {
    sessions_.erase(event.session);
  }
  return Made::kNothing;
}

absl::StatusOr<Recorded::Made> Recorded::take(const Lines::Line& line, TraceRequest& request) {
  const auto event = parser_.take(line.text, line.number);
  if (!event.ok()) {
    if (line.ended != Lines::Ended::kByEndOfFile) return event.status();
    ErrorDetail detail = error_detail(event.status());
    absl::StrAppend(&detail.there, ", and the file ends there: it is truncated");
    detail.todo = "record it again, or drop its last line";
    return make_error(std::move(detail));
  }
  if (*event == nullptr) return Made::kNothing;
  const auto* seal = std::get_if<trace::Sealed>(&(*event)->what);
  if (seal != nullptr && seal->page >= kBlocksARequest) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("trace ", path_, ", line ", line.number),
                      absl::StrCat("page ", seal->page, " of one session"),
                      absl::StrCat("a session has at most ", kBlocksARequest, " pages"));
  }
  request.at = Instant{static_cast<int64_t>((*event)->at_ms) * 1'000'000};
  request.tail = TraceRequest::Tail::kWhole;
  request.kind = TraceRequest::Kind::kAsked;
  Session* session = (*event)->session == 0 ? nullptr : &sessions_[(*event)->session];
  return apply(session, **event, request);
}

}  // namespace memdecay::ctl
