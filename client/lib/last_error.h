// The last error of this thread, as the C interface shows it. The one thread-local of the client: a
// C call has no other way to return sentences.
// Thread: each its own. Not here: what errors there are (proto/contract/error.h).
#pragma once

#include "absl/status/status.h"
#include "client/memdecay.h"

namespace memdecay::client {

// Keeps a failure for memdecay_last_error() and returns its code.
memdecay_code report(const absl::Status& status);
// The same for a call that was given a null pointer or a struct without its size.
memdecay_code null_argument(const char* call);

}  // namespace memdecay::client
