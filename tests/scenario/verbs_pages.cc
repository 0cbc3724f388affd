// fill, alloc, write, seal, evict, restore, cancel, pressure: pages come and go.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cuda/checksum.h"
#include "proto/contract/error.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

struct NewPages {
  PageIndex first = 0;
  uint32_t count = 0;
};

// The pages that a grant added, named after their key.
void add_granted(SessionModel& session, const ledger::Reply& reply, const std::string& extra) {
  const auto* grant = std::get_if<ledger::GrantReply>(&reply.body);
  if (!reply.status.ok() || grant == nullptr) return;
  for (const ledger::PageView& view : grant->pages) {
    if (view.page >= session.pages.size()) session.pages.resize(view.page + 1);
    session.pages[view.page] = {.key = session.key, .extra = extra};
  }
}

void take_key(SessionModel& session, const Call& call) {
  if (const auto key = call.option("key")) session.key = *key;
}

absl::Status tag_new(Stage& stage, const Call& call, const SessionModel& session, NewPages pages) {
  const auto region = call.option("region");
  if (!region) return absl::OkStatus();
  const std::optional<RegionId> id = region_from_name(*region);
  if (!id) return bad_value("region", *region, "system, plan, user, …");
  const uint32_t tokens = stage.page_tokens();
  return demand(stage, engine_of(session, call),
                ledger::Tag{
                    .session = session.id,
                    .spans = {{.span = {pages.first * tokens, (pages.first + pages.count) * tokens},
                               .region = *id}}})
      .status;
}

std::string page_pattern(Stage& stage, const SessionModel& session, PageIndex page) {
  return pattern(session.pages[page].content, 0, stage.page_bytes_of(session));
}

enum class Part : uint8_t { kWhole, kFirst, kSecond };

// The right bytes of the page, as the engine computes them from what it sees now.
absl::Status write_page(Stage& stage, SessionModel& session, PageIndex page, Part part) {
  PageModel& model = session.pages[page];
  if (model.content == 0) model.content = content_now(stage, session, page);
  const std::string bytes = page_pattern(stage, session, page);
  const size_t half = bytes.size() / 2;
  const size_t begin = part == Part::kSecond ? half : 0;
  const size_t end = part == Part::kFirst ? half : bytes.size();
  const absl::Status written =
      stage.world->write(session.engine, session.id, page, begin, bytes.substr(begin, end - begin));
  if (!written.ok()) return written;
  if (part != Part::kSecond) model.first_half = true;
  if (part != Part::kFirst) model.second_half = true;
  return absl::OkStatus();
}

// Bytes that do not belong there.
absl::Status scribble(Stage& stage, SessionModel& session, PageIndex page, const std::string& key) {
  const ContentPrint other =
      content_of(0, tokens_of(key, page, 1, stage.page_tokens()), "scribble");
  return stage.world->write(session.engine, session.id, page, 0,
                            pattern(other, 0, stage.page_bytes_of(session)));
}

absl::StatusOr<ledger::Seal> seal_event(Stage& stage, const Call& call, const SessionModel& session,
                                        NewPages pages) {
  ledger::Seal seal{.session = session.id, .first_page = pages.first, .pages = pages.count};
  const bool known = pages.first + pages.count <= session.pages.size();
  for (uint32_t i = 0; i < pages.count; ++i) {
    const PageIndex page = pages.first + i;
    const std::string key = known ? session.pages[page].key : session.key;
    const std::vector<TokenId> tokens = tokens_of(key, page, 1, stage.page_tokens());
    seal.tokens.insert(seal.tokens.end(), tokens.begin(), tokens.end());
  }
  if (const auto name = call.option("fence")) {
    const absl::StatusOr<Fence> fence = named_fence(stage, *name, session.engine);
    if (!fence.ok()) return fence.status();
    seal.fence = *fence;
  }
  // Behind an open fence the bytes are not there yet, so no engine knows their sum.
  const bool sums = call.option("checksum") != std::optional<std::string>("none");
  if (known && seal.fence.value == 0 && sums) {
    for (uint32_t i = 0; i < pages.count; ++i) {
      const std::string bytes = page_pattern(stage, session, pages.first + i);
      seal.checksums.push_back(
          cuda::checksum_of(std::as_bytes(std::span(bytes.data(), bytes.size()))));
    }
  }
  if (known && !session.pages[pages.first].extra.empty()) {
    seal.extras.push_back(session.pages[pages.first].extra);
  }
  using Claim = ledger::Seal::Claim;
  if (const auto claim = call.option("claim")) {
    if (*claim != "exact" && *claim != "holes") return bad_value("claim", *claim, "exact or holes");
    seal.claim = *claim == "exact" ? Claim::kExact : Claim::kHoles;
  }
  return seal;
}

