// Means over channels (see mix.h).
#include "daemon/policy/calibration/mix.h"

#include <algorithm>

namespace memdecay::calibration {

bool Mix::wanted(const std::string& channel) const {
  return std::find(channels_.begin(), channels_.end(), channel) != channels_.end();
}

bool Mix::continues(const trace::Event& event, const trace::Observed& seen) const {
  if (!open_ || open_->session != event.session) return false;
  const auto& open = std::get<trace::Observed>(open_->what);
  return open.step == seen.step && open.query_position == seen.query_position &&
         open.queries == seen.queries;
}

void Mix::add(const trace::Observed& seen) {
  auto& sum = std::get<trace::Observed>(open_->what);
  sum.sink += seen.sink;
  sum.tail += seen.tail;
  sum.rest += seen.rest;
  for (const trace::PageMass& mass : seen.masses) masses_[mass.page] += mass.mass;
  ++parts_;
}

absl::Status Mix::take(const trace::Event& event, Take next) {
  const auto* seen = std::get_if<trace::Observed>(&event.what);
  if (seen != nullptr && !wanted(seen->channel)) return absl::OkStatus();
  if (seen == nullptr || channels_.size() == 1) {
    if (absl::Status status = finish(next); !status.ok()) return status;
    return next(event);
  }
  if (!continues(event, *seen)) {
    if (absl::Status status = finish(next); !status.ok()) return status;
    trace::Observed empty;
    empty.step = seen->step;
    empty.query_position = seen->query_position;
    empty.queries = seen->queries;
    open_ = trace::Event{.at_ms = event.at_ms, .session = event.session, .what = std::move(empty)};
  }
  add(*seen);
  return absl::OkStatus();
}

absl::Status Mix::finish(Take next) {
  if (!open_) return absl::OkStatus();
  auto& mean = std::get<trace::Observed>(open_->what);
  mean.sink /= parts_;
  mean.tail /= parts_;
  mean.rest /= parts_;
  for (const auto& [page, mass] : masses_) mean.masses.push_back({page, mass / parts_});
  masses_.clear();
  parts_ = 0;
  const trace::Event event = *std::move(open_);
  open_.reset();
  return next(event);
}

}  // namespace memdecay::calibration
