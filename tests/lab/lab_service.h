// The Lab service of memdecayd-lab (memdecay/v1/lab.proto): levers that tests pull in a real
// daemon. Thread: gRPC's; a call waits, while its work runs on the reactor's thread between two
// steps. Not here: the gate that holds copies (tests/support/copy_gate.h), the daemon
// (daemon/server).
#pragma once

#include <memory>

#include "daemon/base/real_clock.h"
#include "daemon/reactor/real_bytes.h"
#include "daemon/server/extension.h"
#include "tests/support/copy_gate.h"

namespace memdecay::lab {

// Everything that the levers move. All of it outlives the service.
struct Bench {
  server::Edge& edge;
  server::Metrics& metrics;
  base::ShiftedClock& clock;
  support::CopyGate& gate;
  reactor::RealBytes& bytes;
};

std::unique_ptr<grpc::Service> make_lab_service(const Bench& bench, const server::Config& config);

}  // namespace memdecay::lab
