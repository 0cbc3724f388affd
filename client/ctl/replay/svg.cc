// The picture of a replay (see report.h): capacity on a logarithmic scale, prefix hit ratio from 0
// to the best, the spread over salts as a bar.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/replay/report.h"

namespace memdecay::ctl {
namespace {

constexpr double kWidth = 720, kHeight = 420;
constexpr double kLeft = 64, kRight = 110, kTop = 24, kBottom = 48;
// Okabe and Ito's colours, which colour-blind people tell apart.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000"};

struct Frame {
  double low = 0, high = 1, top = 1;  // capacities as log10, ratio

  double x(uint64_t capacity) const {
    const double at = (std::log10(static_cast<double>(capacity)) - low) / (high - low);
    return kLeft + at * (kWidth - kLeft - kRight);
  }
  double y(double ratio) const { return kHeight - kBottom - ratio / top * plot(); }
  static double plot() { return kHeight - kBottom - kTop; }
};

Frame frame_of(const std::vector<ReplayRow>& rows) {
  Frame frame;
  double best = 0;
  uint64_t least = ~uint64_t{0}, most = 1;
  for (const ReplayRow& row : rows) {
    best = std::max(best, row.prefix_highest);
    least = std::min(least, row.capacity);
    most = std::max(most, row.capacity);
  }
  frame.low = std::log10(static_cast<double>(least));
  frame.high = std::max(frame.low + 0.1, std::log10(static_cast<double>(most)));
  frame.top = best > 0 ? std::min(1.0, std::ceil(best * 10.5) / 10) : 1;
  return frame;
}

std::string axes(const Frame& frame, const std::vector<ReplayRow>& rows) {
  std::string out;
  for (int step = 0; step <= 5; ++step) {
    const double ratio = frame.top * step / 5;
    absl::StrAppendFormat(&out,
                          "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
                          "<text x='%.1f' y='%.1f' text-anchor='end'>%.2f</text>\n",
                          kLeft, kWidth - kRight, frame.y(ratio), frame.y(ratio), kLeft - 8,
                          frame.y(ratio) + 4, ratio);
  }
  std::vector<uint64_t> capacities;
  for (const ReplayRow& row : rows) capacities.push_back(row.capacity);
  std::sort(capacities.begin(), capacities.end());
  capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());
  for (const uint64_t capacity : capacities) {
    absl::StrAppendFormat(&out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%d</text>\n",
                          frame.x(capacity), kHeight - kBottom + 18, capacity);
  }
  absl::StrAppendFormat(&out,
                        "<text x='%.1f' y='%.1f' text-anchor='middle'>capacity, blocks</text>\n"
                        "<text x='%.1f' y='14'>prefix hit ratio</text>\n",
                        (kLeft + kWidth - kRight) / 2, kHeight - 8, kLeft - 40);
  return out;
}

std::string curve(const Frame& frame, std::vector<ReplayRow> rows, const char* colour) {
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.capacity < b.capacity; });
  std::string points, marks;
  for (const ReplayRow& row : rows) {
    const double x = frame.x(row.capacity);
    const double y = frame.y(row.prefix_hit_ratio);
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    absl::StrAppendFormat(&marks, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>", x, y, colour);
    if (row.salts > 1) {
      absl::StrAppendFormat(&marks, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='%s'/>",
                            x, x, frame.y(row.prefix_lowest), frame.y(row.prefix_highest), colour);
    }
  }
  return absl::StrFormat("<polyline points='%s' fill='none' stroke='%s' stroke-width='2'/>%s\n",
                         points, colour, marks);
}

}  // namespace

std::string replay_svg(const ReplayResult& result) {
  const Frame frame = frame_of(result.rows);
  std::string out = absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' font-size='12' "
      "font-family='sans-serif'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
      kWidth, kHeight);
  out += axes(frame, result.rows);
  std::vector<std::string> policies;
  for (const ReplayRow& row : result.rows) {
    if (std::find(policies.begin(), policies.end(), row.policy) == policies.end()) {
      policies.push_back(row.policy);
    }
  }
  // The legend stands beside the ends of the curves, so it has their order.
  const auto best = [&result](const std::string& policy) {
    std::pair<uint64_t, double> last{0, 0};
    for (const ReplayRow& row : result.rows) {
      if (row.policy == policy) last = std::max(last, {row.capacity, row.prefix_hit_ratio});
    }
    return last.second;
  };
  std::stable_sort(policies.begin(), policies.end(),
                   [&best](const auto& a, const auto& b) { return best(a) > best(b); });
  for (size_t i = 0; i < policies.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::vector<ReplayRow> rows;
    for (const ReplayRow& row : result.rows) {
      if (row.policy == policies[i]) rows.push_back(row);
    }
    out += curve(frame, rows, colour);
    absl::StrAppendFormat(&out, "<text x='%.1f' y='%.1f' fill='%s'>%s</text>\n",
                          kWidth - kRight + 14, kTop + 16 + 18 * static_cast<double>(i), colour,
                          policies[i]);
  }
  return out + "</svg>\n";
}

}  // namespace memdecay::ctl
