// The one table of a run: figures with their spread, ratios and goals beside each other, as text or
// JSON. A goal that is missed is shown, never an error.
// Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/timing.h"

namespace memdecay::bench {

// Of a row's ratio; of its median where it has none.
struct Goal {
  enum class Side : uint8_t { kAtLeast, kAtMost } side = Side::kAtLeast;
  double value = 0;
};

struct Row {
  std::string name;
  Spread figure;
  std::string unit;
  std::optional<double> ratio;  // to the baseline
  std::string baseline;         // its row's name
  std::optional<Goal> goal;
};

class Report {
 public:
  // Rows that follow belong to it.
  void section(std::string title);
  void add(Row row);
  // A section could not be measured, or only in part.
  void missing(std::string title, std::string why);
  // What the reader has to know about the machine.
  void context(std::string name, std::string value);

  bool complete() const { return complete_; }
  std::string text() const;
  std::string json() const;

 private:
  struct Section {
    std::string title;
    std::vector<Row> rows;
    std::string missing;
  };

  std::vector<Section> sections_;
  std::vector<std::pair<std::string, std::string>> context_;
  bool complete_ = true;
};

}  // namespace memdecay::bench
