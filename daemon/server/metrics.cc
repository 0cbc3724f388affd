// prometheus-cpp throws when it cannot bind; nothing leaves this file as an exception (metrics.h).
#include "daemon/server/metrics.h"

#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::server {
namespace {

constexpr absl::Duration kPatience = absl::Milliseconds(500);

prometheus::MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric to_metric(const Histogram& histogram) {
  prometheus::ClientMetric metric;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    cumulative += histogram.counts()[i];
    metric.histogram.bucket.push_back({cumulative, Histogram::kBounds[i]});
  }
  metric.histogram.bucket.push_back({histogram.total(), std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = histogram.total();
  metric.histogram.sample_sum = histogram.sum_seconds();
  return metric;
}

prometheus::ClientMetric to_metric(const ledger::Sample& sample, MetricKind kind) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
  if (kind == MetricKind::kCounter) {
    metric.counter.value = sample.value;
  } else {
    metric.gauge.value = sample.value;
  }
  return metric;
}

std::vector<prometheus::MetricFamily> families(const MetricsSnapshot& snapshot) {
  std::map<std::string, prometheus::MetricFamily> by_name;
  std::map<std::string, MetricKind> kinds;
  for (const MetricName& known : metric_names()) {
    const std::string name(known.name);
    kinds[name] = known.kind;
    by_name[name] = {
        absl::StrCat("memdecay_", name), std::string(known.help), type_of(known.kind), {}};
  }
  by_name["decision_seconds"].metric.push_back(to_metric(snapshot.decision_seconds));
  by_name["copy_seconds"].metric.push_back(to_metric(snapshot.copy_seconds));
  by_name["fence_wait_seconds"].metric.push_back(to_metric(snapshot.fence_wait_seconds));
  for (const ledger::Sample& sample : snapshot.samples) {
    const auto known = kinds.find(sample.name);
    if (known != kinds.end() && known->second == MetricKind::kHistogram) continue;
    const MetricKind kind = known != kinds.end()                    ? known->second
                            : absl::EndsWith(sample.name, "_total") ? MetricKind::kCounter
                                                                    : MetricKind::kGauge;
    prometheus::MetricFamily& family = by_name[sample.name];
    if (family.name.empty()) {
      family = {
          absl::StrCat("memdecay_", sample.name), "Counted by the ledger.", type_of(kind), {}};
    }
    family.metric.push_back(to_metric(sample, kind));
  }
  std::vector<prometheus::MetricFamily> out;
  for (auto& [name, family] : by_name) out.push_back(std::move(family));
  return out;
}

class Source final : public prometheus::Collectable {
 public:
  explicit Source(Metrics& metrics) : metrics_(metrics) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return families(metrics_.snapshot());
  }

 private:
  Metrics& metrics_;
};

}  // namespace

struct Metrics::Endpoint {
  std::unique_ptr<prometheus::Exposer> exposer;
  std::shared_ptr<prometheus::Collectable> source;  // prometheus-cpp keeps a weak_ptr to it
};

Metrics::Metrics(Edge& edge, const StepTimes& times) : edge_(edge), times_(times) {}

Metrics::~Metrics() { stop(); }

void Metrics::stop() { endpoint_.reset(); }

absl::StatusOr<std::string> Metrics::serve(const std::string& listen) {
  if (listen == "none") return std::string();
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->source = std::shared_ptr<prometheus::Collectable>(new Source(*this));
  std::string why;
  try {
    endpoint->exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", listen, "num_threads", "2", "request_timeout_ms", "1000",
        "enable_keep_alive", "no", "linger_timeout_ms", "0"});
    endpoint->exposer->RegisterCollectable(endpoint->source);
    const std::vector<int> ports = endpoint->exposer->GetListeningPorts();
    if (!ports.empty()) {
      endpoint_ = std::move(endpoint);
      return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", ports.front());
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  return make_error(ErrorCode::kUnavailable, absl::StrCat("serve metrics at ", listen),
                    why.empty() ? "the address cannot be bound" : why,
                    "set metrics.listen to a free address, port 0 for any, or to none");
}

MetricsSnapshot Metrics::look(const ledger::Ledger& ledger) const {
  MetricsSnapshot out{.samples = ledger::report_metrics(ledger),
                      .decision_seconds = times_.decisions(),
                      .copy_seconds = times_.copies(),
                      .fence_wait_seconds = times_.fences()};
  for (int i = 1; i < kErrorCodes; ++i) {
    const ErrorCode code = static_cast<ErrorCode>(i);
    const double refused = static_cast<double>(edge_.errors().of(code));
    if (refused == 0) continue;
    // The ledger's refusals and the edges' are one number to whoever looks.
    const std::string name(error_name(code));
    bool added = false;
    for (ledger::Sample& sample : out.samples) {
      if (sample.name != "errors_total" || sample.labels.empty() ||
          sample.labels.front().second != name) {
        continue;
      }
      sample.value += refused;
      added = true;
    }
    if (!added) out.samples.push_back({"errors_total", {{"code", name}}, refused});
  }
  const reactor::Reactor::Depths depths = edge_.reactor().depths();
  const auto depth = [&out](const char* lane, size_t value) {
    out.samples.push_back({"mailbox_depth", {{"lane", lane}}, static_cast<double>(value)});
  };
  depth("completions", depths.completions);
  depth("stream", depths.stream);
  depth("requests", depths.requests);
  out.samples.push_back({"mailbox_rejected_total", {}, static_cast<double>(depths.rejected)});
  return out;
}

MetricsSnapshot Metrics::snapshot() {
  uint64_t mine = 0;
  {
    const absl::MutexLock lock(&mutex_);
    mine = ++asked_;
  }
  edge_.reactor().inspect([this, mine](ledger::Ledger& ledger) {
    MetricsSnapshot fresh = look(ledger);
    const absl::MutexLock lock(&mutex_);
    last_ = std::move(fresh);
    answered_ = mine;
  });
  const absl::MutexLock lock(&mutex_);
  const auto there = [this, mine]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return answered_ >= mine; };
  mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience);
  return last_;
}

}  // namespace memdecay::server
