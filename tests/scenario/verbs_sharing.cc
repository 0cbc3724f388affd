// lookup, acquire, release, drop: what is shared by content, and forgetting it.
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

struct Wanted {
  std::string key;
  std::string extra;
  uint32_t pages = 0;
};

absl::StatusOr<Wanted> wanted(const Call& call) {
  Wanted out{.key = call.option("key").value_or(""), .extra = call.option("extra").value_or("")};
  const absl::StatusOr<uint32_t> pages = parse_count(call.option("pages").value_or(""));
  if (!pages.ok()) return bad_value("pages", call.raw, "pages=4");
  if (out.key.empty()) return bad_value("key", call.raw, "key=doc1");
  out.pages = *pages;
  return out;
}

Extras extras_of(const Wanted& want) {
  Extras extras;
  if (!want.extra.empty()) extras.values.push_back(want.extra);
  return extras;
}

Outcome lookup_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1 || !stage.engines.contains(call.arguments[0])) {
    return broken("lookup ENGINE key=… pages=…");
  }
  const absl::StatusOr<Wanted> want = wanted(call);
  if (!want.ok()) return broken(want.status());
  ledger::Lookup event{.tokens = tokens_of(want->key, 0, want->pages, stage.page_tokens())};
  Asked asked = ask(stage, call, {.engine = call.arguments[0]}, std::move(event), Waits::kForAnswer,
                    {}, extras_of(*want));
  if (!asked.reply) return asked.outcome;
  if (const auto* found = std::get_if<ledger::LookupReply>(&asked.reply->body)) {
    asked.outcome.answer = {{"", absl::StrCat(found->pages)},
                            {"missing", absl::StrCat(found->first_missing)},
                            {"device", absl::StrCat(found->device_pages)},
                            {"host", absl::StrCat(found->host_pages)}};
    if (found->pending == ledger::LookupReply::Pending::kYes) {
      asked.outcome.answer.emplace_back("pending", "");
    }
  }
  return asked.outcome;
}

// The session gets the pages from its end on; they were computed by somebody with nothing missing.
void learn_acquired(Stage& stage, SessionModel& session, const Wanted& want,
                    const ledger::Reply& reply) {
  const auto* acquired = std::get_if<ledger::AcquireReply>(&reply.body);
  if (!reply.status.ok() || acquired == nullptr) return;
  const auto had = static_cast<uint32_t>(session.pages.size());
  if (acquired->pages <= had) return;
  session.pages = exact_pages(want.key, want.extra, std::move(session.pages), acquired->pages - had,
                              stage.page_tokens());
  session.key = want.key;
}

Outcome acquire_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("acquire ENGINE|SESSION key=… pages=… [as L]");
  const absl::StatusOr<Wanted> want = wanted(call);
  if (!want.ok()) return broken(want.status());
  const std::string& who = call.arguments[0];
  ledger::Acquire event;
  Caller caller;
  std::function<void(const ledger::Reply&)> learn;
  if (const auto session = stage.sessions.find(who); session != stage.sessions.end()) {
    const std::shared_ptr<SessionModel> model = session->second;
    caller = engine_of(*model, call);
    event.session = model->id;
    // Keys chain from the first page, so what the session has already comes first; `pages` counts
    // it as well.
    for (PageIndex page = 0; page < model->pages.size() && page < want->pages; ++page) {
      const auto tokens = tokens_of(model->pages[page].key, page, 1, stage.page_tokens());
      event.tokens.insert(event.tokens.end(), tokens.begin(), tokens.end());
    }
    learn = [&stage, model, want = *want](const ledger::Reply& reply) {
      learn_acquired(stage, *model, want, reply);
    };
  } else if (stage.engines.contains(who)) {
    caller = {.engine = who};
  } else {
    return broken(absl::StrCat("the script has no engine or session ", who));
  }
  const auto before = static_cast<PageIndex>(event.tokens.size() / stage.page_tokens());
  const auto tokens = tokens_of(want->key, before, want->pages - before, stage.page_tokens());
  event.tokens.insert(event.tokens.end(), tokens.begin(), tokens.end());
  Asked asked =
      ask(stage, call, caller, std::move(event), Waits::kNot, std::move(learn), extras_of(*want));
  if (!asked.reply) return asked.outcome;
  if (const auto* acquired = std::get_if<ledger::AcquireReply>(&asked.reply->body)) {
    asked.outcome.answer = {{"", absl::StrCat(acquired->pages)}};
  }
  return asked.outcome;
}

Outcome release_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("release NAME");
  const auto pending = stage.named.find(call.arguments[0]);
  if (pending == stage.named.end() || pending->second->verb != "acquire") {
    return broken(absl::StrCat("no lease is called ", call.arguments[0]));
  }
  if (!pending->second->reply) return broken("the lease has not been given yet");
  const auto* acquired = std::get_if<ledger::AcquireReply>(&pending->second->reply->body);
  if (acquired == nullptr) return {.status = pending->second->reply->status};
  return ask(stage, call, pending->second->caller, ledger::Release{.lease = acquired->lease},
             Waits::kForAnswer)
      .outcome;
}

Outcome drop_verb(Stage& stage, const Call& call) {
  if (call.arguments.empty()) return broken("drop host|device|all [S:12..15]");
  ledger::Drop event;
  const std::string& where = call.arguments[0];
  if (where == "all") {
    event.reach = ledger::Drop::Reach::kAllTiers;
  } else if (where == "device") {
    event.tier = Tier::kDevice;
  } else if (where != "host") {
    return broken("drop host, device or all");
  }
  Caller caller{.tenant = call.option("tenant").value_or("")};
  if (call.arguments.size() > 1) {
    const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[1]);
    if (!pages.ok()) return broken(pages.status());
    event.session = pages->session->id;
    event.pages = pages->pages;
    caller.tenant = pages->session->tenant;
  }
  Asked asked = ask(stage, call, caller, std::move(event), Waits::kForAnswer);
  if (!asked.reply) return asked.outcome;
  if (const auto* dropped = std::get_if<ledger::DropReply>(&asked.reply->body)) {
    uint32_t total = 0;
    for (const auto& [tier, pages] : dropped->cleared) total += pages;
    asked.outcome.answer = {{"", absl::StrCat(total)}};
    for (const std::string_view name : {"device", "host"}) {
      uint32_t cleared = 0;
      for (const auto& [tier, pages] : dropped->cleared) {
        if (tier_name(tier) == name) cleared += pages;
      }
      asked.outcome.answer.emplace_back(name, absl::StrCat(cleared));
    }
  }
  return asked.outcome;
}

constexpr VerbEntry kVerbs[] = {{"lookup", lookup_verb},
                                {"acquire", acquire_verb},
                                {"release", release_verb},
                                {"drop", drop_verb}};

}  // namespace

absl::Span<const VerbEntry> sharing_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
