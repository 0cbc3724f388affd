// See runner.h.
#include "tests/scenario/runner.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/expect.h"
#include "tests/scenario/parser.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

// What a finished statement's outcome means for the script; empty: as it should be.
std::string judge(const Call& call, const Outcome& outcome) {
  if (!outcome.broken.empty()) return outcome.broken;
  const ErrorCode code = error_code(outcome.status);
  switch (call.failure.kind) {
    case ExpectedFailure::Kind::kAny:
      return {};
    case ExpectedFailure::Kind::kCode:
      if (!outcome.status.ok() && call.failure.code == error_name(code)) return {};
      return unexpected(absl::StrCat("failure ", call.failure.code),
                        outcome.status.ok() ? std::string("it worked, or has no answer yet")
                                            : absl::StrCat(as_absl(error_name(code)), ": ",
                                                           outcome.status.message()))
          .broken;
    case ExpectedFailure::Kind::kNone:
      break;
  }
  // A pending thing with a name tells its end to `expect NAME …`.
  if (!outcome.status.ok() && call.as.empty()) {
    return unexpected("it works",
                      absl::StrCat(as_absl(error_name(code)), ": ", outcome.status.message()))
        .broken;
  }
  const auto answered = [&](std::string_view name) -> std::optional<std::string> {
    for (const auto& [key, value] : outcome.answer) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
  for (const std::string& word : call.answer) {
    const size_t equals = word.find('=');
    const bool number = !word.empty() && isdigit(static_cast<unsigned char>(word[0])) != 0;
    const std::string name = equals != std::string::npos ? word.substr(0, equals)
                             : number                    ? std::string()
                                                         : word;
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : number                    ? word
                                                          : std::string();
    if (answered(name) == value) continue;
    std::string actual;
    for (const auto& [key, was] : outcome.answer) {
      absl::StrAppend(&actual, actual.empty() ? "" : " ", key,
                      key.empty() || was.empty() ? "" : "=", was);
    }
    return unexpected(absl::StrCat("-> ", word), actual.empty() ? "no such answer" : actual).broken;
  }
  return {};
}

class Run {
 public:
  Run(const Script& script, const RunOptions& options) : script_(script), options_(options) {
    world_ = options.make_world();
    stage_.world = world_.get();
    stage_.seed = options.seed;
  }

  RunResult run() {
    RunResult result;
    result.message = statements(script_.statements, {});
    if (!result.message.empty()) result.kind = RunResult::Kind::kFailed;
    add_hash();
    result.event_hash = hash_;
    result.statements = count_;
    return result;
  }

 private:
  // All return the report of a failure, or nothing.
  std::string statements(const std::vector<Statement>& list, Variables variables) {
    for (const Statement& statement : list) {
      std::string failed;
      switch (statement.block) {
        case Block::kNone:
          failed = plain(statement, variables);
          break;
        case Block::kRepeat:
          failed = repeat(statement, variables);
          break;
        case Block::kParallel:
          failed = parallel(statement, variables);
          break;
        case Block::kSeed:
          failed = seeds(statement, variables);
          break;
      }
      if (!failed.empty()) return failed;
      if (stage_.turns != nullptr) {
        if (branch_failed_) return {};
        stage_.turns->yield();
      }
    }
    return {};
  }

  std::string plain(const Statement& statement, const Variables& variables) {
    const absl::StatusOr<Call> call = resolve_call(statement, variables);
    if (!call.ok()) return report(statement, nullptr, std::string(call.status().message()));
    const Verb verb = find_verb(call->verb);
    if (verb == nullptr) return report(statement, nullptr, "unknown statement");
    const bool describes =
        call->verb == "daemon" || call->verb == "tenant" || call->verb == "config";
    if (!describes) {
      const absl::Status started = ensure_started(stage_);
      if (!started.ok()) return report(statement, &*call, std::string(started.message()));
    }
    if (call->verb == "daemon" && !call->options.empty()) add_hash();
    ++count_;
    if (options_.trace) {
      options_.trace(absl::StrCat("line ", statement.line, ": ", call->verb, " ", call->raw));
    }
    const Outcome outcome = verb(stage_, *call);
    if (const std::string wrong = judge(*call, outcome); !wrong.empty()) {
      return report(statement, &*call, wrong);
    }
    if (!stage_.started) return {};
    stage_.world->rest();
    absorb(stage_);
    if (count_ % static_cast<uint64_t>(script_.audit_every) == 0 &&
        options_.world == WorldKind::kSim) {
      const std::vector<std::string> audit = stage_.world->audit();
      if (!audit.empty()) {
        return report(
            statement, &*call,
            absl::StrCat("audit after the statement: ", audit[0], " (", audit.size(), " in all)"));
      }
    }
    return {};
  }

  std::string repeat(const Statement& statement, const Variables& variables) {
    const absl::StatusOr<std::string> text = substitute(statement.words[1], variables);
    if (!text.ok()) return report(statement, nullptr, std::string(text.status().message()));
    const absl::StatusOr<uint32_t> rounds = parse_count(*text);
    if (!rounds.ok()) return report(statement, nullptr, std::string(rounds.status().message()));
    Variables inner = variables;
    for (uint32_t i = 0; i < *rounds; ++i) {
      if (!statement.variable.empty()) inner[statement.variable] = i;
      if (std::string failed = statements(statement.body, inner); !failed.empty()) {
        return statement.variable.empty()
                   ? failed
                   : absl::StrCat(failed, "  with ", statement.variable, " = ", i, "\n");
      }
    }
    return {};
  }

  // One branch a statement; a block is one branch.
  std::string parallel(const Statement& statement, const Variables& variables) {
    Turns turns(stage_.seed * 31 + static_cast<uint64_t>(statement.line));
    Turns* const outer = stage_.turns;
    std::vector<std::string> failures(statement.body.size());
    std::vector<std::function<void()>> branches;
    for (size_t i = 0; i < statement.body.size(); ++i) {
      branches.emplace_back([this, i, &statement, &variables, &failures] {
        if (branch_failed_) return;
        failures[i] = statements({statement.body[i]}, variables);
        if (!failures[i].empty()) branch_failed_ = true;
      });
    }
    stage_.turns = &turns;
    turns.run(branches);
    stage_.turns = outer;
    if (outer == nullptr) branch_failed_ = false;
    for (std::string& failure : failures) {
      if (!failure.empty()) return std::move(failure);
    }
    return {};
  }

  std::string seeds(const Statement& statement, const Variables& variables) {
    const auto range = parse_range(statement.words[1]);
    if (!range.ok()) return report(statement, nullptr, std::string(range.status().message()));
    const uint64_t before = stage_.seed;
    Variables inner = variables;
    for (int64_t seed = range->first; seed <= range->second; ++seed) {
      stage_.seed = static_cast<uint64_t>(seed) + (options_.seed - 1) * 1'000'003;
      if (!statement.variable.empty()) inner[statement.variable] = seed;
      if (std::string failed = statements(statement.body, inner); !failed.empty()) {
        return absl::StrCat(failed, "  in seed ", seed, "\n");
      }
    }
    stage_.seed = before;
    return {};
  }

  std::string report(const Statement& statement, const Call* call, const std::string& wrong) {
    std::string out = absl::StrCat(script_.path, ":", statement.line, ": ", statement.text, "\n");
    if (call != nullptr && absl::StrCat(call->verb, " ", call->raw) != statement.text) {
      absl::StrAppend(&out, "  that is  ", call->verb, " ", call->raw, "\n");
    }
    absl::StrAppend(&out, "  ", wrong, "\n");
    if (stage_.started) {
      for (const auto& [name, session] : stage_.sessions) {
        if (call == nullptr || names(*call, name)) absl::StrAppend(&out, describe(name, *session));
      }
    }
    absl::StrAppend(&out, "  seed ", stage_.seed, "\n");
    return out;
  }

  // The call speaks of this session.
  static bool names(const Call& call, const std::string& name) {
    const auto speaks = [&](const std::string& word) {
      return word == name || word.rfind(name + ":", 0) == 0 || word.rfind(name + "@", 0) == 0;
    };
    return std::any_of(call.arguments.begin(), call.arguments.end(), speaks) ||
           call.verb == "pressure" || call.verb == "lookup" ||
           (call.verb == "expect" && (call.arguments[0] == "stat" || call.arguments[0] == "idle" ||
                                      call.arguments[0] == "check"));
  }

  std::string describe(const std::string& name, const SessionModel& session) {
    std::string out =
        absl::StrCat("  pages of ", name, ": ", describe_pages(stage_, session), "\n");
    const auto decisions = stage_.world->decisions(session.id, std::nullopt);
    if (!decisions.ok()) return out;
    for (size_t i = 0; i < decisions->size() && i < 5; ++i) {
      const ledger::DecisionReport& decision = (*decisions)[i];
      absl::StrAppend(&out, "    decision ", decision.decision.value, " ", decision.kind, " ", name,
                      ":", decision.page, " ", as_absl(reason_name(decision.reason)), " score ",
                      decision.score, " ", decision.pressure, " ", decision.first_spared, "\n");
    }
    return out;
  }

  // Before a world is replaced, and at the end.
  void add_hash() {
    const std::optional<uint64_t> hash = world_->event_hash();
    if (hash) hash_ = (hash_ ^ *hash) * 0x100000001b3;
  }

  const Script& script_;
  const RunOptions& options_;
  std::unique_ptr<World> world_;
  Stage stage_;
  uint64_t hash_ = 0;
  uint64_t count_ = 0;
  bool branch_failed_ = false;
};

}  // namespace

RunResult run_script(const Script& script, const RunOptions& options) {
  for (const Statement& statement : script.statements) {
    if (const auto reason = lacking(statement, options.world)) {
      return {.kind = RunResult::Kind::kSkipped, .message = *reason};
    }
  }
  return Run(script, options).run();
}

}  // namespace memdecay::scenario
