// See real_codec.h.
#include "tests/scenario/real_codec.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::scenario {
namespace {

using ledger::ReplyBody;

ReplyBody done(const WireWords&) { return ledger::Done{}; }

std::string exact_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string of_session(const char* verb, SessionId session) {
  return absl::StrCat(verb, " session=", session.value);
}

std::string hex_list(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) {
    absl::StrAppend(&out, out.empty() ? "" : ",", WireWords::hex(value));
  }
  return out;
}

ReplyBody session_reply(const WireWords& words) {
  ledger::SessionReply reply{.session = SessionId{words.number("session")},
                             .position = static_cast<uint32_t>(words.number("position")),
                             .tokens = words.numbers("tokens"),
                             .step = words.number("step")};
  using Ready = ledger::SessionReply::Ready;
  reply.ready = words.number("ready") != 0 ? Ready::kYes : Ready::kNo;
  for (PageIndex page = 0; page < words.number("pages"); ++page)
    reply.pages.push_back({.page = page});
  return reply;
}

ReplyBody grant_reply(const WireWords& words) {
  ledger::GrantReply reply;
  const auto first = static_cast<PageIndex>(words.number("first"));
  for (PageIndex page = 0; page < words.number("pages"); ++page) {
    reply.pages.push_back({.page = first + page});
  }
  return reply;
}

ReplyBody repair_reply(const WireWords& words) {
  using Needed = ledger::RepairReply::Needed;
  return ledger::RepairReply{.needed = words.number("needed") != 0 ? Needed::kYes : Needed::kNo,
                             .first_page = static_cast<PageIndex>(words.number("first")),
                             .tokens = static_cast<uint32_t>(words.number("tokens"))};
}

ReplyBody restore_reply(const WireWords& words) {
  ledger::RestoreReply reply{.resident = static_cast<uint32_t>(words.number("resident"))};
  for (const std::string& item : words.list("failed")) {
    const auto parts = WireWords::split(item, ':');
    if (parts.size() != 2) continue;
    reply.failed.emplace_back(static_cast<PageIndex>(std::stoul(parts[0])),
                              error_from_name(parts[1]).value_or(ErrorCode::kInternal));
  }
  return reply;
}

ReplyBody lookup_reply(const WireWords& words) {
  using Pending = ledger::LookupReply::Pending;
  return ledger::LookupReply{
      .pages = static_cast<uint32_t>(words.number("pages")),
      .device_pages = static_cast<uint32_t>(words.number("device")),
      .host_pages = static_cast<uint32_t>(words.number("host")),
      .first_missing = static_cast<uint32_t>(words.number("missing")),
      .pending = words.number("pending") != 0 ? Pending::kYes : Pending::kNo};
}

ReplyBody acquire_reply(const WireWords& words) {
  return ledger::AcquireReply{.lease = LeaseId{words.number("lease")},
                              .pages = static_cast<uint32_t>(words.number("pages"))};
}

// ---- one function an event
// -----------------------------------------------------------------------
using Encoded = absl::StatusOr<WireCall>;

Encoded line_of(const ledger::OpenSession& event, const Extras&) {
  const std::string options = absl::StrJoin(event.policy_options, ";", absl::PairFormatter("="));
  return WireCall{
      absl::StrCat("open name=", event.name, " mode=", event.mode == Mode::kLossy ? 2 : 1,
                   " budget=", event.budget_pages, " priority=", event.priority, " policy=",
                   event.policy, " options=", options, " region=", event.default_region),
      session_reply};
}
Encoded line_of(const ledger::ResumeSession& event, const Extras&) {
  const bool steal = event.steal == ledger::ResumeSession::Steal::kYes;
  return WireCall{absl::StrCat("resume id=", event.session.value, " steal=", steal ? 1 : 0),
                  session_reply};
}
Encoded line_of(const ledger::ForkSession& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("fork", event.from), " name=", event.name),
                  session_reply};
}
Encoded line_of(const ledger::CloseSession& event, const Extras&) {
  const bool forget = event.what == ledger::CloseSession::What::kForget;
  return WireCall{absl::StrCat(of_session("close", event.session), " forget=", forget ? 1 : 0),
                  done};
}
Encoded line_of(const ledger::Extend& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("extend", event.session), " pages=", event.pages),
                  grant_reply};
}
Encoded line_of(const ledger::Written& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("written", event.session), " position=", event.position),
                  done};
}
Encoded line_of(const ledger::Seal& event, const Extras&) {
  using Claim = ledger::Seal::Claim;
  const int holes = event.claim == Claim::kNone ? -1 : event.claim == Claim::kHoles ? 1 : 0;
  return WireCall{
      absl::StrCat(of_session("seal", event.session), " first=", event.first_page,
                   " pages=", event.pages, " fence=", fence_word(event.fence), " holes=", holes,
                   " extras=", hex_list(event.extras), " tokens=", WireWords::join(event.tokens)),
      done};
}
Encoded line_of(const ledger::Tag& event, const Extras&) {
  const ledger::TaggedSpan& span = event.spans.front();
  const bool atomic = span.atomic == ledger::TaggedSpan::Atomic::kYes;
  return WireCall{
      absl::StrCat(of_session("tag", event.session), " begin=", span.span.begin,
                   " end=", span.span.end, " region=", span.region, " atomic=", atomic ? 1 : 0),
      done};
}