void mark_sealed(SessionModel& session, NewPages pages) {
  for (uint32_t i = 0; i < pages.count && pages.first + i < session.pages.size(); ++i) {
    session.pages[pages.first + i].sealed = true;
  }
}

// Tag, write, seal of pages that were granted.
absl::Status finish_fill(Stage& stage, const Call& call, SessionModel& session, NewPages pages) {
  if (absl::Status tagged = tag_new(stage, call, session, pages); !tagged.ok()) return tagged;
  for (uint32_t i = 0; i < pages.count; ++i) {
    const absl::Status written = write_page(stage, session, pages.first + i, Part::kWhole);
    if (!written.ok()) return written;
  }
  absl::StatusOr<ledger::Seal> seal = seal_event(stage, call, session, pages);
  if (!seal.ok()) return seal.status();
  const ledger::Reply sealed = demand(stage, engine_of(session, call), *std::move(seal));
  if (sealed.status.ok()) mark_sealed(session, pages);
  return sealed.status;
}

// Extend, tag, write, seal of so many pages at once.
absl::Status fill_pages(Stage& stage, const Call& call, SessionModel& session, uint32_t count) {
  const NewPages pages{static_cast<PageIndex>(session.pages.size()), count};
  const ledger::Reply grant = demand(stage, engine_of(session, call),
                                     ledger::Extend{.session = session.id, .pages = count});
  if (!grant.status.ok()) return grant.status;
  add_granted(session, grant, call.option("extra").value_or(""));
  if (session.pages.size() != pages.first + count) {
    return make_error(ErrorCode::kInternal, absl::StrCat(count, " pages"),
                      absl::StrCat("granted up to page ", session.pages.size()));
  }
  return finish_fill(stage, call, session, pages);
}

// `fill … as F`: what is granted at last is written and sealed then.
Outcome fill_later(Stage& stage, const Call& call, const std::shared_ptr<SessionModel>& session,
                   uint32_t count) {
  const NewPages pages{static_cast<PageIndex>(session->pages.size()), count};
  const Call kept = call;
  const auto learn = [&stage, session, pages, kept](const ledger::Reply& reply) {
    if (!reply.status.ok()) return;
    add_granted(*session, reply, kept.option("extra").value_or(""));
    finish_fill(stage, kept, *session, pages).IgnoreError();  // shows in the pages' states
  };
  return ask(stage, call, engine_of(*session, call),
             ledger::Extend{.session = session->id, .pages = count}, Waits::kNot, learn)
      .outcome;
}

Outcome fill_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("fill S PAGES [key=…] [region=…]");
  const auto session = find_session(stage, call.arguments[0]);
  const absl::StatusOr<uint32_t> count = parse_count(call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  if (!count.ok()) return broken(count.status());
  take_key(**session, call);
  if (!call.as.empty()) return fill_later(stage, call, *session, *count);
  const absl::Status filled = fill_pages(stage, call, **session, *count);
  // A lossy engine that decodes past its room goes page by page, and forgets as it goes. A fill
  // that must fail is one request.
  const ErrorCode code = error_code(filled);
  const bool room = code == ErrorCode::kResourceExhausted || code == ErrorCode::kBudgetTooSmall;
  if (!room || (*session)->mode != Mode::kLossy || *count < 2 ||
      call.failure.kind == ExpectedFailure::Kind::kCode) {
    return {.status = filled};
  }
  for (uint32_t i = 0; i < *count; ++i) {
    if (absl::Status one = fill_pages(stage, call, **session, 1); !one.ok()) return {.status = one};
  }
  return {};
}

Outcome alloc_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("alloc S PAGES [key=…] [region=…]");
  const auto session = find_session(stage, call.arguments[0]);
  const absl::StatusOr<uint32_t> count = parse_count(call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  if (!count.ok()) return broken(count.status());
  take_key(**session, call);
  const NewPages pages{static_cast<PageIndex>((*session)->pages.size()), *count};
  const std::shared_ptr<SessionModel> model = *session;
  Asked asked = ask(stage, call, engine_of(*model, call),
                    ledger::Extend{.session = model->id, .pages = *count}, Waits::kForAnswer,
                    [model](const ledger::Reply& reply) { add_granted(*model, reply, ""); });
  if (!asked.reply || !asked.outcome.status.ok() || !asked.outcome.broken.empty()) {
    return asked.outcome;
  }
  asked.outcome.status = tag_new(stage, call, *model, pages);
  return asked.outcome;
}

