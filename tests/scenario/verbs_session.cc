// session, close, truncate, park, unpark, setbudget, setmode, repair: a session's life.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/vocabulary.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

// What resume and fork take over; a difference between what the daemon says and what was written is
// the script's failure.
std::string take_over(Stage& stage, const SessionModel& from, const ledger::SessionReply& reply,
                      SessionModel& to) {
  to.pages = from.pages;
  to.step = reply.step;
  to.key = from.key;
  const uint32_t tokens = stage.page_tokens();
  if (reply.pages.size() > from.pages.size()) {
    return absl::StrCat("it has ", reply.pages.size(), " pages, ", from.pages.size(),
                        " were ever granted");
  }
  to.pages.resize(reply.pages.size());
  const size_t sealed = reply.position / tokens;
  if (reply.position % tokens != 0 || reply.tokens.size() != reply.position ||
      sealed > to.pages.size()) {
    return absl::StrCat("position ", reply.position, " with ", reply.tokens.size(), " tokens and ",
                        to.pages.size(), " pages");
  }
  for (size_t page = 0; page < sealed; ++page) {
    const std::vector<TokenId> expected =
        tokens_of(to.pages[page].key, static_cast<PageIndex>(page), 1, tokens);
    if (!std::equal(expected.begin(), expected.end(),
                    reply.tokens.begin() + static_cast<std::ptrdiff_t>(page * tokens))) {
      return absl::StrCat("the tokens of page ", page, " are not those that were sealed");
    }
  }
  return {};
}

// The event that `session …` stands for, or why not.
absl::StatusOr<ledger::Event> opening(Stage& stage, const Call& call, SessionModel& session,
                                      std::shared_ptr<SessionModel>& from) {
  const auto resume = call.option("resume");
  const auto fork = call.option("fork");
  if (resume || fork) {
    const auto found = find_session(stage, resume ? *resume : *fork);
    if (!found.ok()) return found.status();
    from = *found;
    session.mode = from->mode;
    if (fork) return ledger::ForkSession{.from = from->id, .name = session.name};
    const bool steal =
        std::find(call.arguments.begin(), call.arguments.end(), "steal") != call.arguments.end();
    using Steal = ledger::ResumeSession::Steal;
    return ledger::ResumeSession{.session = from->id, .steal = steal ? Steal::kYes : Steal::kNo};
  }
  ledger::OpenSession open{.name = session.name};
  for (const auto& [key, value] : stage.daemon.settings) {
    if (key == "mode" && mode_from_name(value)) open.mode = *mode_from_name(value);
  }
  if (const auto mode = call.option("mode")) {
    const std::optional<Mode> known = mode_from_name(*mode);
    if (!known) return bad_value("mode", *mode, "exact or lossy");
    open.mode = *known;
  }
  session.mode = open.mode;
  if (const auto budget = call.option("budget")) {
    const absl::StatusOr<uint32_t> pages = parse_count(*budget);
    if (!pages.ok()) return pages.status();
    open.budget_pages = *pages;
  }
  if (const auto priority = call.option("priority")) {
    const absl::StatusOr<int64_t> number = parse_integer(*priority);
    if (!number.ok()) return number.status();
    open.priority = static_cast<int32_t>(*number);
  }
  if (const auto policy = call.option("policy")) open.policy = *policy;
  for (const auto& [key, value] : call.options) {
    if (key.rfind("policy.", 0) == 0) open.policy_options.emplace_back(key.substr(7), value);
  }
  if (const auto region = call.option("region")) {
    const std::optional<RegionId> known = region_from_name(*region);
    if (!known) return bad_value("region", *region, "system, plan, user, …");
    open.default_region = *known;
  }
  return open;
}

Outcome session_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() < 3 || call.arguments[1] != "on") {
    return broken("session NAME on ENGINE …");
  }
  const auto session = std::make_shared<SessionModel>();
  session->name = call.arguments[0];
  session->engine = call.arguments[2];
  session->key = absl::StrCat("session ", session->name);
  const auto engine = stage.engines.find(session->engine);
  if (engine == stage.engines.end()) {
    return broken(absl::StrCat("the script has no engine ", session->engine));
  }
  session->tenant = engine->second.tenant;
  std::shared_ptr<SessionModel> from;
  absl::StatusOr<ledger::Event> event = opening(stage, call, *session, from);
  if (!event.ok()) return broken(event.status());
  const bool resume = call.option("resume").has_value();
  const auto mistake = std::make_shared<std::string>();
  Outcome outcome =
      ask(stage, call, engine_of(*session, call), *std::move(event), Waits::kForAnswer,
          [&stage, session, from, resume, mistake](const ledger::Reply& reply) {
            const auto* opened = std::get_if<ledger::SessionReply>(&reply.body);
            if (!reply.status.ok() || opened == nullptr) return;
            session->id = opened->session;
            if (from) *mistake = take_over(stage, *from, *opened, *session);
            if (resume) from->closed = true;
            stage.sessions[session->name] = session;
          })
          .outcome;
  if (outcome.broken.empty()) outcome.broken = *mistake;
  return outcome;
}

