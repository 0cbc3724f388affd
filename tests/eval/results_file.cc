// Reading what is there and writing behind it; see results_file.h.
#include "tests/eval/results_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::json;

absl::Status refuse(const std::string& asked, const std::string& there) {
  return make_error(ErrorCode::kInvalidArgument, asked, there, "give another file");
}

std::string key_of(const Json& row) {
  return absl::StrCat(row.value("set", ""), "/", row.value("policy", ""), "/",
                      row.value("variant", ""), "/", row.value("channel", ""), "/",
                      row.value("sampling", 0u), "/", row.value("queries", ""), "/",
                      row.value("prefill", ""), "/", row.value("seed", uint64_t{0}));
}

}  // namespace

absl::StatusOr<ResultsFile> ResultsFile::open(const std::string& path, const std::string& set) {
  ResultsFile results;
  results.set_ = set;
  if (absl::Status status = results.read(path); !status.ok()) return status;
  results.file_.open(path, std::ios::app);
  if (!results.file_) return refuse(path, "cannot be written");
  return results;
}

bool ResultsFile::holds(const PlannedRun& run, uint64_t seed) const {
  return done_.contains(absl::StrCat(set_, "/", run.key(), "/", seed));
}

absl::Status ResultsFile::add(const std::string& lines) {
  file_ << lines << std::flush;
  if (file_) return absl::OkStatus();
  return make_error(ErrorCode::kUnavailable, "the results", "cannot be written", "make room");
}

absl::Status ResultsFile::read(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::string last;
  uintmax_t whole = 0;      // bytes of whole lines
  uintmax_t last_from = 0;  // where the last run's begin
  while (std::getline(file, line) && !file.eof()) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("policy")) {
      return refuse(path, "holds a line that is no result");
    }
    const std::string run = key_of(row);
    if (run != last) last_from = whole;
    last = run;
    whole += line.size() + 1;
    done_.insert(run);
  }
  if (last.empty()) return absl::OkStatus();
  std::error_code failed;
  std::filesystem::resize_file(path, last_from, failed);
  if (failed) return refuse(path, failed.message());
  done_.erase(last);
  return absl::OkStatus();
}

}  // namespace memdecay::eval
