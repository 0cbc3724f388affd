// The mover port: asynchronous copies between device memory and host memory, in the order in which
// they were submitted. submit() never blocks; each accepted move is answered exactly once through
// the callback, unless cancel() took it back. The checksum of the bytes is taken in the same pass.
// Thread: submit(), cancel() and stats() from one owning thread; the callback runs on the mover's
// thread and must not block (post to a mailbox).
// Not here: which copies conflict (the ledger serialises copies on one slot), fences, tiers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "proto/contract/ids.h"

namespace memdecay::cuda {

enum class MoveKind : uint8_t { kCopy, kZero };
enum class ChecksumMode : uint8_t {
  kNone,
  kTake,    // the completion carries the checksum of what was copied
  kVerify,  // and the move fails with data_loss if it is not `expected`; `to` is then garbage
};

struct MoveRequest {
  CopyId id;  // the caller's; comes back in the completion
  MoveKind kind = MoveKind::kCopy;
  const std::byte* from = nullptr;  // kCopy only
  std::byte* to = nullptr;
  uint64_t bytes = 0;
  ChecksumMode checksum = ChecksumMode::kNone;
  Checksum expected;  // kVerify only
};

struct MoveCompletion {
  CopyId id;
  absl::Status status;
  std::optional<Checksum> checksum;  // for kTake and kVerify, whatever the status
};

using MoverCallback = std::function<void(const MoveCompletion&)>;

struct MoverOptions {
  uint32_t queue_capacity = 1024;  // moves accepted and not yet answered
};

struct MoverStats {
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t bytes = 0;
  uint32_t in_flight = 0;  // accepted and not yet answered
};

// kTooLate: it runs or has run; its completion comes or has come. kCancelled: it never will.
enum class CancelResult : uint8_t { kCancelled, kTooLate };

class Mover {
 public:
  // Finishes the move that runs, drops the others unanswered, returns when the thread is gone.
  virtual ~Mover() = default;

  // resource_exhausted: the queue is full; invalid_argument: null or overlapping ranges, 0 bytes;
  // device_lost.
  virtual absl::Status submit(const MoveRequest& request) = 0;
  virtual CancelResult cancel(CopyId id) = 0;
  virtual MoverStats stats() const = 0;
};

}  // namespace memdecay::cuda
