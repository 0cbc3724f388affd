// What the JSON parser finds (see fields.h).
#include "daemon/policy/trace/fields.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace memdecay::trace {
namespace {

constexpr const char* kSpelled[] = {"memdecay_trace",
                                    "page_tokens",
                                    "sinks",
                                    "regions",
                                    "started_unix",
                                    "t",
                                    "e",
                                    "s",
                                    "tenant",
                                    "mode",
                                    "policy",
                                    "p",
                                    "n",
                                    "r",
                                    "k",
                                    "d",
                                    "step",
                                    "q",
                                    "nq",
                                    "sink",
                                    "tail",
                                    "rest",
                                    "m",
                                    "c",
                                    "why",
                                    "to",
                                    "of",
                                    "hit",
                                    "events",
                                    "old",
                                    "peek"};
static_assert(std::size(kSpelled) == kNames);

constexpr size_t kShownName = 64;
constexpr int kDeepest = 64;

Name name_of(std::string_view spelled) {
  for (size_t i = 0; i < kNames; ++i) {
    if (spelled == kSpelled[i]) return static_cast<Name>(i);
  }
  return Name::kOther;
}

}  // namespace

const char* spelled(Name name) { return kSpelled[static_cast<size_t>(name)]; }

bool LineFields::read(std::string_view text) {
  for (Field& one : fields_) {
    one.kind = Kind::kNone;
    one.numbers.clear();
    one.texts.clear();
  }
  wrong_.clear();
  others_ = 0;
  depth_ = list_ = in_pair_ = skipped_ = 0;
  current_ = Name::kOther;
  return nlohmann::json::sax_parse(text.begin(), text.end(), this);
}

void LineFields::complain(std::string why) {
  if (wrong_.empty()) wrong_ = std::move(why);
}

bool LineFields::stop(std::string why) {
  complain(std::move(why));
  return false;
}

// The value of a field that no event has in this form; told when somebody asks for it.
bool LineFields::odd() {
  current().kind = Kind::kOddity;
  return true;
}

bool LineFields::scalar(const char* what) {
  if (depth_ == 0) return stop(absl::StrCat("the line is ", what, ", not a JSON object"));
  return inside_other() || odd();
}

bool LineFields::string(std::string& value) {
  if (depth_ == 0) return stop("the line is text, not a JSON object");
  if (inside_other()) return true;
  if (value.size() > kLongestText) {
    return stop(absl::StrCat(spelled(current_), " is longer than ", kLongestText, " characters"));
  }
  Field& field = current();
  if (list_ == 0) {
    field.kind = Kind::kText;
    field.text.swap(value);
    return true;
  }
  if (list_ != 1 || !field.numbers.empty()) return odd();
  if (field.texts.size() >= kMostInAList) {
    return stop(absl::StrCat(spelled(current_), " holds more than ", kMostInAList));
  }
  field.kind = field.kind == Kind::kOddity ? Kind::kOddity : Kind::kTexts;
  field.texts.push_back(std::move(value));
  return true;
}

bool LineFields::number_value(double value, std::optional<uint64_t> whole) {
  if (depth_ == 0) return stop("the line is a number, not a JSON object");
  if (inside_other()) return true;
  Field& field = current();
  if (list_ == 0) {
    field.kind = whole ? Kind::kWhole : Kind::kNumber;
    field.whole = whole.value_or(0);
    field.number = value;
    return true;
  }
  const Kind kind = list_ == 2 ? Kind::kPairs : Kind::kNumbers;
  if (!field.texts.empty() || (!field.numbers.empty() && field.kind != kind)) return odd();
  if (field.kind == Kind::kOddity) return true;
  if (field.numbers.size() >= 2 * kMostInAList) {
    return stop(absl::StrCat(spelled(current_), " holds more than ", kMostInAList));
  }
  field.kind = kind;
  field.numbers.push_back(value);
  ++in_pair_;
  return true;
}

bool LineFields::start_object(size_t) {
  if (depth_ == 0) {
    depth_ = 1;
    return true;
  }
  if (skipped_ == 0 && current_ != Name::kOther) {
    return stop(absl::StrCat(spelled(current_), " is an object"));
  }
  return ++skipped_ <= kDeepest || stop(absl::StrCat("it is nested deeper than ", kDeepest));
}

bool LineFields::end_object() {
  if (skipped_ > 0) --skipped_;
  return true;
}

bool LineFields::start_array(size_t) {
  if (depth_ == 0) return stop("the line is a list, not a JSON object");
  if (inside_other()) {
    return ++skipped_ <= kDeepest || stop(absl::StrCat("it is nested deeper than ", kDeepest));
  }
  if (list_ == 2) return stop(absl::StrCat(spelled(current_), " has lists inside its pairs"));
  if (++list_ == 1) current().kind = Kind::kNumbers;
  in_pair_ = 0;
  return true;
}

bool LineFields::end_array() {
  if (skipped_ > 0) {
    --skipped_;
    return true;
  }
  if (list_ == 2 && in_pair_ != 2) odd();
  --list_;
  return true;
}

bool LineFields::key(std::string& name) {
  if (skipped_ > 0) return true;
  current_ = name_of(name);
  if (current_ == Name::kOther) {
    ++others_;
    other_ = name.substr(0, kShownName);
    return true;
  }
  if (current().kind != Kind::kNone) {
    return stop(absl::StrCat(spelled(current_), " stands there twice"));
  }
  current().kind = Kind::kOddity;  // until its value says more
  return true;
}

bool LineFields::parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) {
  return stop(absl::StrCat("it is no JSON from character ", at, " on"));
}

}  // namespace memdecay::trace
