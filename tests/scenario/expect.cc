// Expectations about everything but pages. See expect.h.
#include "tests/scenario/expect.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::scenario {
namespace {

#ifndef __has_feature
#define __has_feature(feature) 0  // GCC has none of Clang's
#endif

// Memory that an allocator keeps is no leak; ASan keeps more: shadow, fake stacks, redzones.
constexpr int64_t kRssSlack = int64_t{__has_feature(address_sanitizer) ? 64 : 16} << 20;

// What a request came to: its own number, or how it failed.
struct Result {
  enum class Kind : uint8_t { kPending, kDone, kFailed } kind = Kind::kPending;
  int64_t value = 0;
  ErrorCode code = ErrorCode::kOk;
};

Result result_of(const Pending& pending) {
  if (!pending.reply) return {};
  if (!pending.reply->status.ok()) {
    return {.kind = Result::Kind::kFailed, .code = error_code(pending.reply->status)};
  }
  Result result{.kind = Result::Kind::kDone};
  const ledger::ReplyBody& body = pending.reply->body;
  if (const auto* restored = std::get_if<ledger::RestoreReply>(&body)) {
    result.value = restored->resident;
    if (restored->resident == 0 && !restored->failed.empty()) {
      return {.kind = Result::Kind::kFailed, .code = restored->failed.front().second};
    }
  } else if (const auto* acquired = std::get_if<ledger::AcquireReply>(&body)) {
    result.value = acquired->pages;
  } else if (const auto* pressure = std::get_if<ledger::PressureReply>(&body)) {
    result.value = pressure->free_pages;
  } else if (const auto* grant = std::get_if<ledger::GrantReply>(&body)) {
    result.value = static_cast<int64_t>(grant->pages.size());
  }
  return result;
}

Outcome expect_pending(Stage& stage, const Call& call) {
  const auto found = stage.named.find(call.arguments[0]);
  if (found == stage.named.end()) {
    return broken(absl::StrCat("nothing is called ", call.arguments[0]));
  }
  absorb(stage);
  const Result result = result_of(*found->second);
  const std::string& wanted = call.arguments[1];
  const std::string detail = call.arguments.size() > 2 ? call.arguments[2] : "";
  switch (result.kind) {
    case Result::Kind::kPending:
      if (wanted == "pending") return {};
      return unexpected(call.raw, "pending");
    case Result::Kind::kDone:
      if (wanted == "done" && (detail.empty() || detail == absl::StrCat(result.value))) return {};
      return unexpected(call.raw, absl::StrCat("done ", result.value));
    case Result::Kind::kFailed:
      if (wanted == "failed" && (detail.empty() || detail == error_name(result.code))) return {};
      return unexpected(call.raw, absl::StrCat("failed ", as_absl(error_name(result.code))));
  }
  return {};
}

Outcome expect_session(Stage& stage, const Call& call) {
  if (call.arguments.size() < 2) return broken("expect session S STATE");
  const auto session = find_session(stage, call.arguments[1]);
  if (!session.ok()) return broken(session.status());
  const absl::StatusOr<ledger::SessionReport> report = stage.world->session((*session)->id);
  if (!report.ok()) {
    if (call.arguments.size() > 2 && call.arguments[2] == "gone" &&
        error_code(report.status()) == ErrorCode::kUnknownSession) {
      return {};
    }
    return unexpected(call.raw, std::string(report.status().message()));
  }
  const bool ready = report->ready == ledger::SessionReport::Ready::kYes;
  const std::string actual =
      absl::StrCat(as_absl(session_state_name(report->state)), ready ? " ready" : " waiting",
                   " position=", report->position, " step=", report->step);
  for (size_t i = 2; i < call.arguments.size(); ++i) {
    const std::string& word = call.arguments[i];
    const bool holds = word == "ready"     ? ready
                       : word == "waiting" ? !ready
                                           : word == session_state_name(report->state);
    if (!holds) return unexpected(call.raw, actual);
  }
  const auto position = call.option("position");
  if (position && *position != absl::StrCat(report->position)) return unexpected(call.raw, actual);
  const auto step = call.option("step");
  if (step && *step != absl::StrCat(report->step)) return unexpected(call.raw, actual);
  return {};
}

using Labels = std::vector<std::pair<std::string, std::string>>;

struct StatName {
  std::string name;
  Labels labels;
};

absl::StatusOr<StatName> parse_stat(const std::string& word) {
  const size_t brace = word.find('{');
  StatName out{.name = word.substr(0, brace)};
  if (out.name.rfind("memdecay_", 0) == 0) out.name = out.name.substr(9);
  if (brace == std::string::npos) return out;
  if (word.back() != '}') return bad_value("a metric", word, "NAME{k=v,k2=v2}");
  const std::string inside = word.substr(brace + 1, word.size() - brace - 2);
  for (const auto piece : absl::StrSplit(inside, ',', absl::SkipEmpty())) {
    std::pair<std::string, std::string> label = absl::StrSplit(piece, absl::MaxSplits('=', 1));
    std::erase(label.second, '"');
    out.labels.push_back(std::move(label));
  }
  return out;
}

bool has_labels(const ledger::Sample& sample, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    return std::find(sample.labels.begin(), sample.labels.end(), label) != sample.labels.end();
  });
}

