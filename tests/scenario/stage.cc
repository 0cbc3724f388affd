// See stage.h.
#include "tests/scenario/stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::scenario {
namespace {

std::optional<std::string> setting(const Settings& settings, std::string_view key) {
  std::optional<std::string> value;
  for (const auto& [name, text] : settings) {
    if (name == key) value = text;
  }
  return value;
}

std::optional<ledger::Reply> await(Stage& stage, Ticket ticket, Duration patience) {
  if (stage.turns == nullptr) return stage.world->wait(ticket, patience);
  stage.world->rest();
  std::optional<ledger::Reply> reply = stage.world->answer(ticket);
  while (!reply && stage.turns->yield_waiting()) {
    stage.world->rest();
    reply = stage.world->answer(ticket);
  }
  return reply ? reply : stage.world->wait(ticket, patience);
}

}  // namespace

Outcome broken(std::string what) { return {.broken = std::move(what)}; }
Outcome broken(const absl::Status& why) { return {.broken = std::string(why.message())}; }

Outcome unexpected(std::string expected, std::string actual) {
  return {.broken = absl::StrCat("expected ", expected, "\n  actual   ", actual)};
}

uint32_t Stage::page_tokens() const {
  const auto value = setting(daemon.settings, "page_tokens");
  if (!value) return 16;
  const absl::StatusOr<uint32_t> count = parse_count(*value);
  return count.ok() && *count > 0 ? *count : 16;
}

uint64_t Stage::page_bytes() const {
  auto value = setting(daemon.settings, "page");
  if (!value) value = setting(daemon.settings, "page_bytes");
  if (!value) return 256;
  const absl::StatusOr<int64_t> bytes = parse_bytes(*value);
  return bytes.ok() && *bytes > 0 ? static_cast<uint64_t>(*bytes) : 256;
}

uint64_t Stage::page_bytes_of(const SessionModel& session) const {
  const auto engine = engines.find(session.engine);
  if (engine == engines.end()) return page_bytes();
  return memdecay::page_bytes(engine->second.layout);
}

absl::Status ensure_started(Stage& stage) {
  if (stage.started) return absl::OkStatus();
  if (!stage.described) {
    return make_error(ErrorCode::kInvalidArgument, "a statement", "no daemon yet",
                      "begin with `daemon device=8 …`");
  }
  stage.daemon.seed = stage.seed;
  if (absl::Status started = stage.world->start(stage.daemon); !started.ok()) return started;
  stage.started = true;
  const auto footprint = stage.world->footprint();
  if (footprint.ok()) stage.footprint = *footprint;
  return absl::OkStatus();
}

void absorb(Stage& stage) {
  for (const std::shared_ptr<Pending>& pending : std::vector(stage.open)) {
    if (!pending->reply) pending->reply = stage.world->answer(pending->ticket);
    if (!pending->reply) continue;
    std::erase(stage.open, pending);
    if (pending->learn) pending->learn(*pending->reply);
  }
}

Asked ask(Stage& stage, const Call& call, const Caller& caller, ledger::Event event, Waits waits,
          std::function<void(const ledger::Reply&)> learn, Extras extras) {
  const auto pending = std::make_shared<Pending>(
      Pending{.caller = caller, .verb = call.verb, .learn = std::move(learn)});
  pending->ticket = stage.world->ask(caller, std::move(event), std::move(extras));
  if (!call.as.empty()) stage.named[call.as] = pending;
  if (waits == Waits::kNot || !call.as.empty()) {
    using Likely = World::Likely;
    pending->reply = stage.world->answer_soon(
        pending->ticket, call.as.empty() ? Likely::kAnswered : Likely::kPending);
  } else {
    Duration patience = kPatience;
    if (const auto within = call.option("within")) {
      const absl::StatusOr<Duration> limit = parse_duration(*within);
      if (!limit.ok()) return {.outcome = broken(limit.status())};
      patience = *limit;
    }
    pending->reply = await(stage, pending->ticket, patience);
    if (!pending->reply) {
      return {.outcome = unexpected("an answer",
                                    absl::StrCat("none within ", patience.milliseconds(), " ms"))};
    }
  }
  if (!pending->reply) {
    stage.open.push_back(pending);
    return {};
  }
  if (pending->learn) pending->learn(*pending->reply);
  return {.outcome = {.status = pending->reply->status}, .reply = pending->reply};
}

