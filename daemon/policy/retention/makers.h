// One maker a policy, for retention.cc. The options were checked.
// Thread: pure functions.
#pragma once

#include <memory>

#include "daemon/policy/retention/retention.h"

namespace memdecay::retention {

std::unique_ptr<Retention> make_lru();
std::unique_ptr<Retention> make_arc(size_t capacity);
std::unique_ptr<Retention> make_s3_fifo(size_t capacity);
std::unique_ptr<Retention> make_min();
std::unique_ptr<Retention> make_decay(const RetentionOptions& options);

}  // namespace memdecay::retention
