// One function a message (from_wire.h).
#include "daemon/server/from_wire.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/policy/layers.h"
#include "daemon/server/wire_checks.h"
#include "daemon/server/wire_keys.h"

namespace memdecay::server {
namespace {

namespace limits = base::limits;
using google::protobuf::RepeatedField;

// In the order of the keys, so that the same request always means the same.
absl::StatusOr<std::vector<policy::OptionWord>> words_of(
    const google::protobuf::Map<std::string, std::string>& wire) {
  if (wire.size() > limits::kPolicyOptions) {
    return refused("policy_options", absl::StrCat(wire.size(), " of them"),
                   absl::StrCat("at most ", limits::kPolicyOptions));
  }
  std::vector<policy::OptionWord> words(wire.begin(), wire.end());
  std::sort(words.begin(), words.end());
  for (const auto& [key, value] : words) {
    if (key.size() <= limits::kOptionBytes && value.size() <= limits::kOptionBytes) continue;
    return refused("policy_options", absl::StrCat(key.substr(0, 64), " is too long"),
                   absl::StrCat("keys and values of at most ", limits::kOptionBytes, " bytes"));
  }
  return words;
}

Made made(const v1::OpenRequest& wire, const ledger::Origin& origin, const WireRules& rules) {
  if (absl::Status status = check_name("name", wire.name()); !status.ok()) return status;
  if (absl::Status status = check_name("policy", wire.policy()); !status.ok()) return status;
  const absl::StatusOr<ledger::LayoutRef> layout = layout_ref(wire.layout(), rules);
  if (!layout.ok()) return layout.status();
  const absl::StatusOr<Mode> wanted = mode(wire.mode(), rules);
  if (!wanted.ok()) return wanted.status();
  ledger::OpenSession event{.origin = origin,
                            .name = wire.name(),
                            .layout = *layout,
                            .mode = *wanted,
                            .budget_pages = wire.budget_pages(),
                            .priority = wire.priority(),
                            .policy = wire.policy()};
  absl::StatusOr<std::vector<policy::OptionWord>> options = words_of(wire.policy_options());
  if (!options.ok()) return options.status();
  event.policy_options = *std::move(options);
  if (wire.has_default_region()) {
    const absl::StatusOr<RegionId> given = region(wire.default_region());
    if (!given.ok()) return given.status();
    event.default_region = *given;
  }
  return event;
}

Made made(const v1::ResumeRequest& wire, const ledger::Origin& origin, const WireRules& rules) {
  if (absl::Status status = check_name("name", wire.name()); !status.ok()) return status;
  if ((wire.session() == 0) == wire.name().empty()) {
    return refused("session", "both or none of id and name", "give one of them");
  }
  const absl::StatusOr<ledger::LayoutRef> layout = layout_ref(wire.layout(), rules);
  if (!layout.ok()) return layout.status();
  using Steal = ledger::ResumeSession::Steal;
  return ledger::ResumeSession{.origin = origin,
                               .session = SessionId{wire.session()},
                               .layout = *layout,
                               .steal = wire.steal() ? Steal::kYes : Steal::kNo};
}

Made made(const v1::ExtendRequest& wire, const ledger::Origin& origin, SessionId session) {
  if (absl::Status status = check_range(0, wire.pages()); !status.ok()) return status;
  absl::StatusOr<std::vector<uint32_t>> blocks = numbers("blocks", wire.blocks());
  if (!blocks.ok()) return blocks.status();
  if (!blocks->empty() && blocks->size() != wire.pages()) {
    return refused("blocks", absl::StrCat(blocks->size(), " for ", wire.pages(), " pages"),
                   "one a page, or none");
  }
  return ledger::Extend{
      .origin = origin, .session = session, .pages = wire.pages(), .blocks = *std::move(blocks)};
}

Made made(const v1::SealRequest& wire, const ledger::Origin& origin, SessionId session,
          const WireRules& rules) {
  if (absl::Status status = check_range(wire.first_page(), wire.pages()); !status.ok()) {
    return status;
  }
  const uint64_t tokens = uint64_t{wire.pages()} * rules.page_tokens;
  if (static_cast<uint64_t>(wire.tokens_size()) != tokens) {
    return refused("tokens", absl::StrCat(wire.tokens_size(), " ids"),
                   absl::StrCat(wire.pages(), " pages of ", rules.page_tokens, " are ", tokens));
  }
  const size_t checksums = static_cast<size_t>(wire.checksums_size());
  if (checksums != 0 && checksums != wire.pages()) {
    return refused("checksums", absl::StrCat(checksums, " for ", wire.pages(), " pages"),
                   "one a page, or none");
  }
  absl::StatusOr<std::vector<std::string>> extras = extras_from_wire(wire.extras());
  if (!extras.ok()) return extras.status();
  using Claim = ledger::Seal::Claim;
  ledger::Seal event{.origin = origin,
                     .session = session,
                     .first_page = wire.first_page(),
                     .pages = wire.pages(),
                     .tokens = {wire.tokens().begin(), wire.tokens().end()},
                     .extras = *std::move(extras),
                     .fence = fence(wire.fence())};
  if (wire.has_had_holes()) event.claim = wire.had_holes() ? Claim::kHoles : Claim::kExact;
  for (const v1::Checksum& sum : wire.checksums()) {
    event.checksums.push_back({.low = sum.low(), .high = sum.high()});
  }
  return event;
}

Made made(const v1::ParkRequest& wire, const ledger::Origin& origin, SessionId session) {
  switch (wire.state()) {
    case v1::SESSION_STATE_WAITING_TOOL:
    case v1::SESSION_STATE_WAITING_USER:
    case v1::SESSION_STATE_PREEMPTED:
      return ledger::Park{
          .origin = origin, .session = session, .state = static_cast<SessionState>(wire.state())};
    default:
      return refused("state", absl::StrCat(static_cast<int>(wire.state())),
                     "waiting_tool, waiting_user or preempted");
  }
}

Made made(const v1::ObserveRequest& wire, const ledger::Origin& origin, SessionId session) {
  if (static_cast<size_t>(wire.masses_size()) > limits::kMassesAnObservation) {
    return too_many("masses", static_cast<size_t>(wire.masses_size()),
                    limits::kMassesAnObservation);
  }
  ledger::Observe event{.origin = origin,
                        .session = session,
                        .step = wire.step(),
                        .position = wire.position(),
                        .queries = wire.queries(),
                        .sink = wire.sink(),
                        .tail = wire.tail(),
                        .rest = wire.rest()};
  event.masses.reserve(static_cast<size_t>(wire.masses_size()));
  for (const v1::PageMass& mass : wire.masses()) {
    event.masses.emplace_back(mass.page(), mass.mass());
  }
  return event;
}

Made made(const v1::ResidentRequest& wire, const ledger::Origin& origin, SessionId session) {
  absl::StatusOr<std::vector<uint32_t>> pages = numbers("pages", wire.pages());
  if (!pages.ok()) return pages.status();
  if (wire.generations_size() != wire.pages_size()) {
    return refused("generations",
                   absl::StrCat(wire.generations_size(), " for ", wire.pages_size(), " pages"),
                   "one a page");
  }
  return ledger::Resident{.origin = origin,
                          .session = session,
                          .pages = *std::move(pages),
                          .generations = {wire.generations().begin(), wire.generations().end()},
                          .position = wire.position()};
}

Made made(const v1::RestoreRequest& wire, const ledger::Origin& origin, SessionId session) {
  absl::StatusOr<std::vector<uint32_t>> pages = numbers("pages", wire.pages());
  if (!pages.ok()) return pages.status();
  absl::StatusOr<std::vector<uint32_t>> blocks = numbers("blocks", wire.blocks());
  if (!blocks.ok()) return blocks.status();
  if (!blocks->empty() && blocks->size() != pages->size()) {
    return refused("blocks", absl::StrCat(blocks->size(), " for ", pages->size(), " pages"),
                   "one a page, or none");
  }
  return ledger::RestorePages{.origin = origin,
                              .session = session,
                              .pages = *std::move(pages),
                              .blocks = *std::move(blocks)};
}

Made made(const v1::AcquireRequest& wire, const ledger::Origin& origin, SessionId session,
          const WireRules& rules) {
  absl::StatusOr<KeyedTokens> keyed =
      keys_from_wire(wire.layout(), wire.tokens(), wire.extras(), rules);
  if (!keyed.ok()) return keyed.status();
  return ledger::Acquire{.origin = origin,
                         .layout = keyed->layout,
                         .session = session,
                         .keys = std::move(keyed->keys),
                         .tokens = std::move(keyed->tokens),
                         .tail = keyed->tail};
}

// Messages that carry a list of pages and little else.
Made made_with_pages(const v1::StreamRequest& wire, const ledger::Origin& origin,
                     SessionId session) {
  using Request = v1::StreamRequest;
  const RepeatedField<uint32_t>* list = nullptr;
  if (wire.body_case() == Request::kGaveUp) list = &wire.gave_up().pages();
  if (wire.body_case() == Request::kKept) list = &wire.kept().pages();
  if (wire.body_case() == Request::kReadFence) list = &wire.read_fence().pages();
  if (wire.body_case() == Request::kEvict) list = &wire.evict().pages();
  if (list == nullptr) return refused("body", "none that this daemon knows", "see memory.proto");
  absl::StatusOr<std::vector<uint32_t>> pages = numbers("pages", *list);
  if (!pages.ok()) return pages.status();
  switch (wire.body_case()) {
    case Request::kGaveUp:
      return ledger::GaveUp{.origin = origin,
                            .session = session,
                            .decision = DecisionId{wire.gave_up().decision()},
                            .pages = *std::move(pages),
                            .fence = fence(wire.gave_up().fence()),
                            .position = wire.gave_up().position()};
    case Request::kKept:
      return ledger::Kept{.origin = origin, .session = session, .pages = *std::move(pages)};
    case Request::kReadFence:
      return ledger::ReadFence{.origin = origin,
                               .session = session,
                               .pages = *std::move(pages),
                               .fence = fence(wire.read_fence().fence())};
    default:
      return ledger::EvictPages{.origin = origin, .session = session, .pages = *std::move(pages)};
  }
}

ledger::CloseSession closed(const v1::CloseRequest& wire, const ledger::Origin& origin,
                            SessionId session) {
  using What = ledger::CloseSession::What;
  return {.origin = origin,
          .session = session,
          .what = wire.forget() ? What::kForget : What::kKeep,
          .fence = fence(wire.fence())};
}

// Bodies that need no check beyond their form.
Made made_plain(const v1::StreamRequest& wire, const ledger::Origin& origin, SessionId session) {
  using Request = v1::StreamRequest;
  switch (wire.body_case()) {
    case Request::kClose:
      return closed(wire.close(), origin, session);
    case Request::kWritten:
      return ledger::Written{
          .origin = origin, .session = session, .position = wire.written().position()};
    case Request::kTruncate:
      return ledger::Truncate{
          .origin = origin, .session = session, .tokens = wire.truncate().tokens()};
    case Request::kUnpark:
      return ledger::Unpark{.origin = origin, .session = session};
    case Request::kRepair:
      return ledger::Repair{.origin = origin, .session = session};
    case Request::kRelease:
      return ledger::Release{.origin = origin, .lease = LeaseId{wire.release().lease()}};
    case Request::kSlabUnmapped:
      return ledger::SlabUnmapped{.origin = origin, .slab = SlabId{wire.slab_unmapped().slab()}};
    case Request::kLeave:
      return ledger::Leave{.origin = origin};
    default:
      return made_with_pages(wire, origin, session);
  }
}

}  // namespace

Made event_from_wire(const v1::StreamRequest& wire, const ledger::Origin& origin,
                     const WireRules& rules) {
  using Request = v1::StreamRequest;
  const SessionId session{wire.session()};
  switch (wire.body_case()) {
    case Request::kOpen:
      return made(wire.open(), origin, rules);
    case Request::kResume:
      return made(wire.resume(), origin, rules);
    case Request::kFork: {
      absl::Status status = check_name("name", wire.fork().name());
      if (!status.ok()) return status;
      return ledger::ForkSession{.origin = origin, .from = session, .name = wire.fork().name()};
    }
    case Request::kExtend:
      return made(wire.extend(), origin, session);
    case Request::kSeal:
      return made(wire.seal(), origin, session, rules);
    case Request::kPark:
      return made(wire.park(), origin, session);
    case Request::kObserve:
      return made(wire.observe(), origin, session);
    case Request::kResident:
      return made(wire.resident(), origin, session);
    case Request::kRestore:
      return made(wire.restore(), origin, session);
    case Request::kAcquire:
      return made(wire.acquire(), origin, session, rules);
    case Request::kTag:
    case Request::kUntag:
    case Request::kEndGroup:
    case Request::kHint:
    case Request::kSupersede:
    case Request::kPin:
    case Request::kUnpin:
    case Request::kSetBudget:
    case Request::kSetMode:
      return annotation_from_wire(wire, origin, rules);
    default:
      return made_plain(wire, origin, session);
  }
}

Made event_from_wire(const v1::LookupRequest& wire, const ledger::Origin& origin,
                     const WireRules& rules) {
  absl::StatusOr<KeyedTokens> keyed =
      keys_from_wire(wire.layout(), wire.tokens(), wire.extras(), rules);
  if (!keyed.ok()) return keyed.status();
  return ledger::Lookup{.origin = origin,
                        .layout = keyed->layout,
                        .keys = std::move(keyed->keys),
                        .tokens = std::move(keyed->tokens),
                        .tail = keyed->tail};
}

absl::StatusOr<std::vector<PageIndex>> pages_from_wire(const RepeatedField<uint32_t>& pages) {
  return numbers("pages", pages);
}

}  // namespace memdecay::server