Outcome close_verb(Stage& stage, const Call& call) {
  if (call.arguments.empty()) return broken("close S keep|forget");
  const auto session = find_session(stage, call.arguments[0]);
  if (!session.ok()) return broken(session.status());
  using What = ledger::CloseSession::What;
  const bool forget = call.arguments.size() > 1 && call.arguments[1] == "forget";
  ledger::CloseSession event{.session = (*session)->id,
                             .what = forget ? What::kForget : What::kKeep};
  if (const auto name = call.option("fence")) {
    const absl::StatusOr<Fence> fence = named_fence(stage, *name, (*session)->engine);
    if (!fence.ok()) return {.status = fence.status()};
    event.fence = *fence;
  }
  const std::shared_ptr<SessionModel> model = *session;
  return ask(stage, call, engine_of(*model, call), event, Waits::kNot,
             [model](const ledger::Reply& reply) {
               if (reply.status.ok()) model->closed = true;
             })
      .outcome;
}

Outcome truncate_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("truncate S PAGES");
  const auto session = find_session(stage, call.arguments[0]);
  const absl::StatusOr<uint32_t> pages = parse_count(call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  if (!pages.ok()) return broken(pages.status());
  const std::shared_ptr<SessionModel> model = *session;
  return ask(stage, call, engine_of(*model, call),
             ledger::Truncate{.session = model->id, .tokens = *pages * stage.page_tokens()},
             Waits::kForAnswer,
             [model, keep = *pages](const ledger::Reply& reply) {
               if (reply.status.ok() && keep < model->pages.size()) model->pages.resize(keep);
             })
      .outcome;
}

Outcome park_verb(Stage& stage, const Call& call) {
  if (call.arguments.empty()) return broken("park S waiting_tool");
  const auto session = find_session(stage, call.arguments[0]);
  if (!session.ok()) return broken(session.status());
  const std::string word = call.arguments.size() > 1 ? call.arguments[1] : "waiting_tool";
  const std::optional<SessionState> state = session_state_from_name(word);
  if (!state) return broken(absl::StrCat("no session state '", word, "'"));
  return ask(stage, call, engine_of(**session, call),
             ledger::Park{.session = (*session)->id, .state = *state}, Waits::kNot)
      .outcome;
}

Outcome unpark_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("unpark S");
  const auto session = find_session(stage, call.arguments[0]);
  if (!session.ok()) return broken(session.status());
  return ask(stage, call, engine_of(**session, call), ledger::Unpark{.session = (*session)->id},
             Waits::kNot)
      .outcome;
}

Outcome setbudget_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("setbudget S PAGES");
  const auto session = find_session(stage, call.arguments[0]);
  const absl::StatusOr<uint32_t> pages = parse_count(call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  if (!pages.ok()) return broken(pages.status());
  return ask(stage, call, anybody_of(stage, **session, call),
             ledger::SetBudget{.session = (*session)->id, .budget_pages = *pages},
             Waits::kForAnswer)
      .outcome;
}

Outcome setmode_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("setmode S exact|lossy");
  const auto session = find_session(stage, call.arguments[0]);
  const std::optional<Mode> mode = mode_from_name(call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  if (!mode) return broken(absl::StrCat("no mode '", call.arguments[1], "'"));
  const std::shared_ptr<SessionModel> model = *session;
  return ask(stage, call, anybody_of(stage, *model, call),
             ledger::SetMode{.session = model->id, .mode = *mode}, Waits::kForAnswer,
             [model, to = *mode](const ledger::Reply& reply) {
               if (reply.status.ok()) model->mode = to;
             })
      .outcome;
}

Outcome repair_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("repair S [-> page=3]");
  const auto session = find_session(stage, call.arguments[0]);
  if (!session.ok()) return broken(session.status());
  Asked asked = ask(stage, call, engine_of(**session, call),
                    ledger::Repair{.session = (*session)->id}, Waits::kForAnswer);
  if (!asked.reply) return asked.outcome;
  const auto* repair = std::get_if<ledger::RepairReply>(&asked.reply->body);
  if (repair == nullptr) return asked.outcome;
  if (repair->needed == ledger::RepairReply::Needed::kNo) {
    asked.outcome.answer = {{"none", ""}};
  } else {
    asked.outcome.answer = {{"page", absl::StrCat(repair->first_page)},
                            {"tokens", absl::StrCat(repair->tokens)}};
  }
  return asked.outcome;
}

constexpr VerbEntry kVerbs[] = {
    {"session", session_verb}, {"close", close_verb},   {"truncate", truncate_verb},
    {"park", park_verb},       {"unpark", unpark_verb}, {"setbudget", setbudget_verb},
    {"setmode", setmode_verb}, {"repair", repair_verb},
};

}  // namespace

absl::Span<const VerbEntry> session_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
