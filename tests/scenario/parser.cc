// See parser.h.
#include "tests/scenario/parser.h"

#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/statements.h"
#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

constexpr std::string_view kHeader = "# memdecay-scenario 1";
constexpr int kMaxDepth = 16;

absl::Status at_line(std::string_view path, int line, std::string what, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat(as_absl(path), ":", line, ": ", std::move(what)), "",
                    std::move(todo));
}

bool is_space(char c) { return isspace(static_cast<unsigned char>(c)) != 0; }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) absl::StrAppend(&out, out.empty() ? "" : " ", word);
  return out;
}

// Builds the tree of statements from the words of line after line.
class TreeBuilder {
 public:
  explicit TreeBuilder(Script& script) : script_(script) { open_.push_back(&script.statements); }

  absl::Status add_line(int line, std::string_view text) {
    std::vector<std::string> words;
    for (std::string& word : split_words(text)) {
      if (word == "{" || word == "}" || word == ";" || word == "·") {
        if (absl::Status ended = end_of_words(line, words, word); !ended.ok()) return ended;
        words.clear();
      } else {
        words.push_back(std::move(word));
      }
    }
    return end_of_words(line, words, "");
  }

  absl::Status finish(int line) const {
    if (open_.size() == 1) return absl::OkStatus();
    return at_line(script_.path, line, "a block is still open", "add }");
  }

