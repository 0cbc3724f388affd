// For every block reference of a trace the number of the next one to the same block: what `min`
// needs, and the only thing in a replay whose memory grows with the file. 4.1 bytes a reference,
// and while it is made about 30 a distinct block. Thread: one while it is made, then a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "client/ctl/replay/request.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::ctl {

class Future {
 public:
  // References are numbered from 0; more than this many are refused by the caller.
  static constexpr size_t kMost = 0xfffffffe;
  static constexpr uint64_t kNever = retention::kNever;

  // kStored: nobody asks for them there, and they come in whether or not they are held; so whoever
  // holds one before that gains nothing by it.
  void add(absl::Span<const uint64_t> blocks, TraceRequest::Kind kind = TraceRequest::Kind::kAsked);
  void close();  // nothing is added any more
  uint64_t next(uint64_t reference) const;
  size_t size() const { return next_.size(); }

 private:
  std::vector<bool> stored_;    // by reference
  std::vector<uint32_t> next_;  // while it is added to: the block's number in order of appearance
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;
};

}  // namespace memdecay::ctl
