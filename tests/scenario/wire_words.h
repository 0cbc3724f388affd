// The line protocol between the scenario runner and memdecay-scenario-engine: a line is words with
// a blank between; a word is "name=value"; lists have commas, bytes are hexadecimal. A request is
//   ID verb name=value …
// and is answered, in any order, by
//   ID CODE name=value … [| message]
// where CODE is "ok" or an error of the vocabulary.
// Thread: values. Both sides include this file.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace memdecay::scenario {

class WireWords {
 public:
  WireWords() = default;
  // The words of a line from `at` on; "| …" goes to message().
  explicit WireWords(std::string_view line) {
    while (!line.empty()) {
      if (line.substr(0, 2) == "| ") {
        message_ = std::string(line.substr(2));
        return;
      }
      const size_t blank = line.find(' ');
      const std::string_view word = line.substr(0, blank);
      const size_t equals = word.find('=');
      if (equals == word.npos) {
        plain_.emplace_back(word);
      } else {
        values_[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
      }
      line = blank == line.npos ? std::string_view() : line.substr(blank + 1);
    }
  }

  const std::vector<std::string>& plain() const { return plain_; }
  const std::string& message() const { return message_; }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }
  uint64_t number(const std::string& name) const {
    return std::strtoull(text(name).c_str(), nullptr, 10);
  }
  int64_t whole(const std::string& name) const {
    return std::strtoll(text(name).c_str(), nullptr, 10);
  }
  double real(const std::string& name) const { return std::strtod(text(name).c_str(), nullptr); }
  std::vector<std::string> list(const std::string& name) const { return split(text(name), ','); }
  std::vector<uint32_t> numbers(const std::string& name) const {
    std::vector<uint32_t> out;
    for (const std::string& item : list(name)) {
      out.push_back(static_cast<uint32_t>(std::strtoul(item.c_str(), nullptr, 10)));
    }
    return out;
  }

  static std::vector<std::string> split(const std::string& text, char mark) {
    std::vector<std::string> out;
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find(mark, at);
      out.push_back(text.substr(at, end == std::string::npos ? end : end - at));
      if (end == std::string::npos) break;
      at = end + 1;
    }
    return out;
  }
  static std::string join(const std::vector<uint32_t>& numbers) {
    std::string out;
    for (const uint32_t number : numbers) {
      if (!out.empty()) out.push_back(',');
      out += std::to_string(number);
    }
    return out;
  }
  static std::string hex(std::string_view bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (const char c : bytes) {
      out.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
      out.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
    }
    return out;
  }
  static std::string bytes(const std::string& hex) {
    std::string out;
    for (size_t at = 0; at + 1 < hex.size(); at += 2) {
      out.push_back(static_cast<char>(std::strtoul(hex.substr(at, 2).c_str(), nullptr, 16)));
    }
    return out;
  }

 private:
  std::vector<std::string> plain_;
  std::map<std::string, std::string> values_;
  std::string message_;
};

}  // namespace memdecay::scenario
