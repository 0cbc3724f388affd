// Secrets from the machine's generator. Thread: any. Not here: numbers that a seed repeats
// (daemon/base/random.h).
#pragma once

#include "absl/status/statusor.h"
#include "proto/contract/handle_frames.h"

namespace memdecay::server {

// unavailable: the machine gives none.
absl::StatusOr<Token> random_token();

}  // namespace memdecay::server
