// The shadow table: a memfd that the daemon writes and clients map read-only, telling for every
// slot of a slab what lies in it. A client keeps it with its slab descriptors and hands all back to
// a restarted daemon. Layout: ShadowHeader, kShadowSlabs ShadowSlab entries, then ShadowRecords;
// record of slot i of a slab = records[slab.first_record + i].
// Thread: one writer; any number of readers in any process. A record is a seqlock: its sequence is
// odd while it is written; words are atomics, so a torn read is found and never undefined.
// Invariant for readers: nothing in the memory is believed; every number is checked against the
// size of the mapping. Not here: creating the memfd, what a restarted daemon does with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay {

inline constexpr uint64_t kShadowMagic = 0x31574f44'4148534d;  // "MSHADOW1"
inline constexpr uint32_t kShadowVersion = 1;
inline constexpr uint32_t kShadowSlabs = 1024;
inline constexpr uint32_t kMaxShadowRecords = 1u << 24;

struct ShadowHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t record_bytes;
  uint32_t slab_entries;
  uint32_t records;       // capacity
  uint64_t daemon_epoch;  // of the daemon that writes it; 0 until it serves
  uint64_t reserved[4];
};

struct ShadowSlab {
  uint32_t slab;  // SlabId; 0: the entry is free
  uint32_t first_record;
  uint32_t slots;
  uint32_t reserved;
};

struct ShadowRecord {
  uint32_t sequence;  // even: stable
  uint32_t generation;
  uint32_t slab;
  uint32_t index;
  uint8_t state;   // SlotState
  uint8_t kind;    // 0 nothing known, 1 exact (key), 2 private (session)
  uint8_t sealed;  // 1: checksum holds
  uint8_t reserved8;
  uint32_t page;  // PageIndex
  uint64_t session;
  uint8_t space[32];  // NamespaceId
  uint8_t key[32];    // PageKey
  uint64_t checksum_low;
  uint64_t checksum_high;
  uint64_t reserved[2];
};

static_assert(std::is_trivially_copyable_v<ShadowRecord>);
static_assert(sizeof(ShadowHeader) == 64 && sizeof(ShadowSlab) == 16);
static_assert(sizeof(ShadowRecord) == 128 && alignof(ShadowRecord) == 8);
static_assert(offsetof(ShadowRecord, session) == 24 && offsetof(ShadowRecord, space) == 32);
static_assert(offsetof(ShadowRecord, key) == 64 && offsetof(ShadowRecord, checksum_low) == 96);

inline constexpr size_t kShadowRecordsAt = sizeof(ShadowHeader) + kShadowSlabs * sizeof(ShadowSlab);
static_assert(kShadowRecordsAt % 64 == 0, "records start on a cache line");

constexpr size_t shadow_table_bytes(uint32_t records) {
  return kShadowRecordsAt + size_t{records} * sizeof(ShadowRecord);
}

// What a slot holds, as values.
struct ShadowEntry {
  SlotRef slot;
  SlotState state = SlotState::kFree;
  std::optional<PageKey> key;  // exact page
  SessionId session;           // private page
  NamespaceId space;
  PageIndex page = 0;
  std::optional<Checksum> checksum;  // once sealed

  bool operator==(const ShadowEntry&) const = default;
};

class ShadowWriter {
 public:
  // Formats `memory` (zeroed, 8-byte aligned, shadow_table_bytes(records) long).
  static absl::StatusOr<ShadowWriter> format(std::span<std::byte> memory, uint32_t records);

  void set_daemon_epoch(uint64_t epoch);
  // resource_exhausted when there is no run of records or no entry left; invalid_argument for
  // slab 0, no slots or a slab that is there already.
  absl::Status add_slab(SlabId slab, uint32_t slots);
  absl::Status remove_slab(SlabId slab);  // not_found
  // not_found: unknown slab; out_of_range: no such slot.
  absl::Status write(const ShadowEntry& entry);

 private:
  explicit ShadowWriter(std::span<std::byte> memory, uint32_t records)
      : memory_(memory), records_(records) {}

  std::span<std::byte> memory_;
  uint32_t records_;
};

class ShadowReader {
 public:
  // invalid_argument: this memory is no shadow table of this version, or shorter than it says.
  static absl::StatusOr<ShadowReader> open(std::span<const std::byte> memory);

  uint64_t daemon_epoch() const;
  // not_found: unknown slab; out_of_range: no such slot; unavailable: it kept changing while being
  // read; data_loss: the record contradicts itself.
  absl::StatusOr<ShadowEntry> read(SlabId slab, uint32_t index) const;
  // Number of slots the table knows for the slab; not_found.
  absl::StatusOr<uint32_t> slots(SlabId slab) const;

 private:
  explicit ShadowReader(std::span<const std::byte> memory, uint32_t records)
      : memory_(memory), records_(records) {}

  std::span<const std::byte> memory_;
  uint32_t records_;
};

}  // namespace memdecay
