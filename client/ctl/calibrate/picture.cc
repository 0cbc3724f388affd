// The picture of a calibration (see report.h): lift over token distance and lift over age, a line a
// region, both axes logarithmic; the fitted decay of each region dashed.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/ctl/calibrate/report.h"

namespace memdecay::ctl {
namespace {

constexpr double kPanelWidth = 380, kPanelHeight = 320;
constexpr double kMarginLeft = 56, kMarginTop = 32, kGap = 72;
// Okabe and Ito's colours, which colour-blind people tell apart; black for all regions together.
constexpr const char* kLineColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#8a6d3b"};

struct Curve {
  std::string colour;
  bool dashed = false;
  std::vector<std::pair<double, double>> points;  // x from 1 on, y above 0
};

class Panel {
 public:
  Panel(double left, std::string title) : left_(left), title_(std::move(title)) {}

  void add(Curve curve) {
    for (const auto& [x, y] : curve.points) {
      widest_ = std::max(widest_, std::log2(x));
      lowest_ = std::min(lowest_, std::floor(std::log2(y)));
      highest_ = std::max(highest_, std::ceil(std::log2(y)));
    }
    if (!curve.points.empty()) curves_.push_back(std::move(curve));
  }

  std::string svg() const {
    std::string out = absl::StrFormat("<text x='%.1f' y='18'>%s</text>\n", left_, title_);
    for (double y = lowest_; y <= highest_; ++y) {
      absl::StrAppendFormat(&out,
                            "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
                            "<text x='%.1f' y='%.1f' text-anchor='end'>%.3g</text>\n",
                            left_, left_ + kPanelWidth, at_y(y), at_y(y), left_ - 6, at_y(y) + 4,
                            std::exp2(y));
    }
    for (double x = 0; x <= widest_; x += 2) {
      absl::StrAppendFormat(&out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.0f</text>\n",
                            at_x(x), kMarginTop + kPanelHeight + 16, std::exp2(x));
    }
    for (const Curve& curve : curves_) {
      std::string points;
      for (const auto& [x, y] : curve.points) {
        absl::StrAppendFormat(&points, "%.1f,%.1f ", at_x(std::log2(x)), at_y(std::log2(y)));
      }
      absl::StrAppendFormat(
          &out, "<polyline points='%s' fill='none' stroke='%s' stroke-width='%s'%s/>\n", points,
          curve.colour, curve.dashed ? "1" : "2", curve.dashed ? " stroke-dasharray='4 3'" : "");
    }
    return out;
  }

 private:
  double at_x(double log) const { return left_ + log / std::max(widest_, 1.0) * kPanelWidth; }
  double at_y(double log) const {
    const double part = (log - lowest_) / std::max(highest_ - lowest_, 1.0);
    return kMarginTop + (1 - part) * kPanelHeight;
  }

  double left_;
  std::string title_;
  std::vector<Curve> curves_;
  double widest_ = 1, lowest_ = 0, highest_ = 0;
};

Curve distances(const calibration::ExpectedLift::Bins& bins, std::string colour) {
  Curve curve{std::move(colour), false, {}};
  for (size_t bin = 0; bin < bins.size(); ++bin) {
    if (bins[bin].mean() > 0) {
      curve.points.emplace_back(std::exp2(static_cast<double>(bin)), bins[bin].mean());
    }
  }
  return curve;
}

Curve ages(const calibration::RegionResult& region, std::string colour) {
  Curve curve{std::move(colour), false, {}};
  for (const calibration::AgePoint& point : region.by_age) {
    if (point.lift > 0) curve.points.emplace_back(std::max(point.age, 1.0), point.lift);
  }
  return curve;
}

Curve decay(const calibration::RegionResult& region, double floor, std::string colour) {
  Curve curve{std::move(colour), true, {}};
  if (region.verdict != calibration::RegionResult::Verdict::kFitted) return curve;
  for (const calibration::AgePoint& point : region.by_age) {
    const double lives = std::isinf(region.measured) ? 1 : std::exp2(-point.age / region.measured);
    curve.points.emplace_back(std::max(point.age, 1.0), floor + region.fresh * lives);
  }
  return curve;
}

}  // namespace

std::string calibration_svg(const CalibrationOutcome& outcome) {
  Panel near(kMarginLeft, "lift by token distance");
  Panel old(kMarginLeft + kPanelWidth + kGap, "lift by age in generated tokens; dashed: fitted");
  const double legend = kMarginLeft + 2 * kPanelWidth + kGap + 12;
  near.add(distances(outcome.expected.all(), "#000000"));
  std::string names = absl::StrFormat("<text x='%.1f' y='%.1f'>all</text>\n", legend, kMarginTop);
  double line = kMarginTop;
  for (size_t i = 0; i < outcome.result.regions.size() && i < calibration::kRegions; ++i) {
    const calibration::RegionResult& region = outcome.result.regions[i];
    if (!outcome.shown[i] || region.observations == 0) continue;
    const char* colour = kLineColours[i % std::size(kLineColours)];
    near.add(distances(outcome.expected.of(i), colour));
    old.add(ages(region, colour));
    old.add(decay(region, outcome.result.floor, colour));
    line += 18;
    absl::StrAppendFormat(&names, "<text x='%.1f' y='%.1f' fill='%s'>%s</text>\n", legend, line,
                          colour, outcome.header.regions[i]);
  }
  return absl::StrFormat(
             "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' font-size='12' "
             "font-family='sans-serif'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
             legend + 100, kMarginTop + kPanelHeight + 32) +
         near.svg() + old.svg() + names + "</svg>\n";
}

}  // namespace memdecay::ctl
