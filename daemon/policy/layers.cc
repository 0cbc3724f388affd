// See layers.h: first the words that decide what others mean, then the others in their order.
#include "daemon/policy/layers.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "daemon/policy/keys.h"
#include "daemon/policy/policy.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::policy {
namespace {

constexpr std::string_view kFirst[] = {"preset", "name", "refresh_rule", "own_regions"};

absl::Status refuse(std::string_view key, std::string there, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("policy.", as_absl(key)),
                    std::move(there), std::move(todo));
}

absl::Status replace(PolicyOptions& options, std::string_view name, const Presets& presets) {
  const auto found = presets.find(name);
  if (found == presets.end()) {
    std::string known;
    for (const auto& [preset, unused] : presets) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", preset);
    }
    return refuse("preset", absl::StrCat("there is no preset \"", as_absl(name), "\""),
                  absl::StrCat("choose one of ", known));
  }
  PolicyOptions fresh = found->second;
  fresh.page_tokens = options.page_tokens;
  fresh.sinks = options.sinks;
  fresh.recent = options.recent;
  fresh.grace = options.grace;
  options = std::move(fresh);
  return absl::OkStatus();
}

absl::Status apply(PolicyOptions& options, const OptionWord& word, const Presets& presets) {
  const auto& [key, value] = word;
  if (key == "preset") return replace(options, value, presets);
  const std::string before = options.name;
  const std::optional<RefreshRule> rule = options.refresh_rule;
  const absl::Status status = set_option(options, key, value);
  if (absl::IsNotFound(status)) {
    return refuse(key, "unknown key",
                  absl::StrCat("write preset, ", std::string(status.message())));
  }
  if (!status.ok()) {
    const OptionKey* const option = find_option(key);
    return refuse(key, std::string(status.message()),
                  option == nullptr ? "" : std::string(option->meaning));
  }
  if (options.name != before || options.refresh_rule != rule) leave_foreign(options, before);
  return absl::OkStatus();
}

std::vector<OptionWord> all_words(const PolicyOptions& options) {
  std::vector<OptionWord> words;
  for (const OptionKey& option : option_keys()) {
    words.emplace_back(std::string(option.key), get_option(options, option.key));
  }
  for (OptionWord& word : tables(options)) words.push_back(std::move(word));
  return words;
}

}  // namespace

absl::StatusOr<PolicyOptions> layered(PolicyOptions base, absl::Span<const OptionWord> words,
                                      const Presets& presets) {
  const auto is_first = [](const std::string& key) {
    return std::find(std::begin(kFirst), std::end(kFirst), key) != std::end(kFirst);
  };
  for (const std::string_view first : kFirst) {
    for (const OptionWord& word : words) {
      if (word.first != first) continue;
      const absl::Status status = apply(base, word, presets);
      if (!status.ok()) return status;
    }
  }
  for (const OptionWord& word : words) {
    if (is_first(word.first)) continue;
    const absl::Status status = apply(base, word, presets);
    if (!status.ok()) return status;
  }
  return base;
}

std::vector<OptionWord> differences(const PolicyOptions& options, const PolicyOptions& usual) {
  const std::vector<OptionWord> base = all_words(completed(usual));
  std::vector<OptionWord> words;
  for (OptionWord& word : all_words(completed(options))) {
    if (!word.second.empty() && std::find(base.begin(), base.end(), word) == base.end()) {
      words.push_back(std::move(word));
    }
  }
  return words;
}

}  // namespace memdecay::policy
