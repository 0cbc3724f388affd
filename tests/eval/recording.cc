// See recording.h.
#include "tests/eval/recording.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/replay/lines.h"
#include "daemon/policy/trace/parser.h"
#include "proto/contract/error.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kUnnamedChannel = "sent";  // an observation without "c"

absl::Status refuse(const std::string& where, const std::string& there) {
  return make_error(ErrorCode::kInvalidArgument, where, there,
                    "record it again: memdecay-eval record");
}

// A channel that was asked for: the sum of its parts until all have come.
struct Mean {
  std::vector<std::string> parts;
  size_t come = 0;
  trace::Observed sum;

  bool has(std::string_view part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

class Reading {
 public:
  Reading(std::string path, const std::vector<std::string>& channels)
      : path_(std::move(path)), parser_(path_) {
    for (const std::string& channel : channels) {
      means_.push_back({.parts = absl::StrSplit(channel, '+'), .sum = {.channel = channel}});
    }
  }

  absl::StatusOr<RecordedSession> read() {
    absl::StatusOr<ctl::Lines> lines = ctl::Lines::open(path_);
    if (!lines.ok()) return lines.status();
    for (;;) {
      const auto line = lines->next();
      if (!line.ok()) return line.status();
      if (*line == nullptr) break;
      number_ = (*line)->number;
      if (!wanted((*line)->text)) continue;
      const auto event = parser_.take((*line)->text, number_);
      if (!event.ok()) return event.status();
      if (*event == nullptr) continue;
      if (absl::Status status = take((*event)->what); !status.ok()) return status;
    }
    if (absl::Status status = end_moment(); !status.ok()) return status;
    if (session_.pages == 0) return refuse(path_, "no page was sealed");
    session_.page_tokens = parser_.header()->page_tokens;
    return std::move(session_);
  }

 private:
  absl::Status wrong(const std::string& there) const {
    return refuse(absl::StrCat(path_, " line ", number_), there);
  }

  // A line of a channel that nobody asked for is most of the file, so it is not parsed.
  bool wanted(std::string_view line) const {
    constexpr std::string_view kKey = "\"c\":\"";
    if (line.find("\"e\":\"obs\"") == std::string_view::npos) return true;
    const size_t at = line.rfind(kKey);
    if (at == std::string_view::npos) return wants(kUnnamedChannel);
    const std::string_view rest = line.substr(at + kKey.size());
    return wants(rest.substr(0, rest.find('"')));
  }
  bool wants(std::string_view part) const {
    return std::any_of(means_.begin(), means_.end(),
                       [part](const Mean& mean) { return mean.has(part); });
  }

  absl::Status take(const trace::What& what) {
    if (const auto* seen = std::get_if<trace::Observed>(&what)) return take(*seen);
    if (absl::Status status = end_moment(); !status.ok()) return status;
    if (const auto* sealed = std::get_if<trace::Sealed>(&what)) {
      if (sealed->page != session_.pages) {
        return wrong(
            absl::StrCat("seals page ", sealed->page, " after ", session_.pages, " pages"));
      }
      ++session_.pages;
      session_.moments.push_back(*sealed);
    } else if (const auto* tagged = std::get_if<trace::Tagged>(&what)) {
      if (tagged->page >= session_.pages) return wrong("tags a page that is not sealed");
      session_.moments.push_back(*tagged);
    } else if (std::holds_alternative<trace::Opened>(what)) {
      if (++sessions_ > 1) return wrong("opens a second session");
    } else if (std::holds_alternative<trace::Cut>(what) ||
               std::holds_alternative<trace::Left>(what) ||
               std::holds_alternative<trace::Lost>(what)) {
      return wrong("has a page leave, or lost events; a recording has everything");
    }
    return absl::OkStatus();
  }

  absl::Status take(const trace::Observed& seen) {
    for (const trace::PageMass& mass : seen.masses) {
      if (mass.page >= session_.pages) return wrong("observes a page that is not sealed yet");
    }
    if (!moment_ || moment_->first != seen.step || moment_->second != seen.query_position) {
      if (absl::Status status = end_moment(); !status.ok()) return status;
      moment_ = {seen.step, seen.query_position};
    }
    const std::string_view part = seen.channel.empty() ? kUnnamedChannel : seen.channel;
    for (Mean& mean : means_) {
      if (!mean.has(part)) continue;
      if (absl::Status status = add(mean, seen); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status add(Mean& mean, const trace::Observed& seen) const {
    trace::Observed& sum = mean.sum;
    if (mean.come++ == 0) {
      std::string name = std::move(sum.channel);
      sum = seen;
      sum.channel = std::move(name);
      return absl::OkStatus();
    }
    if (sum.masses.size() != seen.masses.size()) return wrong("lists other pages than its fellow");
    sum.sink += seen.sink;
    sum.tail += seen.tail;
    sum.rest += seen.rest;
    for (size_t i = 0; i < seen.masses.size(); ++i) {
      if (sum.masses[i].page != seen.masses[i].page) return wrong("lists other pages");
      sum.masses[i].mass += seen.masses[i].mass;
    }
    return absl::OkStatus();
  }

  // All parts of this observation have come, or some never will.
  absl::Status end_moment() {
    if (!moment_) return absl::OkStatus();
    moment_.reset();
    for (Mean& mean : means_) {
      if (mean.come == 0) continue;
      if (mean.come != mean.parts.size()) {
        return wrong(absl::StrCat("the observation before it has ", mean.come, " of ",
                                  mean.parts.size(), " parts of channel ", mean.sum.channel));
      }
      const double share = 1.0 / static_cast<double>(mean.come);
      for (double* const mass : {&mean.sum.sink, &mean.sum.tail, &mean.sum.rest}) *mass *= share;
      for (trace::PageMass& mass : mean.sum.masses) mass.mass *= share;
      mean.come = 0;
      session_.moments.push_back(mean.sum);
    }
    return absl::OkStatus();
  }

  std::string path_;
  trace::Parser parser_;
  std::vector<Mean> means_;
  std::optional<std::pair<uint64_t, uint64_t>> moment_;  // step and position
  uint64_t number_ = 0;                                  // of the line
  int sessions_ = 0;
  RecordedSession session_;
};

std::string facts_path(const std::string& trace) {
  return trace.substr(0, trace.rfind(".trace")) + ".facts.json";
}

absl::Status read_facts(const std::string& path, RecordedSession& recording) {
  std::ifstream file(path);
  const Json text = Json::parse(file, nullptr, false);
  if (!text.is_object()) return refuse(path, "is missing or no JSON object");
  try {
    recording.seed = text.at("seed").get<uint64_t>();
    for (const Json& each : text.at("facts")) {
      FactPlace fact{
          .id = each.at("id").get<std::string>(),
          .region = each.at("region").get<std::string>(),
          .planting = each.at("planting").get<std::string>(),
          .used = each.at("used").get<bool>() ? FactPlace::Used::kYes : FactPlace::Used::kNo,
          .pages = each.at("pages").get<std::vector<PageIndex>>()};
      const bool there = std::all_of(fact.pages.begin(), fact.pages.end(),
                                     [&](PageIndex page) { return page < recording.pages; });
      if (fact.pages.empty() || !there) return refuse(path, absl::StrCat(fact.id, " is nowhere"));
      recording.facts.push_back(std::move(fact));
    }
  } catch (const Json::exception& exception) {
    return refuse(path, exception.what());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordedSession> read_recording(const std::string& trace,
                                               const std::vector<std::string>& channels) {
  absl::StatusOr<RecordedSession> recording = Reading(trace, channels).read();
  if (!recording.ok()) return recording;
  if (absl::Status status = read_facts(facts_path(trace), *recording); !status.ok()) return status;
  return recording;
}

absl::StatusOr<std::vector<RecordingFile>> list_recordings(const std::string& folder,
                                                           const std::string& set) {
  std::map<uint64_t, std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.find(".trace");
    if (end == std::string::npos || !name.starts_with(set + "-")) continue;
    const std::string suffix = name.substr(end);
    if (suffix != ".trace" && suffix != ".trace.gz") continue;
    uint64_t seed = 0;
    if (!absl::SimpleAtoi(name.substr(set.size() + 1, end - set.size() - 1), &seed)) continue;
    // A recording that is still being written has no facts yet.
    if (!std::filesystem::exists(facts_path(entry.path().string()), error)) continue;
    found[seed] = entry.path().string();
  }
  if (found.empty()) {
    return make_error(ErrorCode::kNotFound, absl::StrCat("recordings of ", set), folder,
                      "make them first: memdecay-eval record");
  }
  std::vector<RecordingFile> files;
  for (auto& [seed, path] : found) files.push_back({std::move(path), seed});
  return files;
}

}  // namespace memdecay::eval
