// Loop variables in words: `$name` and the arithmetic that follows it, or `$( … )`. Integers,
// + - * / %, the usual precedence. See parser.h.
#include <cctype>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/parser.h"

namespace memdecay::scenario {
namespace {

bool is_name(char c) { return isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return isdigit(static_cast<unsigned char>(c)) != 0; }

// Recursive descent over text_[at_…]. `kOpen`: stops where arithmetic stops reading; `kBracketed`:
// everything up to the closing bracket must be arithmetic.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, size_t at, const Variables& variables)
      : text_(text), at_(at), variables_(variables) {}

  // `$name…`: the rest of the word goes on only where an operator is followed by an operand.
  std::optional<int64_t> open() {
    bare_names_ = false;
    return sum();
  }
  // After "$(".
  std::optional<int64_t> bracketed() {
    bare_names_ = true;
    const std::optional<int64_t> value = sum();
    if (!value || at_ >= text_.size() || text_[at_] != ')') return std::nullopt;
    ++at_;
    return value;
  }
  size_t at() const { return at_; }
  const std::string& unknown() const { return unknown_; }

 private:
  bool operand_at(size_t at) const {
    if (at >= text_.size()) return false;
    if (is_digit(text_[at]) || text_[at] == '$') return true;
    return bare_names_ && (is_name(text_[at]) || text_[at] == '(');
  }
  bool operator_here(std::string_view operators) const {
    return at_ < text_.size() && operators.find(text_[at_]) != operators.npos &&
           operand_at(at_ + 1);
  }

  std::optional<int64_t> sum() {
    std::optional<int64_t> left = product();
    while (left && operator_here("+-")) {
      const char op = text_[at_++];
      const std::optional<int64_t> right = product();
      if (!right) return std::nullopt;
      left = op == '+' ? *left + *right : *left - *right;
    }
    return left;
  }
  std::optional<int64_t> product() {
    std::optional<int64_t> left = operand();
    while (left && operator_here("*/%")) {
      const char op = text_[at_++];
      const std::optional<int64_t> right = operand();
      if (!right || (op != '*' && *right == 0)) return std::nullopt;
      left = op == '*' ? *left * *right : op == '/' ? *left / *right : *left % *right;
    }
    return left;
  }
  std::optional<int64_t> operand() {
    if (at_ >= text_.size()) return std::nullopt;
    if (text_[at_] == '$') ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      const bool before = bare_names_;
      const std::optional<int64_t> value = bracketed();
      bare_names_ = before;
      return value;
    }
    const size_t start = at_;
    if (at_ < text_.size() && is_digit(text_[at_])) {
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      int64_t value = 0;
      for (const char digit : text_.substr(start, at_ - start)) value = value * 10 + (digit - '0');
      return value;
    }
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    const std::string name(text_.substr(start, at_ - start));
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
      unknown_ = name;
      return std::nullopt;
    }
    return found->second;
  }

  std::string_view text_;
  size_t at_;
  const Variables& variables_;
  bool bare_names_ = false;
  std::string unknown_;
};

}  // namespace

absl::StatusOr<std::string> substitute(std::string_view word, const Variables& variables) {
  std::string out;
  size_t at = 0;
  while (at < word.size()) {
    if (word[at] != '$') {
      out.push_back(word[at++]);
      continue;
    }
    const bool bracket = at + 1 < word.size() && word[at + 1] == '(';
    Arithmetic arithmetic(word, bracket ? at + 2 : at, variables);
    const std::optional<int64_t> value = bracket ? arithmetic.bracketed() : arithmetic.open();
    if (!value) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("'", as_absl(word), "'"),
                        arithmetic.unknown().empty()
                            ? std::string("is no arithmetic")
                            : absl::StrCat("no loop variable '", arithmetic.unknown(), "' here"),
                        "repeat N as i { … $i … }");
    }
    absl::StrAppend(&out, *value);
    at = arithmetic.at();
  }
  return out;
}

}  // namespace memdecay::scenario
