// See report.h.
#include "tests/bench/report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memdecay::bench {
namespace {

constexpr int kNameColumns = 46;

// Three significant figures, in plain notation.
std::string number(double value) {
  const double size = std::fabs(value);
  if (size >= 100) return absl::StrFormat("%.0f", value);
  if (size >= 10) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

bool met(const Row& row) {
  const double value = row.ratio.value_or(row.figure.median);
  return row.goal->side == Goal::Side::kAtLeast ? value >= row.goal->value
                                                : value <= row.goal->value;
}

std::string goal_text(const Row& row) {
  if (!row.goal.has_value()) return {};
  const char* const side = row.goal->side == Goal::Side::kAtLeast ? ">=" : "<=";
  return absl::StrFormat("%s %.4g  %s", side, row.goal->value, met(row) ? "met" : "missed");
}

std::string line(const Row& row) {
  const std::string spread =
      absl::StrCat("(", number(row.figure.low), " .. ", number(row.figure.high), ")");
  const std::string ratio = row.ratio.has_value() ? absl::StrFormat("%.3f", *row.ratio) : "";
  std::string text =
      absl::StrFormat("  %-*s %9s %-8s %-20s %7s  %s", kNameColumns - 2, row.name,
                      number(row.figure.median), row.unit, spread, ratio, goal_text(row));
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

void Report::section(std::string title) { sections_.push_back({std::move(title), {}, {}}); }
void Report::add(Row row) { sections_.back().rows.push_back(std::move(row)); }
void Report::missing(std::string title, std::string why) {
  sections_.push_back({std::move(title), {}, std::move(why)});
  complete_ = false;
}
void Report::context(std::string name, std::string value) {
  context_.emplace_back(std::move(name), std::move(value));
}

std::string Report::text() const {
  std::string out;
  for (const Section& section : sections_) {
    std::string baseline;
    for (const Row& row : section.rows) {
      if (!row.baseline.empty()) baseline = absl::StrCat("of ", row.baseline);
    }
    absl::StrAppendFormat(&out, "%s\n  %-*s %9s %-8s %-20s %7s  %s\n", section.title,
                          kNameColumns - 2, "", "median", "", "(low .. high)", "ratio",
                          baseline.empty() ? "goal" : absl::StrCat("goal (", baseline, ")"));
    for (const Row& row : section.rows) out += line(row);
    if (!section.missing.empty()) absl::StrAppend(&out, "  not measured: ", section.missing, "\n");
    out += "\n";
  }
  for (const auto& [name, value] : context_) absl::StrAppend(&out, name, ": ", value, "\n");
  return out;
}

std::string Report::json() const {
  nlohmann::ordered_json out;
  out["sections"] = nlohmann::ordered_json::array();
  for (const Section& section : sections_) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : section.rows) {
      nlohmann::ordered_json entry = {{"name", row.name},
                                      {"median", row.figure.median},
                                      {"low", row.figure.low},
                                      {"high", row.figure.high},
                                      {"unit", row.unit}};
      if (row.ratio.has_value()) {
        entry["ratio"] = *row.ratio;
        entry["baseline"] = row.baseline;
      }
      if (row.goal.has_value()) {
        const bool least = row.goal->side == Goal::Side::kAtLeast;
        entry["goal"] = {{least ? "at_least" : "at_most", row.goal->value}};
        entry["goal"]["met"] = met(row);
      }
      rows.push_back(std::move(entry));
    }
    nlohmann::ordered_json entry = {{"title", section.title}, {"rows", std::move(rows)}};
    if (!section.missing.empty()) entry["not_measured"] = section.missing;
    out["sections"].push_back(std::move(entry));
  }
  for (const auto& [name, value] : context_) out["machine"][name] = value;
  return out.dump(2) + "\n";
}

}  // namespace memdecay::bench
