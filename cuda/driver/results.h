// What a CUresult means to memdecay: which error code it is, whether the device is gone for good,
// and what a person can do about it.
// Thread: pure functions. Not here: who remembers that a device is lost (gpu.h).
#pragma once

#include <string>

#include "cuda/driver/api.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {

// Sticky: after these every call of this process on the device fails; only a new process helps.
bool is_sticky(CUresult result);
ErrorCode code_of(CUresult result);
// Never empty.
std::string remedy_of(CUresult result);

}  // namespace memdecay::cuda
