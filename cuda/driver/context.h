// Context: the device's primary context, kept alive and made current on the calling thread. The
// primary one, because it is what an engine's own CUDA code in the same process uses: half a
// gigabyte of device memory is spent once a process, not once a library.
// Thread: begins and ends on the same thread. Not here: who needs one (driver_carrier.h).
#pragma once

#include "absl/status/status.h"
#include "cuda/driver/gpu.h"

namespace memdecay::cuda {

class Context {
 public:
  // The gpu outlives it.
  explicit Context(const Gpu& gpu) : gpu_(gpu) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { end(); }

  // Costs device memory the first time in a process. Again while it is there: nothing happens.
  absl::Status begin();
  void end();

 private:
  const Gpu& gpu_;
  enum class State : uint8_t { kNone, kCurrent } state_ = State::kNone;
};

}  // namespace memdecay::cuda
