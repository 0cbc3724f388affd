// The one seam between memdecayd and memdecayd-lab: what a laboratory puts between the daemon and
// the world. A release daemon links no_extension.cc and contains nothing of it.
// Thread: as the ports that it wraps.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <functional>
#include <memory>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/ledger/events.h"
#include "daemon/reactor/ports.h"
#include "daemon/reactor/real_bytes.h"
#include "daemon/server/config.h"
#include "daemon/server/edge.h"
#include "daemon/server/metrics.h"

namespace memdecay::server {

class Extension {
 public:
  virtual ~Extension() = default;

  // Stands in for the machine's clock.
  virtual base::Clock& clock() = 0;
  // Stands before the real port. `complete` is Reactor::complete.
  virtual reactor::Bytes& wrap(reactor::RealBytes& real,
                               std::function<void(ledger::Event)> complete) = 0;
  // Everything outlives the services.
  virtual std::vector<std::unique_ptr<grpc::Service>> services(Edge& edge, Metrics& metrics,
                                                               const Config& config) = 0;
};

// Null in a release daemon.
std::unique_ptr<Extension> make_extension();

}  // namespace memdecay::server