ledger::Reply demand(Stage& stage, const Caller& caller, ledger::Event event, Extras extras) {
  const Ticket ticket = stage.world->ask(caller, std::move(event), std::move(extras));
  std::optional<ledger::Reply> reply = await(stage, ticket, kPatience);
  if (reply) return *std::move(reply);
  return {.status = make_error(ErrorCode::kDeadline, "an answer", "none came")};
}

absl::StatusOr<std::shared_ptr<SessionModel>> find_session(Stage& stage, const std::string& name) {
  const auto found = stage.sessions.find(name);
  if (found != stage.sessions.end()) return found->second;
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("session ", name),
                    "the script has none", "open it with `session`");
}

absl::StatusOr<ModelPages> find_pages(Stage& stage, const std::string& word) {
  const absl::StatusOr<PageSet> set = parse_pages(word);
  if (!set.ok()) return set.status();
  const auto session = find_session(stage, set->session);
  if (!session.ok()) return session.status();
  ModelPages pages{.session = *session};
  const auto count = static_cast<uint32_t>(pages.session->pages.size());
  const uint64_t last = set->all ? count : uint64_t{set->last} + 1;
  if (last - set->first > 1'000'000) return bad_value("pages", word, "at most a million");
  for (uint64_t page = set->first; page < last; ++page) {
    pages.pages.push_back(static_cast<PageIndex>(page));
  }
  return pages;
}

Caller engine_of(const SessionModel& session, const Call& call) {
  Caller caller{.engine = session.engine, .tenant = session.tenant};
  if (const auto epoch = call.option("epoch")) {
    if (const auto number = parse_count(*epoch); number.ok()) caller.epoch = *number;
  }
  return caller;
}

Caller anybody_of(Stage& stage, const SessionModel& session, const Call& call) {
  if (!session.closed && stage.world->can_speak(session.engine)) return engine_of(session, call);
  return {.tenant = session.tenant};
}

absl::StatusOr<Fence> named_fence(Stage& stage, const std::string& name,
                                  const std::string& engine) {
  const auto found = stage.fences.find(name);
  if (found != stage.fences.end() && !found->second.signalled && found->second.engine == engine) {
    return found->second.fence;
  }
  const absl::StatusOr<Fence> fence = stage.world->make_fence(engine);
  if (fence.ok()) stage.fences[name] = {.engine = engine, .fence = *fence};
  return fence;
}

ContentPrint content_now(Stage& stage, const SessionModel& session, PageIndex page) {
  uint64_t past = 0;
  for (PageIndex before = 0; before < page; ++before) {
    const bool seen = stage.world->mapped(session.engine, session.id, before).has_value();
    past = extend_past(past, seen ? session.pages[before].content : 0);
  }
  return content_of(past, tokens_of(session.pages[page].key, page, 1, stage.page_tokens()),
                    session.pages[page].extra);
}

std::vector<PageModel> exact_pages(const std::string& key, const std::string& extra,
                                   std::vector<PageModel> before, uint32_t pages,
                                   uint32_t page_tokens) {
  uint64_t past = 0;
  for (const PageModel& page : before) past = extend_past(past, page.content);
  for (uint32_t i = 0; i < pages; ++i) {
    const auto index = static_cast<PageIndex>(before.size());
    PageModel page{
        .key = key, .extra = extra, .first_half = true, .second_half = true, .sealed = true};
    page.content = content_of(past, tokens_of(key, index, 1, page_tokens), extra);
    past = extend_past(past, page.content);
    before.push_back(std::move(page));
  }
  return before;
}

Verb find_verb(std::string_view name) {
  if (name == "expect") return expect_verb;
  for (const auto& table : {daemon_verbs(), engine_verbs(), session_verbs(), page_verbs(),
                            sharing_verbs(), annotation_verbs(), lab_verbs()}) {
    for (const VerbEntry& entry : table) {
      if (entry.name == name) return entry.verb;
    }
  }
  return nullptr;
}

}  // namespace memdecay::scenario
