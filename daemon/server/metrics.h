// The Prometheus endpoint. A scrape asks the reactor for a snapshot between two steps and waits for
// it a little; a reactor that does not answer in time gives the last snapshot, never a hang.
// Thread: samples() on any; the endpoint's own threads serve. Names and help: metrics_names.cc.
// Not here: what is counted (ledger, reactor, edges).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/ledger/report.h"
#include "daemon/server/edge.h"
#include "daemon/server/step_times.h"

namespace memdecay::server {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };
struct MetricName {
  std::string_view name;  // without "memdecay_"
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;
};
// Every name of the vocabulary.
std::vector<MetricName> metric_names();

struct MetricsSnapshot {
  std::vector<ledger::Sample> samples;
  Histogram decision_seconds;
  Histogram copy_seconds;
  Histogram fence_wait_seconds;
};

class Metrics {
 public:
  // `times` is the reactor's; everything outlives the object.
  Metrics(Edge& edge, const StepTimes& times);
  ~Metrics();

  // Starts the endpoint: "127.0.0.1:0" takes any free port. The address it serves at; "" for
  // "none".
  absl::StatusOr<std::string> serve(const std::string& listen);
  void stop();

  MetricsSnapshot snapshot();

 private:
  struct Endpoint;

  MetricsSnapshot look(const ledger::Ledger& ledger) const;

  Edge& edge_;
  const StepTimes& times_;
  std::unique_ptr<Endpoint> endpoint_;

  absl::Mutex mutex_;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;
  MetricsSnapshot last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::server
