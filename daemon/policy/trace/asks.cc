// What is asked of a line's fields, and what is refused (see fields.h).
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "daemon/policy/trace/fields.h"

namespace memdecay::trace {
namespace {

const std::string kNoText;

}  // namespace

const LineFields::Field& LineFields::needed(Name name, Kind kind, const char* what) {
  static const Field kNothing;
  const Field& found = field(name);
  if (found.kind == Kind::kNone) {
    complain(absl::StrCat("there is no ", spelled(name)));
    return kNothing;
  }
  const bool empty_list = found.kind == Kind::kNumbers && found.numbers.empty() &&
                          (kind == Kind::kPairs || kind == Kind::kTexts);
  const bool number = kind == Kind::kNumber && found.kind == Kind::kWhole;
  if (found.kind != kind && !empty_list && !number) {
    complain(absl::StrCat(spelled(name), " is not ", what));
    return kNothing;
  }
  return found;
}

uint64_t LineFields::whole(Name name, uint64_t most) {
  const Field& found = field(name);
  if (found.kind == Kind::kNumber && found.number < 0) {
    complain(absl::StrCat(spelled(name), " is negative: ", found.number));
    return 0;
  }
  const uint64_t value = needed(name, Kind::kWhole, "a whole number").whole;
  if (value <= most) return value;
  complain(absl::StrCat(spelled(name), " is ", value, "; at most ", most));
  return 0;
}

uint64_t LineFields::whole_or(Name name, uint64_t most, uint64_t otherwise) {
  return has(name) ? whole(name, most) : otherwise;
}

double LineFields::number(Name name) { return needed(name, Kind::kNumber, "a number").number; }

double LineFields::share(Name name) {
  const double value = number(name);
  if (std::isfinite(value) && value >= 0) return value;
  complain(absl::StrCat(spelled(name), " is ", value, "; a share of attention is 0 or more"));
  return 0;
}

const std::string& LineFields::text(Name name) {
  const Field& found = needed(name, Kind::kText, "text");
  return found.kind == Kind::kText ? found.text : kNoText;
}

std::optional<uint64_t> LineFields::hex(std::string_view digits) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.size() == 16 && at == end && error == std::errc()) return value;
  return std::nullopt;
}

uint64_t LineFields::key(Name name) {
  const std::optional<uint64_t> value = hex(text(name));
  if (!value) complain(absl::StrCat(spelled(name), " is not 16 hex digits"));
  return value.value_or(0);
}

void LineFields::keys(Name name, std::vector<uint64_t>& out) {
  out.clear();
  for (const std::string& digits : needed(name, Kind::kTexts, "a list of keys").texts) {
    const std::optional<uint64_t> value = hex(digits);
    if (!value) return complain(absl::StrCat(spelled(name), " holds what is not 16 hex digits"));
    out.push_back(*value);
  }
}

void LineFields::texts(Name name, std::vector<std::string>& out) {
  out = needed(name, Kind::kTexts, "a list of texts").texts;
}

std::optional<uint64_t> LineFields::whole_of(double value, uint64_t most) const {
  if (!(value >= 0) || value > static_cast<double>(most) || value != std::floor(value)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(value);
}

void LineFields::pages(Name name, std::vector<PageIndex>& out) {
  out.clear();
  for (const double value : needed(name, Kind::kNumbers, "a list of pages").numbers) {
    const auto page = whole_of(value, std::numeric_limits<PageIndex>::max());
    if (!page) return complain(absl::StrCat(spelled(name), " holds ", value, ", which is no page"));
    out.push_back(static_cast<PageIndex>(*page));
  }
}

void LineFields::runs(Name name, std::vector<RegionRun>& out) {
  out.clear();
  const Field& found = needed(name, Kind::kPairs, "a list of [region, tokens]");
  for (size_t i = 0; i + 1 < found.numbers.size(); i += 2) {
    const auto region = whole_of(found.numbers[i], kMostRegions - 1);
    const auto tokens = whole_of(found.numbers[i + 1], std::numeric_limits<uint16_t>::max());
    if (!region || !tokens || *tokens == 0) {
      return complain(absl::StrCat(spelled(name), " holds [", found.numbers[i], ",",
                                   found.numbers[i + 1], "], which is no run of a region"));
    }
    out.push_back(
        {.region = static_cast<RegionId>(*region), .tokens = static_cast<uint16_t>(*tokens)});
  }
}

void LineFields::masses(Name name, std::vector<PageMass>& out) {
  out.clear();
  const Field& found = needed(name, Kind::kPairs, "a list of [page, mass]");
  for (size_t i = 0; i + 1 < found.numbers.size(); i += 2) {
    const auto page = whole_of(found.numbers[i], std::numeric_limits<PageIndex>::max());
    const double mass = found.numbers[i + 1];
    if (!page || !std::isfinite(mass) || mass < 0) {
      return complain(absl::StrCat(spelled(name), " holds [", found.numbers[i], ",", mass,
                                   "], which is no page with its mass"));
    }
    out.push_back({.page = static_cast<PageIndex>(*page), .mass = mass});
  }
}

}  // namespace memdecay::trace
