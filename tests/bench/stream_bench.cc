// One call over the engine's stream and back, beside a bare echo (see sections.h).
//
// The call sets a budget through libmemdecay's C interface: the smallest that the daemon decides
// and answers. It passes the client's outbox, the stream, the daemon's reactor and ledger, and
// comes back to the thread that asked. The echo (echo.h) is what gRPC alone takes for the same
// messages.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/memdecay.h"
#include "client/memdecay.hpp"
#include "proto/contract/error.h"
#include "tests/bench/echo.h"
#include "tests/bench/processes.h"
#include "tests/bench/sections.h"
#include "tests/support/plain_layout.h"

namespace memdecay::bench {
namespace {

absl::Status last_error() {
  const memdecay_error* const error = memdecay_last_error();
  return make_error(static_cast<ErrorCode>(error->code), error->asked, error->there, error->todo);
}

memdecay_layout layout() {
  static const memdecay_layout_group kGroup = {1, 1, 64, 16, "token.dim", 0, 65536};
  return test::plain_layout(kGroup, "bench");
}

// The echo's server, another process of this program.
struct EchoServer {
  TemporaryFolder folder;
  std::unique_ptr<ChildProcess> process;
  std::string socket;

  static absl::StatusOr<EchoServer> start(const std::string& programs) {
    absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::create();
    if (!folder.ok()) return folder.status();
    const std::string socket = folder->path() + "/echo.sock";
    absl::StatusOr<std::unique_ptr<ChildProcess>> process =
        ChildProcess::start({programs + "/memdecay-bench", "echo-server", socket});
    if (!process.ok()) return process.status();
    const absl::StatusOr<std::string> ready = (*process)->read_line();
    if (!ready.ok()) return ready.status();
    return EchoServer{*std::move(folder), *std::move(process), socket};
  }
};

// Round trips of one block in microseconds; the first error ends it and stays.
class Trips {
 public:
  Trips(int count, std::function<absl::Status()> trip) : count_(count), trip_(std::move(trip)) {}

  // The block's median; all samples are kept.
  double block() {
    std::vector<double> samples;
    for (int i = 0; i < count_ && status_.ok(); ++i) {
      const Stopwatch watch;
      status_ = trip_();
      samples.push_back(watch.nanoseconds() / 1000);
    }
    all_.insert(all_.end(), samples.begin(), samples.end());
    return quantile(samples, 0.5);
  }
  const std::vector<double>& all() const { return all_; }
  const absl::Status& status() const { return status_; }

 private:
  const int count_;
  const std::function<absl::Status()> trip_;
  std::vector<double> all_;
  absl::Status status_;
};

void add_tail(const char* name, const Trips& trips, Report& report) {
  const double p99 = quantile(trips.all(), 0.99);
  report.add({.name = name,
              .figure = {quantile(trips.all(), 0), p99, quantile(trips.all(), 1)},
              .unit = "us"});
}

}  // namespace

absl::Status measure_stream(const BenchOptions& options, Report& report) {
  report.section("stream: one small call and its answer, over a Unix socket to another process");
  const absl::StatusOr<EchoServer> server = EchoServer::start(options.programs);
  if (!server.ok()) return server.status();
  const auto echo = EchoClient::connect(server->socket);
  if (!echo.ok()) return echo.status();
  const auto daemon = DaemonProcess::start(options.programs, {"device.pages=64"});
  if (!daemon.ok()) return daemon.status();
  memdecay_options connect = MEMDECAY_OPTIONS_INIT;
  connect.socket_dir = (*daemon)->folder().c_str();
  connect.engine_name = "bench";
  connect.grants_ahead = MEMDECAY_NO_GRANTS;
  const engine::Client client = engine::Client::connect(connect);
  if (!client) return last_error();
  const memdecay_open_options open = MEMDECAY_OPEN_INIT;
  engine::Session session = client.open(layout(), open);
  if (!session) return last_error();
  session.at_end(engine::AtEnd::kForget);

  const int count = options.pick(1000, 50);
  Trips bare(count, [&echo] { return (*echo)->round_trip(); });
  Trips call(count, [&session] {
    const memdecay_code code = memdecay_set_budget(session.get(), 0);
    return code == MEMDECAY_OK ? absl::OkStatus() : last_error();
  });
  const auto figures = take_turns(options.pick(15, 3), {{"", [&bare] { return bare.block(); }},
                                                        {"", [&call] { return call.block(); }}});
  for (const Trips* trips : {&bare, &call}) {
    if (!trips->status().ok()) return trips->status();
  }
  report.add({.name = "bare gRPC echo", .figure = spread_of(figures[0]), .unit = "us"});
  report.add({.name = "memdecay_set_budget, answered by memdecayd",
              .figure = spread_of(figures[1]),
              .unit = "us",
              .ratio = quantile(ratios(figures[1], figures[0]), 0.5),
              .baseline = "bare gRPC echo",
              .goal = Goal{Goal::Side::kAtMost, 1.2}});
  add_tail("bare gRPC echo, p99", bare, report);
  add_tail("memdecay_set_budget, p99", call, report);
  return absl::OkStatus();
}

}  // namespace memdecay::bench
