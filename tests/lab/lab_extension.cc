// memdecayd-lab's half of the seam in daemon/server/extension.h: a clock that can be moved, a gate
// before the copies, and the Lab service.
// Thread: main, while the daemon is put together.
#include <optional>
#include <utility>

#include "daemon/base/real_clock.h"
#include "daemon/server/extension.h"
#include "tests/lab/lab_service.h"
#include "tests/support/copy_gate.h"

namespace memdecay::server {
namespace {

class LabExtension final : public Extension {
 public:
  base::Clock& clock() override { return clock_; }

  reactor::Bytes& wrap(reactor::RealBytes& real,
                       std::function<void(ledger::Event)> complete) override {
    real_ = &real;
    return gate_.emplace(real, std::move(complete));
  }

  std::vector<std::unique_ptr<grpc::Service>> services(Edge& edge, Metrics& metrics,
                                                       const Config& config) override {
    std::vector<std::unique_ptr<grpc::Service>> all;
    all.push_back(lab::make_lab_service({edge, metrics, clock_, *gate_, *real_}, config));
    return all;
  }

 private:
  base::ShiftedClock clock_;
  reactor::RealBytes* real_ = nullptr;
  std::optional<support::CopyGate> gate_;
};

}  // namespace

std::unique_ptr<Extension> make_extension() { return std::make_unique<LabExtension>(); }

}  // namespace memdecay::server
