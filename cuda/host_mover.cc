// The carrier of the host device (see host_mover.h).
#include "cuda/host_mover.h"

#include <cstring>
#include <utility>

#include "cuda/checksum.h"
#include "cuda/thread_mover.h"

namespace memdecay::cuda {
namespace {

class HostCarrier final : public Carrier {
 public:
  MoveCompletion carry_out(const MoveRequest& request) override { return move_on_cpu(request); }
};

}  // namespace

MoveCompletion move_on_cpu(const MoveRequest& request) {
  const auto bytes = static_cast<size_t>(request.bytes);
  if (request.kind == MoveKind::kZero) {
    std::memset(request.to, 0, bytes);
    return {.id = request.id};
  }
  if (request.checksum == ChecksumMode::kNone) {
    std::memcpy(request.to, request.from, bytes);
    return {.id = request.id};
  }
  return complete_with(request, copy_with_checksum({request.to, bytes}, {request.from, bytes}));
}

absl::StatusOr<std::unique_ptr<Mover>> create_host_mover(MoverOptions options,
                                                         MoverCallback completed) {
  return create_thread_mover(options, std::move(completed), std::make_unique<HostCarrier>());
}

}  // namespace memdecay::cuda