Outcome write_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("write S:0 [half=first|second] [key=other]");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  Part part = Part::kWhole;
  if (const auto half = call.option("half")) {
    if (*half != "first" && *half != "second") return broken("half=first or half=second");
    part = *half == "first" ? Part::kFirst : Part::kSecond;
  }
  SessionModel& session = *pages->session;
  uint32_t position = 0;
  for (const PageIndex page : pages->pages) {
    if (page >= session.pages.size()) {
      return {.status = make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                                   "was never granted", "alloc it first")};
    }
    const PageModel& model = session.pages[page];
    const bool wanted = (part != Part::kSecond && !model.first_half) ||
                        (part != Part::kFirst && !model.second_half);
    const auto key = call.option("key");
    // Over what is sealed and complete, any write is a stray one.
    const bool stray = key.has_value() || (model.sealed && !wanted);
    const absl::Status written = stray ? scribble(stage, session, page, key.value_or("stray"))
                                       : write_page(stage, session, page, part);
    if (!written.ok()) return {.status = written};
    position = page * stage.page_tokens() +
               (part == Part::kFirst ? stage.page_tokens() / 2 : stage.page_tokens());
    if (model.sealed) position = 0;
  }
  if (position == 0 || !stage.world->can_speak(session.engine)) return {};
  return {.status = demand(stage, engine_of(session, call),
                           ledger::Written{.session = session.id, .position = position})
                        .status};
}

Outcome seal_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("seal S:0 [fence=f]");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  if (pages->pages.empty()) return broken("no pages to seal");
  const NewPages range{pages->pages.front(), static_cast<uint32_t>(pages->pages.size())};
  absl::StatusOr<ledger::Seal> seal = seal_event(stage, call, *pages->session, range);
  if (!seal.ok()) return broken(seal.status());
  const std::shared_ptr<SessionModel> model = pages->session;
  return ask(stage, call, engine_of(*model, call), *std::move(seal), Waits::kForAnswer,
             [model, range](const ledger::Reply& reply) {
               if (reply.status.ok()) mark_sealed(*model, range);
             })
      .outcome;
}

Outcome evict_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("evict S:3");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  return ask(stage, call, anybody_of(stage, *pages->session, call),
             ledger::EvictPages{.session = pages->session->id, .pages = pages->pages}, Waits::kNot)
      .outcome;
}

Outcome restore_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("restore S:3..5 [as R]");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  Asked asked = ask(stage, call, anybody_of(stage, *pages->session, call),
                    ledger::RestorePages{.session = pages->session->id, .pages = pages->pages},
                    Waits::kForAnswer);
  if (!asked.reply) return asked.outcome;
  if (const auto* restored = std::get_if<ledger::RestoreReply>(&asked.reply->body)) {
    asked.outcome.answer = {{"", absl::StrCat(restored->resident)},
                            {"failed", absl::StrCat(restored->failed.size())}};
    // A restore has failed when nothing became resident.
    if (asked.outcome.status.ok() && restored->resident == 0 && !restored->failed.empty()) {
      asked.outcome.status =
          make_error(restored->failed.front().second, call.raw, "none of the pages came back");
    }
  }
  return asked.outcome;
}

Outcome cancel_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("cancel NAME");
  const auto pending = stage.named.find(call.arguments[0]);
  if (pending == stage.named.end()) {
    return broken(absl::StrCat("nothing is called ", call.arguments[0]));
  }
  return {.status = stage.world->cancel(pending->second->caller, pending->second->ticket)};
}

Outcome pressure_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("pressure SLOTS [as P] [within=10ms]");
  const absl::StatusOr<uint32_t> slots = parse_count(call.arguments[0]);
  if (!slots.ok()) return broken(slots.status());
  Asked asked = ask(stage, call, {.tenant = call.option("tenant").value_or("")},
                    ledger::Pressure{.pages = *slots}, Waits::kForAnswer);
  if (!asked.reply) return asked.outcome;
  if (const auto* free = std::get_if<ledger::PressureReply>(&asked.reply->body)) {
    asked.outcome.answer = {{"", absl::StrCat(free->free_pages)}};
  }
  return asked.outcome;
}

constexpr VerbEntry kVerbs[] = {
    {"fill", fill_verb},     {"alloc", alloc_verb},       {"write", write_verb},
    {"seal", seal_verb},     {"evict", evict_verb},       {"restore", restore_verb},
    {"cancel", cancel_verb}, {"pressure", pressure_verb},
};

}  // namespace

absl::Span<const VerbEntry> page_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
