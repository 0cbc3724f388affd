// Lines as requests (see trace.h). nlohmann's SAX interface: no tree is built, so a line costs what
// its characters cost.
#include "client/ctl/replay/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr double kLatestSecond = 9e9;  // what nanoseconds can hold
constexpr size_t kShownName = 64;
constexpr int kDeepest = 64;

enum Field : uint8_t { kTimestamp, kInput, kOutput, kBlocks, kChat, kParent, kTurn, kType, kOther };

Field field_of(const std::string& key) {
  if (key == "timestamp") return kTimestamp;
  if (key == "input_length") return kInput;
  if (key == "output_length") return kOutput;
  if (key == "hash_ids") return kBlocks;
  if (key == "chat_id") return kChat;
  if (key == "parent_chat_id") return kParent;
  if (key == "turn") return kTurn;
  if (key == "type") return kType;
  return kOther;
}

constexpr const char* kNames[] = {"timestamp", "input_length",   "output_length", "hash_ids",
                                  "chat_id",   "parent_chat_id", "turn",          "type"};

}  // namespace

// What one line says. The parser calls these; false stops it, `wrong` says why.
struct TraceReader::Parsed {
  double timestamp = 0;
  std::optional<double> input;
  std::vector<uint64_t> blocks;
  uint32_t seen = 0;  // a bit a field
  uint64_t others = 0;
  std::string other;
  std::string wrong;

  int depth = 0;
  Field field = kOther;

  void clear() {
    input.reset();
    blocks.clear();
    seen = 0;
    others = 0;
    wrong.clear();
    depth = 0;
    field = kOther;
  }
  bool has(Field which) const { return (seen >> which & 1) != 0; }
  bool stop(std::string why) {
    wrong = std::move(why);
    return false;
  }
  bool number(double value) {
    if (depth == 0) return stop("the line is not a JSON object");
    if (field == kBlocks) return stop("hash_ids holds something else than whole numbers from 0 on");
    if (field != kTimestamp && field != kInput) return true;
    if (!std::isfinite(value)) return stop(absl::StrCat(kNames[field], " is not finite"));
    if (value < 0) return stop(absl::StrCat(kNames[field], " is negative: ", value));
    if (field == kTimestamp) timestamp = value;
    if (field == kInput) input = value;
    return true;
  }
  bool other_value(const char* what) {
    if (depth == 0) return stop("the line is not a JSON object");
    if (field == kTimestamp || field == kInput) {
      return stop(absl::StrCat(kNames[field], " is ", what, " instead of a number"));
    }
    if (field == kBlocks) return stop(absl::StrCat("hash_ids holds ", what));
    return true;
  }
  bool nested(const char* what) {
    if (!other_value(what)) return false;
    if (field != kOther) return stop(absl::StrCat(kNames[field], " is ", what));
    return ++depth <= kDeepest || stop(absl::StrCat("it is nested deeper than ", kDeepest));
  }

  bool null() { return other_value("null"); }
  bool boolean(bool) { return other_value("a truth value"); }
  bool string(std::string&) { return other_value("text"); }
  bool binary(nlohmann::json::binary_t&) { return other_value("bytes"); }
  bool number_integer(int64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool number_unsigned(uint64_t value) {
    if (field != kBlocks || depth != 2) return number(static_cast<double>(value));
    if (blocks.size() >= kBlocksARequest) {
      return stop(absl::StrCat("hash_ids has more than ", kBlocksARequest, " blocks"));
    }
    blocks.push_back(value);
    return true;
  }
  bool start_object(size_t) {
    if (depth > 0) return nested("an object");
    depth = 1;
    return true;
  }
  bool end_object() {
    --depth;
    return true;
  }
  bool start_array(size_t) {
    if (depth != 1 || field != kBlocks) return nested("a list");
    depth = 2;
    return true;
  }
  bool end_array() {
    --depth;
    return true;
  }
  bool key(std::string& name) {
    if (depth != 1) return true;
    field = field_of(name);
    if (field == kOther) {
      ++others;
      other = name.substr(0, kShownName);
      return true;
    }
    if (has(field)) return stop(absl::StrCat(kNames[field], " stands there twice"));
    seen |= 1u << field;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) {
    return stop(absl::StrCat("it is no JSON from character ", at, " on"));
  }
};

TraceReader::TraceReader(Lines lines)
    : lines_(std::move(lines)), parsed_(std::make_unique<Parsed>()) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;

absl::StatusOr<TraceReader> TraceReader::open(const std::string& path) {
  absl::StatusOr<Lines> lines = Lines::open(path);
  if (!lines.ok()) return lines.status();
  return TraceReader(*std::move(lines));
}

absl::Status TraceReader::refuse(const Lines::Line& line, const std::string& there,
                                 const std::string& todo) const {
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat("trace ", lines_.path(), ", line ", line.number), there, todo);
}

