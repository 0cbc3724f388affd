// The fields of one line, before anybody asks what they mean: what the JSON parser (nlohmann's SAX
// interface: no tree is built) has put down. Asking for a field that is missing or of the wrong
// kind is remembered as `wrong`, the first time.
// Thread: the parser's. Reused from line to line, so that its vectors keep their memory.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/policy/trace/event.h"

namespace memdecay::trace {

enum class Name : uint8_t {
  kTrace,
  kPageTokens,
  kSinks,
  kRegions,
  kStarted,
  kT,
  kE,
  kS,
  kTenant,
  kMode,
  kPolicy,
  kP,
  kN,
  kR,
  kK,
  kD,
  kStep,
  kQ,
  kNq,
  kSink,
  kTail,
  kRest,
  kM,
  kC,
  kWhy,
  kTo,
  kOf,
  kHit,
  kEvents,
  kOld,
  kPeek,
  kOther,
};
inline constexpr size_t kNames = static_cast<size_t>(Name::kOther);

class LineFields {
 public:
  // False: `wrong()` says why.
  bool read(std::string_view text);
  const std::string& wrong() const { return wrong_; }
  void complain(std::string why);  // the first one stays

  bool has(Name name) const { return field(name).kind != Kind::kNone; }
  uint64_t others() const { return others_; }
  const std::string& other() const { return other_; }

  // A whole number in [0, most].
  uint64_t whole(Name name, uint64_t most);
  uint64_t whole_or(Name name, uint64_t most, uint64_t otherwise);
  double share(Name name);  // a finite number from 0 on; beyond 1 is for who uses it to judge
  double number(Name name);
  const std::string& text(Name name);
  uint64_t key(Name name);  // 16 hex digits
  void keys(Name name, std::vector<uint64_t>& out);
  void texts(Name name, std::vector<std::string>& out);
  void pages(Name name, std::vector<PageIndex>& out);
  void runs(Name name, std::vector<RegionRun>& out);
  void masses(Name name, std::vector<PageMass>& out);

  // -- nlohmann's SAX interface. False stops it.
  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a truth value"); }
  bool binary(nlohmann::json::binary_t&) { return scalar("bytes"); }
  bool string(std::string& value);
  bool number_integer(int64_t value) { return number_value(static_cast<double>(value), {}); }
  bool number_unsigned(uint64_t value) { return number_value(static_cast<double>(value), value); }
  bool number_float(double value, const std::string&) { return number_value(value, {}); }
  bool start_object(size_t);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool key(std::string& name);
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&);

 private:
  enum class Kind : uint8_t { kNone, kNumber, kWhole, kText, kNumbers, kPairs, kTexts, kOddity };
  struct Field {
    Kind kind = Kind::kNone;
    double number = 0.0;
    uint64_t whole = 0;
    std::string text;
    std::vector<double> numbers;  // of lists; pairs one behind the other
    std::vector<std::string> texts;
  };

  const Field& field(Name name) const { return fields_[static_cast<size_t>(name)]; }
  Field& current() { return fields_[static_cast<size_t>(current_)]; }
  bool inside_other() const { return skipped_ > 0 || current_ == Name::kOther; }
  bool number_value(double value, std::optional<uint64_t> whole);
  bool scalar(const char* what);
  bool stop(std::string why);
  bool odd();
  const Field& needed(Name name, Kind kind, const char* what);
  std::optional<uint64_t> hex(std::string_view digits);
  std::optional<uint64_t> whole_of(double value, uint64_t most) const;

  std::array<Field, kNames> fields_;
  std::string wrong_;
  uint64_t others_ = 0;
  std::string other_;
  int depth_ = 0;    // 1: inside the line's object
  int list_ = 0;     // 1: inside a field's list, 2: inside a pair
  int in_pair_ = 0;  // numbers of the pair so far
  int skipped_ = 0;  // depth inside an unknown field's value
  Name current_ = Name::kOther;
};

const char* spelled(Name name);

}  // namespace memdecay::trace
