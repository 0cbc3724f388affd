// What people type; see arguments.h.
// Thread: pure functions, any.
#include "client/ctl/arguments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::ctl {
namespace {

// More pages than this in one argument is a typing error.
constexpr uint32_t kMaxPages = 1u << 20;

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

absl::Status not_pages(std::string_view text) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("pages \"", as_absl(text), "\""),
                    "that is no list of pages", "write 3, 0..7 or 1,4..6");
}

absl::StatusOr<PageRun> one_run(std::string_view text) {
  const size_t dots = text.find("..");
  const auto first = number<uint32_t>(text.substr(0, dots));
  if (!first) return not_pages(text);
  if (dots == std::string_view::npos) return PageRun{*first, 1};
  const auto last = number<uint32_t>(text.substr(dots + 2));
  if (!last || *last < *first || *last - *first >= kMaxPages) return not_pages(text);
  return PageRun{*first, *last - *first + 1};
}

}  // namespace

v1::SessionName session_name(const std::string& text) {
  v1::SessionName name;
  if (const auto id = number<uint64_t>(text)) {
    name.set_session(*id);
  } else {
    name.set_name(text);
  }
  return name;
}

absl::StatusOr<PageRun> page_run(const std::string& text) { return one_run(text); }

absl::StatusOr<std::vector<uint32_t>> page_list(const std::string& text) {
  std::vector<uint32_t> pages;
  std::string_view rest = text;
  for (;;) {
    const size_t comma = rest.find(',');
    const absl::StatusOr<PageRun> run = one_run(rest.substr(0, comma));
    if (!run.ok()) return run.status();
    if (pages.size() + run->count > kMaxPages) return not_pages(text);
    for (uint32_t i = 0; i < run->count; ++i) pages.push_back(run->first + i);
    if (comma == std::string_view::npos) return pages;
    rest = rest.substr(comma + 1);
  }
}

absl::StatusOr<v1::ExplainRequest> explain_target(const std::string& text) {
  v1::ExplainRequest request;
  if (const auto decision = number<uint64_t>(text)) {
    request.set_decision(*decision);
    return request;
  }
  const size_t colon = text.rfind(':');
  const auto page = colon == std::string::npos
                        ? std::nullopt
                        : number<uint32_t>(std::string_view(text).substr(colon + 1));
  if (!page || colon == 0) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("explain \"", text, "\""),
                      "that is neither a decision nor a page",
                      "write a decision's number, or SESSION:PAGE such as S1:7");
  }
  *request.mutable_page()->mutable_session() = session_name(text.substr(0, colon));
  request.mutable_page()->set_page(*page);
  return request;
}

absl::StatusOr<Duration> duration(const std::string& text) {
  const std::string_view view = text;
  const size_t digits = std::min(view.find_first_not_of("0123456789"), view.size());
  const std::string_view unit = view.substr(digits);
  if (const auto value = number<int64_t>(view.substr(0, digits)); value && *value < 1'000'000'000) {
    if (unit == "ms") return Duration::from_milliseconds(*value);
    if (unit == "s") return Duration::from_seconds(*value);
    if (unit == "m") return Duration::from_seconds(*value * 60);
  }
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("duration \"", text, "\""),
                    "that is no duration", "write 500ms, 30s or 5m");
}

absl::StatusOr<uint64_t> byte_count(const std::string& text) {
  const std::string_view view = text;
  const size_t digits = std::min(view.find_first_not_of("0123456789"), view.size());
  const std::string_view unit = view.substr(digits);
  constexpr std::string_view kUnits = "KMG";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit.front()) + 1;  // npos + 1 is 0
  const auto value = number<uint64_t>(view.substr(0, digits));
  if (value && unit.size() <= 1 && (unit.empty() || power > 0) && *value < (uint64_t{1} << 32)) {
    return *value << (10 * power);
  }
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("size \"", text, "\""),
                    "that is no number of bytes", "write 4096, 512K, 64M or 2G");
}

}  // namespace memdecay::ctl