 private:
  absl::Status end_of_words(int line, std::vector<std::string>& words, std::string_view mark) {
    if (mark == "{") return open_block(line, words);
    if (!words.empty()) {
      Statement statement{.line = line, .text = joined(words), .words = words};
      if (statement.words[0] == "repeat" || statement.words[0] == "parallel" ||
          statement.words[0] == "seed") {
        return at_line(script_.path, line, absl::StrCat("'", statement.words[0], "' needs a block"),
                       "put { on the same line");
      }
      if (absl::Status checked = check_statement(statement); !checked.ok()) {
        const ErrorDetail detail = error_detail(checked);
        return at_line(script_.path, line, absl::StrCat(detail.there, " in ", detail.asked),
                       detail.todo);
      }
      open_.back()->push_back(std::move(statement));
    }
    if (mark == "}") {
      if (open_.size() == 1) return at_line(script_.path, line, "} without {", "remove it");
      open_.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status open_block(int line, const std::vector<std::string>& words) {
    Statement block{.line = line, .text = joined(words), .words = words};
    const auto bad = [&] {
      return at_line(script_.path, line, absl::StrCat("no such block: '", block.text, " {'"),
                     "repeat N [as i] {, parallel {, seed 1..100 {");
    };
    if (words.empty()) return bad();
    if (words[0] == "repeat" && (words.size() == 2 || (words.size() == 4 && words[2] == "as"))) {
      block.block = Block::kRepeat;
      if (words.size() == 4) block.variable = words[3];
    } else if (words[0] == "parallel" && words.size() == 1) {
      block.block = Block::kParallel;
    } else if (words[0] == "seed" &&
               (words.size() == 2 || (words.size() == 4 && words[2] == "as"))) {
      if (!parse_range(words[1]).ok()) return bad();
      block.block = Block::kSeed;
      if (words.size() == 4) block.variable = words[3];
    } else {
      return bad();
    }
    if (open_.size() > kMaxDepth) {
      return at_line(script_.path, line, "blocks are too deep", "at most 16 levels");
    }
    open_.back()->push_back(std::move(block));
    open_.push_back(&open_.back()->back().body);
    return absl::OkStatus();
  }

  Script& script_;
  // Innermost last. The vectors above the innermost one do not grow while it is open.
  std::vector<std::vector<Statement>*> open_;
};

absl::Status read_directive(Script& script, int line, std::string_view text) {
  const absl::string_view body = absl::StripAsciiWhitespace(as_absl(text.substr(1)));
  if (body.rfind("audit=", 0) == 0) {
    const auto every = parse_count(std::string_view(body.data() + 6, body.size() - 6));
    if (!every.ok() || *every == 0) {
      return at_line(script.path, line, "audit= takes a count", "# audit=1000");
    }
    script.audit_every = static_cast<int>(*every);
  } else if (script.title.empty()) {
    script.title = std::string(body);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '#' && word.empty()) break;
    if (is_space(c)) {
      end_word();
    } else if (c == '{' && !word.empty() && line.find('}', i) != line.npos &&
               line.substr(i, line.find('}', i) - i).find('=') != line.npos &&
               !is_space(line[i + 1])) {
      // Labels belong to the name before them; blanks inside do not count.
      for (; line[i] != '}'; ++i) {
        if (!is_space(line[i])) word.push_back(line[i]);
      }
      word.push_back('}');
    } else if (c == '{' || c == '}' || c == ';') {
      end_word();
      words.emplace_back(1, c);
    } else {
      word.push_back(c);
    }
  }
  end_word();
  return words;
}

absl::StatusOr<Script> parse_script(std::string_view path, std::string_view text) {
  Script script{.path = std::string(path)};
  TreeBuilder tree(script);
  int line = 0;
  for (const absl::string_view piece : absl::StrSplit(as_absl(text), '\n')) {
    ++line;
    const absl::string_view stripped = absl::StripAsciiWhitespace(piece);
    const std::string_view view(stripped.data(), stripped.size());
    if (line == 1) {
      if (view != kHeader) {
        return at_line(path, 1, "not a scenario file",
                       absl::StrCat("the first line must be '", as_absl(kHeader), "'"));
      }
      continue;
    }
    if (!view.empty() && view[0] == '#') {
      if (absl::Status read = read_directive(script, line, view); !read.ok()) return read;
      continue;
    }
    if (absl::Status added = tree.add_line(line, view); !added.ok()) return added;
  }
  if (absl::Status finished = tree.finish(line); !finished.ok()) return finished;
  return script;
}

absl::StatusOr<Call> resolve_call(const Statement& statement, const Variables& variables) {
  Call call{.statement = &statement, .verb = statement.words[0]};
  const bool plain_arguments = call.verb == "expect" && statement.words.size() > 1 &&
                               (statement.words[1] == "stat" || statement.words[1] == "score" ||
                                statement.words[1] == "rss" || statement.words[1] == "count");
  for (size_t i = 1; i < statement.words.size(); ++i) {
    absl::StatusOr<std::string> replaced = substitute(statement.words[i], variables);
    if (!replaced.ok()) return replaced.status();
    std::string word = *std::move(replaced);
    absl::StrAppend(&call.raw, call.raw.empty() ? "" : " ", word);
    if (word == "!?") {
      call.failure = {.kind = ExpectedFailure::Kind::kAny};
    } else if (word.size() > 1 && word[0] == '!' && isalpha(static_cast<unsigned char>(word[1]))) {
      call.failure = {.kind = ExpectedFailure::Kind::kCode, .code = word.substr(1)};
    } else if (word == "as" && i + 1 < statement.words.size() && call.verb != "expect") {
      absl::StatusOr<std::string> name = substitute(statement.words[++i], variables);
      if (!name.ok()) return name.status();
      call.as = *std::move(name);
    } else if (word == "->") {
      call.has_answer = true;
    } else if (call.has_answer) {
      call.answer.push_back(std::move(word));
    } else if (const size_t equals = word.find('=');
               !plain_arguments && equals != std::string::npos && equals > 0) {
      call.options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else {
      call.arguments.push_back(std::move(word));
    }
  }
  if (call.failure.kind == ExpectedFailure::Kind::kCode && !error_from_name(call.failure.code)) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("!", call.failure.code),
                      "is no error code", "see vocabulary.md");
  }
  return call;
}

}  // namespace memdecay::scenario
