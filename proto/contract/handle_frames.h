// Frames of the handle socket: who you are, and descriptors. A frame is
//   magic u32 · type u16 · reserved u16 (0) · payload bytes u32 · payload
// all little endian; texts are u16 length + UTF-8. Layouts: proto/README.md, "Handle socket".
// Why not protobuf: the client that hands back descriptors must need nothing but this file.
// Thread: values and pure functions, any thread. Invariant: decode(encode(f)) == f; decoding never
// reads beyond what it was given and accepts no trailing bytes.
// Not here: sockets and descriptors (handle_socket.h), what a frame makes happen (daemon, client).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "proto/contract/error.h"
#include "proto/contract/ids.h"

namespace memdecay {

// The protocol that this tree speaks. One minor apart works, another major is refused.
inline constexpr uint16_t kProtocolMajor = 1;
inline constexpr uint16_t kProtocolMinor = 0;

inline constexpr uint32_t kFrameMagic = 0x3148444d;  // "MDH1"
inline constexpr size_t kFrameHeaderBytes = 12;
inline constexpr size_t kMaxFramePayloadBytes = 4096;
inline constexpr size_t kMaxFrameTextBytes = 1024;
inline constexpr size_t kMaxFdsPerMessage = 128;

enum class FrameType : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kRefused = 3,
  kSlabFd = 4,
  kSlabGone = 5,
  kTimelineFd = 6,
  kShadowFd = 7,
  kGoodbye = 8,
  kHandBack = 9,
};

// Random bytes that prove "I am that engine": in gRPC metadata and when attaching again.
using Token = std::array<uint8_t, 16>;

// An operator (memdecayctl, an orchestrator) asks and steers; it is no engine in any count.
enum class MemberRole : uint8_t { kScheduler = 1, kWorker = 2, kOperator = 3 };

// Client → daemon, first frame. A new engine: engine 0. A further member of a living engine, or a
// disconnected one that attaches again: its engine id, epoch and token.
struct Hello {
  uint16_t major = kProtocolMajor;
  uint16_t minor = kProtocolMinor;
  MemberRole role = MemberRole::kScheduler;
  std::string engine_name;  // for people: logs, `status`
  EngineId engine;          // 0: new
  Epoch epoch;              // 0 exactly when engine is 0
  Token token{};
  uint32_t page_tokens = 0;  // 0: whatever the daemon has; else refused unless equal
  uint64_t page_bytes = 0;   // of the layout it will open; the slabs it gets have this page size
  uint32_t pages = 0;        // writable pages it would like at the start; 0: none yet

  bool operator==(const Hello&) const = default;
};

// How the daemon will make sure that a process is gone after its socket closed.
enum class DeathConfirmation : uint8_t { kPeerPidfd = 1, kPidfdOpen = 2, kSocketOnly = 3 };

// Daemon → client.
struct Welcome {
  EngineId engine;
  Epoch epoch;
  Token token{};
  uint32_t member = 0;  // number of this connection in its engine: Fence::member
  uint16_t major = 0;   // agreed
  uint16_t minor = 0;
  DeathConfirmation death_confirmation = DeathConfirmation::kSocketOnly;
  std::string control_path;  // Unix socket of the gRPC services

  bool operator==(const Welcome&) const = default;
};

// Daemon → client: why there is no Welcome, or why a frame was not obeyed.
struct Refused {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;

  bool operator==(const Refused&) const = default;
};

enum class SlabAccess : uint8_t { kReadOnly = 0, kWritable = 1 };

// Daemon → client, with one descriptor. A slab that is sent again replaces the earlier descriptor
// (its access may have changed).
struct SlabFd {
  SlabId slab;
  uint64_t bytes = 0;
  uint64_t page_bytes = 0;  // slot i lies at i * page_bytes
  uint32_t slots = 0;
  SlabAccess access = SlabAccess::kReadOnly;

  bool operator==(const SlabFd&) const = default;
};

// Daemon → client: unmap it; nothing in it is yours any more.
struct SlabGone {
  SlabId slab;

  bool operator==(const SlabGone&) const = default;
};

// Daemon → client, with one descriptor: the member's timeline page (timeline_page.h), writable.
struct TimelineFd {
  uint32_t member = 0;

  bool operator==(const TimelineFd&) const = default;
};

// Daemon → client, with one descriptor: the shadow table (shadow_table.h), read-only.
struct ShadowFd {
  uint64_t bytes = 0;

  bool operator==(const ShadowFd&) const = default;
};

// Either way: this end leaves in good order; sessions keep their orphan rules.
struct Goodbye {
  bool operator==(const Goodbye&) const = default;
};

// Client → restarted daemon, with one descriptor: a slab that it kept. Slab 0 is the shadow table.
// (Format only; adoption comes with durability. Until then the answer is Refused{unsupported}.)
struct HandBack {
  SlabId slab;
  uint64_t bytes = 0;

  bool operator==(const HandBack&) const = default;
};

using Frame = std::variant<Hello, Welcome, Refused, SlabFd, SlabGone, TimelineFd, ShadowFd, Goodbye,
                           HandBack>;

struct FrameHeader {
  FrameType type = FrameType::kGoodbye;
  uint32_t payload_bytes = 0;

  bool operator==(const FrameHeader&) const = default;
};

FrameType frame_type(const Frame& frame);
// Descriptors that travel with a frame of this type: 0 or 1.
size_t frame_fds(FrameType type);

// The whole frame, header included; invalid_argument if a text is too long or a value is one that
// decode_frame would refuse.
absl::StatusOr<std::string> encode_frame(const Frame& frame);

// The header from at least kFrameHeaderBytes bytes. invalid_argument: these bytes are no header of
// this protocol and the stream cannot be followed any further.
absl::StatusOr<FrameHeader> decode_frame_header(std::span<const std::byte> bytes);
// The payload, exactly header.payload_bytes long. invalid_argument: this frame is refused, the next
// one may be fine.
absl::StatusOr<Frame> decode_frame(FrameType type, std::span<const std::byte> payload);

// The version both can speak, or version_mismatch in words that an adapter can log.
struct ProtocolVersion {
  uint16_t major = 0;
  uint16_t minor = 0;
};
absl::StatusOr<ProtocolVersion> agree_version(uint16_t major, uint16_t minor);

}  // namespace memdecay
