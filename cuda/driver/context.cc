// See context.h.
#include "cuda/driver/context.h"

namespace memdecay::cuda {

absl::Status Context::begin() {
  if (state_ == State::kCurrent) return absl::OkStatus();
  const Api& api = gpu_.api();
  CUcontext context = nullptr;
  if (absl::Status status = gpu_.call(api.primary_ctx_retain, &context, gpu_.device());
      !status.ok()) {
    return status;
  }
  absl::Status current = gpu_.call(api.ctx_set_current, context);
  if (!current.ok()) {
    gpu_.call(api.primary_ctx_release, gpu_.device()).IgnoreError();
    return current;
  }
  state_ = State::kCurrent;
  return absl::OkStatus();
}

void Context::end() {
  if (state_ == State::kNone) return;
  const Api& api = gpu_.api();
  gpu_.call(api.ctx_set_current, CUcontext{nullptr}).IgnoreError();
  gpu_.call(api.primary_ctx_release, gpu_.device()).IgnoreError();
  state_ = State::kNone;
}

}  // namespace memdecay::cuda
