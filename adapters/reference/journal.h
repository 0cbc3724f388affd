// What a run reports: one JSON object a line, to standard output, to a file, or to both.
//
// Why: runs are compared by programs (the quickstart, tests): every figure they compare is in an
// event, and an event is on its way before the next one happens.
// Thread: one.
// Invariant: lines are flushed one by one, so a process that is killed has said what it did.
// Not here: what events there are (engine.h).
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace memdecay::reference {

using Event = nlohmann::ordered_json;

enum class Echo : uint8_t { kStandardOutput, kNone };

class Journal {
 public:
  // Empty paths: no such file. `raw`: receives rows of logits as float32.
  static absl::StatusOr<Journal> open(const std::string& path, const std::string& raw, Echo echo);

  void write(const Event& event);
  void write_row(std::span<const float> logits);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  Journal(File lines, File raw, Echo echo)
      : lines_(std::move(lines)), raw_(std::move(raw)), echo_(echo) {}

  File lines_;
  File raw_;
  Echo echo_;
};

}  // namespace memdecay::reference
