// Scenario files as data: statements with their line, their words and, for blocks, their bodies;
// and a statement with its loop variables filled in and its words sorted (Call), which is what
// runs. Words are kept as written until a statement runs, because `$i` changes from round to round.
// Thread: values.
// Not here: which statements exist (statements.h), what they do (verbs_*.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memdecay::scenario {

enum class Block : uint8_t { kNone, kRepeat, kParallel, kSeed };

struct Statement {
  int line = 0;
  std::string text;                // as written, for messages
  std::vector<std::string> words;  // words[0] names the statement
  Block block = Block::kNone;
  std::string variable;         // repeat: its loop variable, or empty
  std::vector<Statement> body;  // blocks
};

struct Script {
  std::string path;
  std::string title;    // the first comment after the header
  int audit_every = 1;  // `# audit=N`
  std::vector<Statement> statements;
};

// Expected failure: none, `!code`, or `!?` (any typed error may come, or none).
struct ExpectedFailure {
  enum class Kind : uint8_t { kNone, kCode, kAny };
  Kind kind = Kind::kNone;
  std::string code;
};

struct Call {
  const Statement* statement = nullptr;
  std::string verb;
  std::vector<std::string> arguments;  // words without '=' between verb and "->"
  std::vector<std::pair<std::string, std::string>> options;  // name=value, in order
  bool has_answer = false;
  std::vector<std::string> answer;  // words after "->"
  ExpectedFailure failure;
  std::string as;   // `as NAME`
  std::string raw;  // all words after the verb, one space between

  int line() const { return statement->line; }
  std::optional<std::string> option(std::string_view name) const {
    for (const auto& [key, value] : options) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
};

}  // namespace memdecay::scenario
