// Words into Options (see control.h for the list).
#include "tests/support/fakecuda/options.h"

#include <charconv>
#include <functional>
#include <sstream>
#include <vector>

namespace fakecuda {
namespace {

bool number(const std::string& text, uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  return parts;
}

bool parse_fault(const std::string& key, const std::string& value, Options& options) {
  const std::vector<std::string> parts = split(value);
  uint64_t which = 0;
  if (parts.size() < 2 || !number(parts[1], which)) return false;
  if (key == "sticky") return parts.size() == 2 && options.sticky.insert({parts[0], which}).second;
  uint64_t result = 0;
  if (parts.size() != 3 || !number(parts[2], result)) return false;
  options.failures[{parts[0], which}] = static_cast<int>(result);
  return true;
}

bool parse_mode(const std::string& value, Options& options) {
  if (value == "default") options.mode = ComputeMode::kDefault;
  if (value == "exclusive") options.mode = ComputeMode::kExclusive;
  if (value == "prohibited") options.mode = ComputeMode::kProhibited;
  return value == "default" || value == "exclusive" || value == "prohibited";
}

bool parse_word(const std::string& key, const std::string& value, Options& options) {
  if (key == "fail" || key == "sticky") return parse_fault(key, value, options);
  if (key == "without") return options.without.insert(value).second;
  if (key == "skip") return options.skip.insert(value).second;
  if (key == "report") return !(options.report = value).empty();
  if (key == "mode") return parse_mode(value, options);
  const std::map<std::string, std::function<void(uint64_t)>> numbers = {
      {"version", [&](uint64_t n) { options.version = static_cast<int>(n); }},
      {"seed", [&](uint64_t n) { options.seed = n; }},
      {"late_us", [&](uint64_t n) { options.late_us = n; }},
      {"vram", [&](uint64_t n) { options.vram_bytes = n; }},
      {"taken", [&](uint64_t n) { options.taken_bytes = n; }},
      {"devices", [&](uint64_t n) { options.devices = static_cast<int>(n); }},
      {"mig", [&](uint64_t n) { options.mig = n != 0; }},
      {"mps", [&](uint64_t n) { options.mps = n != 0; }},
      {"no_device", [&](uint64_t n) { options.no_device = n != 0; }},
      {"no_vmm", [&](uint64_t n) { options.no_vmm = n != 0; }},
      {"no_posix_fd", [&](uint64_t n) { options.no_posix_fd = n != 0; }},
  };
  uint64_t n = 0;
  const auto found = numbers.find(key);
  if (found == numbers.end() || !number(value, n)) return false;
  found->second(n);
  return true;
}

}  // namespace

std::string parse_options(const std::string& words, Options& options) {
  std::stringstream stream(words);
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos ||
        !parse_word(word.substr(0, equals), word.substr(equals + 1), options)) {
      return "FAKECUDA does not know '" + word + "'";
    }
  }
  return {};
}

}  // namespace fakecuda