Outcome expect_stat(Stage& stage, const Call& call) {
  if (call.arguments.size() != 4) return broken("expect stat NAME{k=v} = 1");
  const absl::StatusOr<StatName> stat = parse_stat(call.arguments[1]);
  const std::optional<Relation> relation = parse_relation(call.arguments[2]);
  absl::StatusOr<double> wanted = parse_number(call.arguments[3]);
  if (!wanted.ok()) {
    if (const absl::StatusOr<int64_t> bytes = parse_bytes(call.arguments[3]); bytes.ok()) {
      wanted = static_cast<double>(*bytes);
    }
  }
  if (!stat.ok()) return broken(stat.status());
  if (!relation) return broken(absl::StrCat("no relation '", call.arguments[2], "'"));
  if (!wanted.ok()) return broken(wanted.status());
  const auto samples = stage.world->samples();
  if (!samples.ok()) return broken(samples.status());
  double sum = 0;
  std::vector<std::string> near;
  for (const ledger::Sample& sample : *samples) {
    if (sample.name != stat->name) continue;
    std::vector<std::string> labels;
    for (const auto& [key, value] : sample.labels) labels.push_back(absl::StrCat(key, "=", value));
    near.push_back(absl::StrCat("{", absl::StrJoin(labels, ","), "} ", sample.value));
    if (has_labels(sample, stat->labels)) sum += sample.value;
  }
  if (holds(sum, *relation, *wanted)) return {};
  return unexpected(call.raw, absl::StrCat(sum, "   of ", absl::StrJoin(near, ", ")));
}

Outcome expect_event(Stage& stage, const Call& call) {
  if (call.arguments.size() < 3) return broken("expect event E1 evict [S:3] [times=1]");
  const std::string& engine = call.arguments[1];
  const std::string& kind = call.arguments[2];
  std::optional<SessionId> session;
  std::vector<PageIndex> pages;
  if (call.arguments.size() > 3 && looks_like_pages(call.arguments[3])) {
    const absl::StatusOr<ModelPages> found = find_pages(stage, call.arguments[3]);
    if (!found.ok()) return broken(found.status());
    session = found->session->id;
    pages = found->pages;
  } else if (call.arguments.size() > 3) {
    const auto found = find_session(stage, call.arguments[3]);
    if (!found.ok()) return broken(found.status());
    session = (*found)->id;
  }
  const std::vector<Heard> heard = stage.world->heard(engine);
  const auto count = [&](std::optional<PageIndex> page) {
    return std::count_if(heard.begin(), heard.end(), [&](const Heard& event) {
      return event.kind == kind && (!session || event.session == *session) &&
             (!page || event.page == page);
    });
  };
  std::vector<std::optional<PageIndex>> wanted(pages.begin(), pages.end());
  if (wanted.empty()) wanted.emplace_back();
  std::optional<int64_t> times;
  if (const auto text = call.option("times")) {
    const absl::StatusOr<int64_t> number = parse_integer(*text);
    if (!number.ok()) return broken(number.status());
    times = *number;
  }
  for (const std::optional<PageIndex> page : wanted) {
    const int64_t seen = count(page);
    if (times ? seen == *times : seen > 0) continue;
    return unexpected(
        call.raw,
        absl::StrCat(seen, " times", page ? absl::StrCat(" for page ", *page) : std::string()));
  }
  return {};
}

