// Bounds of the client, and what happens when one is reached.
// Thread: constants. Not here: bounds of frames (proto/contract/handle_frames.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/contract/clock.h"

namespace memdecay::client {

// Messages sent and not answered. Full: new calls are refused as unavailable.
inline constexpr size_t kMaxUnanswered = 65536;
// Acknowledgements may go beyond it: the daemon has asked for each of them.
inline constexpr size_t kAckReserve = 16384;
// Events nobody has taken. Full: the oldest goes and is counted.
inline constexpr size_t kMaxEvents = 4096;
// Slabs mapped at once. Full: a further one is not mapped and its pages stay unreadable.
inline constexpr size_t kMaxSlabs = 65536;
// Bytes of one message of the stream, either way.
inline constexpr int kMaxMessageBytes = 64 << 20;
inline constexpr Duration kDefaultTimeout = Duration::from_milliseconds(5000);
inline constexpr Duration kFirstBackOff = Duration::from_milliseconds(10);
inline constexpr Duration kLastBackOff = Duration::from_milliseconds(1000);
// One attempt to connect, attach and open the stream.
inline constexpr Duration kAttempt = Duration::from_milliseconds(2000);
// How long a stream may go on reading after the handle socket has closed.
inline constexpr Duration kLastWordsWait = Duration::from_milliseconds(300);
inline constexpr uint32_t kDefaultObserveEvery = 16;

static_assert(kAckReserve < kMaxUnanswered);
static_assert(kFirstBackOff < kLastBackOff);

}  // namespace memdecay::client