template <typename Event>
std::string with_span(const char* verb, const Event& event) {
  return absl::StrCat(of_session(verb, event.session), " begin=", event.span.begin,
                      " end=", event.span.end);
}
Encoded line_of(const ledger::Untag& event, const Extras&) {
  return WireCall{with_span("untag", event), done};
}
Encoded line_of(const ledger::EndGroup& event, const Extras&) {
  const bool cut = event.cut == ledger::EndGroup::Cut::kYes;
  return WireCall{absl::StrCat(with_span("endgroup", event), " cut=", cut ? 1 : 0), done};
}
Encoded line_of(const ledger::Hint& event, const Extras&) {
  return WireCall{
      absl::StrCat(with_span("hint", event), " relevance=", exact_number(event.relevance)), done};
}
Encoded line_of(const ledger::Supersede& event, const Extras&) {
  return WireCall{with_span("supersede", event), done};
}
Encoded line_of(const ledger::Pin& event, const Extras&) {
  return WireCall{
      absl::StrCat(of_session("pin", event.session), " first=", event.first_page,
                   " pages=", event.pages, " ttl=", event.ttl ? event.ttl->milliseconds() : 0),
      done};
}
Encoded line_of(const ledger::Unpin& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("unpin", event.session), " first=", event.first_page,
                               " pages=", event.pages),
                  done};
}
Encoded line_of(const ledger::SetBudget& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("budget", event.session), " pages=", event.budget_pages),
                  done};
}
Encoded line_of(const ledger::SetMode& event, const Extras&) {
  return WireCall{
      absl::StrCat(of_session("mode", event.session), " mode=", event.mode == Mode::kLossy ? 2 : 1),
      done};
}
Encoded line_of(const ledger::Truncate& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("truncate", event.session), " tokens=", event.tokens),
                  done};
}
Encoded line_of(const ledger::Park& event, const Extras&) {
  return WireCall{
      absl::StrCat(of_session("park", event.session), " why=", static_cast<int>(event.state)),
      done};
}
Encoded line_of(const ledger::Unpark& event, const Extras&) {
  return WireCall{of_session("unpark", event.session), done};
}
Encoded line_of(const ledger::Repair& event, const Extras&) {
  return WireCall{of_session("repair", event.session), repair_reply};
}
Encoded line_of(const ledger::Observe& event, const Extras&) {
  std::string masses;
  for (const auto& [page, mass] : event.masses) {
    absl::StrAppend(&masses, masses.empty() ? "" : ",", page, ":", exact_number(mass));
  }
  return WireCall{absl::StrCat(of_session("observe", event.session), " step=", event.step,
                               " position=", event.position, " queries=", event.queries, " sink=",
                               exact_number(event.sink), " tail=", exact_number(event.tail),
                               " rest=", exact_number(event.rest), " masses=", masses),
                  done};
}
Encoded line_of(const ledger::ReadFence& event, const Extras&) {
  return WireCall{absl::StrCat(of_session("readfence", event.session), " pages=",
                               WireWords::join(event.pages), " fence=", fence_word(event.fence)),
                  done};
}
Encoded line_of(const ledger::EvictPages& event, const Extras&) {
  return WireCall{
      absl::StrCat(of_session("evict", event.session), " pages=", WireWords::join(event.pages)),
      done};
}
Encoded line_of(const ledger::RestorePages& event, const Extras&) {
  return WireCall{
      absl::StrCat(of_session("restore", event.session), " pages=", WireWords::join(event.pages)),
      restore_reply};
}
Encoded line_of(const ledger::Lookup& event, const Extras& extras) {
  return WireCall{absl::StrCat("lookup extras=", hex_list(extras.values),
                               " tokens=", WireWords::join(event.tokens)),
                  lookup_reply};
}
Encoded line_of(const ledger::Acquire& event, const Extras& extras) {
  return WireCall{absl::StrCat(of_session("acquire", event.session), " extras=",
                               hex_list(extras.values), " tokens=", WireWords::join(event.tokens)),
                  acquire_reply};
}
Encoded line_of(const ledger::Release& event, const Extras&) {
  return WireCall{absl::StrCat("release lease=", event.lease.value), done};
}

}  // namespace

absl::StatusOr<WireCall> encode(const ledger::Event& event, const Extras& extras) {
  return std::visit(
      [&](const auto& typed) -> Encoded {
        if constexpr (requires { line_of(typed, extras); }) {
          return line_of(typed, extras);
        } else {
          return make_error(ErrorCode::kUnsupported, "an engine process", "has no such command");
        }
      },
      event);
}

absl::Status answered_status(const WireWords& words) {
  const std::string code = words.plain().size() > 1 ? words.plain()[1] : "internal";
  if (code == "ok") return absl::OkStatus();
  return make_error(error_from_name(code).value_or(ErrorCode::kInternal), words.message());
}

std::string fence_word(const Fence& fence) {
  return absl::StrCat(fence.member, ":", fence.word, ":", fence.value);
}

Fence fence_from(const std::string& text) {
  const auto parts = WireWords::split(text, ':');
  if (parts.size() != 3) return {};
  return {static_cast<uint32_t>(std::stoul(parts[0])), static_cast<uint32_t>(std::stoul(parts[1])),
          std::stoull(parts[2])};
}

}  // namespace memdecay::scenario