absl::StatusOr<const TraceRequest*> TraceReader::next() {
  while (true) {
    const absl::StatusOr<const Lines::Line*> line = lines_.next();
    if (!line.ok()) return line.status();
    if (*line == nullptr) {
      if (requests_ > 0) return nullptr;
      return nothing_in_it();
    }
    if ((*line)->text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!layout_.has_value() && trace::Parser::is_header((*line)->text)) {
      layout_ = Layout::kMemdecay;
      recorded_.emplace(lines_.path());
    }
    if (recorded_.has_value()) {
      const absl::StatusOr<Recorded::Made> made = recorded_->take(**line, request_);
      if (!made.ok()) return made.status();
      if (*made == Recorded::Made::kNothing) continue;
      requests_ += request_.kind == TraceRequest::Kind::kAsked;
      return &request_;
    }
    if (absl::Status taken = take(**line); !taken.ok()) return taken;
    ++requests_;
    return &request_;
  }
}

absl::Status TraceReader::nothing_in_it() const {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("trace ", lines_.path()),
                    "there is no request in it",
                    recorded_ ? "record while engines acquire prefixes or sessions go on after "
                                "waiting: those are requests"
                              : "give a trace with one JSON object a line");
}

absl::Status TraceReader::take(const Lines::Line& line) {
  Parsed& p = *parsed_;
  p.clear();
  if (!nlohmann::json::sax_parse(line.text.begin(), line.text.end(), &p)) {
    const bool cut = line.ended == Lines::Ended::kByEndOfFile;
    return refuse(
        line, cut ? absl::StrCat(p.wrong, ", and the file ends there: it is truncated") : p.wrong,
        cut ? "fetch the file again, or drop its last line"
            : "give a trace of memdecayctl record, Mooncake or Bailian, one JSON object a line");
  }
  for (const Field needed : {kTimestamp, kBlocks}) {
    if (p.has(needed)) continue;
    return refuse(line, absl::StrCat("there is no ", kNames[needed]),
                  "give a Mooncake or Bailian trace; both have timestamp and hash_ids");
  }
  const Layout layout = p.has(kChat) ? Layout::kBailian : Layout::kMooncake;
  if (layout_.value_or(layout) != layout) {
    return refuse(line,
                  p.has(kChat) ? "it has a chat_id and the lines before it have none"
                               : "it has no chat_id and the lines before it have one",
                  "replay traces of two kinds one by one: their clocks and blocks differ");
  }
  layout_ = layout;
  const bool seconds = layout == Layout::kBailian;
  if (p.timestamp > kLatestSecond * (seconds ? 1 : 1e3)) {
    return refuse(line, absl::StrCat("timestamp ", p.timestamp, " is beyond this clock"),
                  seconds ? "write seconds since any start" : "write milliseconds since any start");
  }
  const Instant at{std::llround(p.timestamp * (seconds ? 1e9 : 1e6))};
  if (requests_ > 0 && at < request_.at) {
    return refuse(line, "its timestamp is before that of the request above it",
                  "sort the trace by timestamp");
  }
  const double block_tokens = seconds ? 16 : 512;
  const auto covered = static_cast<double>(p.blocks.size()) * block_tokens;
  const bool partial =
      p.input && !p.blocks.empty() && *p.input<covered&& * p.input> covered - block_tokens;
  request_.at = at;
  request_.blocks.swap(p.blocks);
  request_.tail = partial ? TraceRequest::Tail::kPartial : TraceRequest::Tail::kWhole;
  ignored_fields_ += p.others;
  if (p.others > 0) an_ignored_field_ = p.other;
  return absl::OkStatus();
}

}  // namespace memdecay::ctl