Outcome expect_engine(Stage& stage, const Call& call) {
  if (call.arguments.size() != 3) return broken("expect engine E1 STATE");
  const absl::StatusOr<std::string> state = stage.world->engine_state(call.arguments[1]);
  if (!state.ok()) return broken(state.status());
  if (*state == call.arguments[2]) return {};
  return unexpected(call.raw, *state);
}

Outcome expect_check(Stage& stage, const Call&) {
  const std::vector<std::string> wrong = stage.world->audit();
  if (wrong.empty()) return {};
  return unexpected("every counter and state agrees", absl::StrJoin(wrong, "\n           "));
}

Outcome expect_rss(Stage& stage, const Call& call) {
  if (call.arguments.size() != 3) return broken("expect rss < +16MiB");
  const std::optional<Relation> relation = parse_relation(call.arguments[1]);
  const absl::StatusOr<int64_t> wanted = parse_bytes(call.arguments[2]);
  if (!relation || !wanted.ok()) return broken("expect rss < +16MiB");
  const absl::StatusOr<World::Footprint> now = stage.world->footprint();
  if (!now.ok()) return broken(now.status());
  const bool relative = call.arguments[2][0] == '+';
  const int64_t grown = now->rss_bytes - (relative ? stage.footprint.rss_bytes : 0);
  if (holds(static_cast<double>(grown), *relation, static_cast<double>(*wanted))) return {};
  return unexpected(call.raw, absl::StrCat(grown, " bytes"));
}

Outcome expect_idle(Stage& stage, const Call&) {
  const absl::StatusOr<ledger::StatusReport> status = stage.world->status();
  const auto sessions = stage.world->sessions();
  const absl::StatusOr<World::Footprint> now = stage.world->footprint();
  if (!status.ok()) return broken(status.status());
  if (!sessions.ok()) return broken(sessions.status());
  if (!now.ok()) return broken(now.status());
  std::vector<std::string> left;
  const auto note = [&](int64_t count, std::string_view what) {
    if (count > 0) left.push_back(absl::StrCat(count, " ", as_absl(what)));
  };
  // Ended and orphaned ones wait for nobody and go by their own TTL.
  note(std::count_if(sessions->begin(), sessions->end(),
                     [](const ledger::SessionReport& session) {
                       return session.state != SessionState::kEnded &&
                              session.state != SessionState::kOrphaned;
                     }),
       "sessions");
  note(status->leases, "leases");
  note(status->pinned_pages, "pinned pages");
  note(status->copies_in_flight, "copies in flight");
  note(status->waiting_requests, "waiting requests");
  for (const SlotState state : {SlotState::kReserved, SlotState::kCopyingOut, SlotState::kCopyingIn,
                                SlotState::kQuarantined}) {
    note(status->slots[static_cast<size_t>(state)], slot_state_name(state));
  }
  note(now->descriptors - stage.footprint.descriptors, "more descriptors");
  if (now->rss_bytes > stage.footprint.rss_bytes + kRssSlack) {
    note(now->rss_bytes - stage.footprint.rss_bytes, "more bytes of memory");
  }
  if (left.empty()) return {};
  return unexpected("idle", absl::StrJoin(left, ", "));
}

struct Expectation {
  std::string_view name;
  Verb check;
};

constexpr Expectation kExpectations[] = {
    {"bytes", expect_bytes},
    {"same", expect_slots},
    {"other", expect_slots},
    {"blank", expect_blank},
    {"count", expect_count},
    {"exact", expect_exactness},
    {"approximate", expect_exactness},
    {"session", expect_session},
    {"victims", expect_victims},
    {"score", expect_score},
    {"stat", expect_stat},
    {"reason", expect_reason},
    {"event", expect_event},
    {"engine", expect_engine},
    {"check", expect_check},
    {"idle", expect_idle},
};

}  // namespace

Outcome expect_verb(Stage& stage, const Call& call) {
  const std::string& what = call.arguments.at(0);
  if (what == "rss") return expect_rss(stage, call);
  for (const Expectation& expectation : kExpectations) {
    if (expectation.name == what) return expectation.check(stage, call);
  }
  if (looks_like_pages(what)) return expect_page_state(stage, call);
  return expect_pending(stage, call);
}

}  // namespace memdecay::scenario
