// Writer and reader of the shadow table (see shadow_table.h).
// A record is read and written as 16 atomic words: data words are stored with release and loaded
// with acquire, so a reader that saw any new word also sees the odd sequence and tries again.
#include "proto/contract/shadow_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay {
namespace {

constexpr int kReadAttempts = 256;
constexpr size_t kRecordWords = sizeof(ShadowRecord) / sizeof(uint64_t);
using RecordWords = std::array<uint64_t, kRecordWords>;

uint32_t load32(const std::byte* at) {
  // atomic_ref wants a non-const object; the memory may be mapped read-only and is only loaded.
  auto* word = reinterpret_cast<uint32_t*>(const_cast<std::byte*>(at));
  return std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire);
}

void store32(std::byte* at, uint32_t value) {
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at))
      .store(value, std::memory_order_release);
}

uint64_t load64(const std::byte* at) {
  auto* word = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at));
  return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire);
}

void store64(std::byte* at, uint64_t value) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at))
      .store(value, std::memory_order_release);
}

size_t slab_at(uint32_t entry) { return sizeof(ShadowHeader) + entry * sizeof(ShadowSlab); }

ShadowSlab load_slab(std::span<const std::byte> memory, uint32_t entry) {
  const std::byte* at = memory.data() + slab_at(entry);
  return {.slab = load32(at + offsetof(ShadowSlab, slab)),
          .first_record = load32(at + offsetof(ShadowSlab, first_record)),
          .slots = load32(at + offsetof(ShadowSlab, slots)),
          .reserved = 0};
}

std::byte* record_at(std::span<std::byte> memory, uint32_t record) {
  return memory.data() + kShadowRecordsAt + size_t{record} * sizeof(ShadowRecord);
}

// The writer's half of the seqlock. A writer that died inside leaves an odd sequence, which the
// next one takes over.
void store_record(std::byte* at, ShadowRecord record) {
  const uint32_t odd = load32(at) | 1;
  record.sequence = odd;
  RecordWords words;
  std::memcpy(words.data(), &record, sizeof(record));
  store32(at, odd);
  for (size_t i = 0; i < kRecordWords; ++i) store64(at + i * sizeof(uint64_t), words[i]);
  store32(at, odd + 1);
}

// A slab's entry, checked against the table's capacity.
absl::StatusOr<ShadowSlab> find_slab(std::span<const std::byte> memory, uint32_t records,
                                     SlabId slab) {
  for (uint32_t i = 0; slab && i < kShadowSlabs; ++i) {
    const ShadowSlab found = load_slab(memory, i);
    if (found.slab != slab.value) continue;
    if (found.first_record > records || found.slots > records - found.first_record) {
      return make_error(ErrorCode::kDataLoss, absl::StrCat("shadow table, slab ", slab.value),
                        "its records lie outside the table", "do not trust this table");
    }
    return found;
  }
  return make_error(ErrorCode::kNotFound, absl::StrCat("slab ", slab.value),
                    "not in the shadow table");
}

absl::Status out_of_range(SlabId slab, uint32_t index, uint32_t slots) {
  return make_error(ErrorCode::kOutOfRange, absl::StrCat("slot ", index, " of slab ", slab.value),
                    absl::StrCat(slots, " slots"));
}

ShadowRecord record_of(const ShadowEntry& entry) {
  ShadowRecord record{};
  record.generation = entry.slot.generation;
  record.slab = entry.slot.slab.value;
  record.index = entry.slot.index;
  record.state = static_cast<uint8_t>(entry.state);
  record.kind = entry.key.has_value() ? 1 : (entry.session ? 2 : 0);
  record.sealed = entry.checksum.has_value() ? 1 : 0;
  record.page = entry.page;
  record.session = entry.session.value;
  std::memcpy(record.space, entry.space.bytes.data(), sizeof(record.space));
  if (entry.key.has_value()) std::memcpy(record.key, entry.key->bytes.data(), sizeof(record.key));
  if (entry.checksum.has_value()) {
    record.checksum_low = entry.checksum->low;
    record.checksum_high = entry.checksum->high;
  }
  return record;
}

absl::StatusOr<ShadowEntry> entry_of(const ShadowRecord& record, SlabId slab, uint32_t index) {
  // A record that was never written is a free slot of generation 0.
  const bool fresh = record.slab == 0 && record.kind == 0;
  const bool sound = record.state < kSlotStates && record.kind <= 2 && record.sealed <= 1 &&
                     (record.kind != 2 || record.session != 0) &&
                     (fresh || (record.slab == slab.value && record.index == index));
  if (!sound) {
    return make_error(ErrorCode::kDataLoss,
                      absl::StrCat("shadow record of slot ", index, " of slab ", slab.value),
                      "it contradicts itself", "do not trust this slot");
  }
  ShadowEntry entry;
  entry.slot = {.slab = slab, .index = index, .generation = record.generation};
  entry.state = static_cast<SlotState>(record.state);
  entry.session.value = record.session;
  std::memcpy(entry.space.bytes.data(), record.space, sizeof(record.space));
  entry.page = record.page;
  if (record.kind == 1) {
    entry.key.emplace();
    std::memcpy(entry.key->bytes.data(), record.key, sizeof(record.key));
  }
  if (record.sealed == 1) {
    entry.checksum = Checksum{.low = record.checksum_low, .high = record.checksum_high};
  }
  return entry;
}

}  // namespace

absl::StatusOr<ShadowWriter> ShadowWriter::format(std::span<std::byte> memory, uint32_t records) {
  if (records == 0 || records > kMaxShadowRecords || memory.size() < shadow_table_bytes(records) ||
      reinterpret_cast<uintptr_t>(memory.data()) % alignof(ShadowRecord) != 0) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("shadow table of ", records),
                      absl::StrCat(memory.size(), " bytes of memory"),
                      "give shadow_table_bytes(records), 8-byte aligned");
  }
  std::byte* base = memory.data();
  store32(base + offsetof(ShadowHeader, version), kShadowVersion);
  store32(base + offsetof(ShadowHeader, record_bytes), sizeof(ShadowRecord));
  store32(base + offsetof(ShadowHeader, slab_entries), kShadowSlabs);
  store32(base + offsetof(ShadowHeader, records), records);
  store64(base + offsetof(ShadowHeader, magic), kShadowMagic);
  return ShadowWriter(memory, records);
}

void ShadowWriter::set_daemon_epoch(uint64_t epoch) {
  store64(memory_.data() + offsetof(ShadowHeader, daemon_epoch), epoch);
}

absl::Status ShadowWriter::add_slab(SlabId slab, uint32_t slots) {
  const std::string asked = absl::StrCat("shadow slab ", slab.value, " of ", slots, " slots");
  std::vector<ShadowSlab> taken;
  uint32_t free_entry = kShadowSlabs;
  for (uint32_t i = 0; i < kShadowSlabs; ++i) {
    const ShadowSlab entry = load_slab(memory_, i);
    if (entry.slab == 0) free_entry = std::min(free_entry, i);
    if (entry.slab != 0) taken.push_back(entry);
    if (!slab || slots == 0 || entry.slab == slab.value) {
      return make_error(ErrorCode::kInvalidArgument, asked, "no number, no slots or there already");
    }
  }
  std::sort(taken.begin(), taken.end(), [](const ShadowSlab& a, const ShadowSlab& b) {
    return a.first_record < b.first_record;
  });
  uint32_t first = 0;  // first fit: the lowest gap that is long enough
  for (const ShadowSlab& entry : taken) {
    if (entry.first_record - first >= slots) break;
    first = entry.first_record + entry.slots;
  }
  if (free_entry == kShadowSlabs || slots > records_ - first) {
    return make_error(ErrorCode::kResourceExhausted, asked,
                      absl::StrCat(taken.size(), " slabs, ", records_, " records"),
                      "make the table larger");
  }
  for (uint32_t i = 0; i < slots; ++i) store_record(record_at(memory_, first + i), ShadowRecord{});
  std::byte* at = memory_.data() + slab_at(free_entry);
  store32(at + offsetof(ShadowSlab, first_record), first);
  store32(at + offsetof(ShadowSlab, slots), slots);
  store32(at + offsetof(ShadowSlab, slab), slab.value);  // last: from now on readers find it
  return absl::OkStatus();
}

absl::Status ShadowWriter::remove_slab(SlabId slab) {
  for (uint32_t i = 0; slab && i < kShadowSlabs; ++i) {
    if (load_slab(memory_, i).slab != slab.value) continue;
    store32(memory_.data() + slab_at(i) + offsetof(ShadowSlab, slab), 0);
    return absl::OkStatus();
  }
  return make_error(ErrorCode::kNotFound, absl::StrCat("shadow slab ", slab.value));
}

absl::Status ShadowWriter::write(const ShadowEntry& entry) {
  const absl::StatusOr<ShadowSlab> slab = find_slab(memory_, records_, entry.slot.slab);
  if (!slab.ok()) return slab.status();
  if (entry.slot.index >= slab->slots) {
    return out_of_range(entry.slot.slab, entry.slot.index, slab->slots);
  }
  store_record(record_at(memory_, slab->first_record + entry.slot.index), record_of(entry));
  return absl::OkStatus();
}

absl::StatusOr<ShadowReader> ShadowReader::open(std::span<const std::byte> memory) {
  const auto refused = [](const char* field) {
    return make_error(ErrorCode::kInvalidArgument, "shadow table", field, "do not use it");
  };
  if (memory.size() < kShadowRecordsAt ||
      reinterpret_cast<uintptr_t>(memory.data()) % alignof(ShadowRecord) != 0) {
    return refused("too short or not aligned");
  }
  const std::byte* base = memory.data();
  if (load64(base + offsetof(ShadowHeader, magic)) != kShadowMagic) return refused("magic");
  if (load32(base + offsetof(ShadowHeader, version)) != kShadowVersion) return refused("version");
  const uint32_t records = load32(base + offsetof(ShadowHeader, records));
  if (load32(base + offsetof(ShadowHeader, record_bytes)) != sizeof(ShadowRecord) ||
      load32(base + offsetof(ShadowHeader, slab_entries)) != kShadowSlabs || records == 0 ||
      records > kMaxShadowRecords || memory.size() < shadow_table_bytes(records)) {
    return refused("sizes");
  }
  return ShadowReader(memory, records);
}

uint64_t ShadowReader::daemon_epoch() const {
  return load64(memory_.data() + offsetof(ShadowHeader, daemon_epoch));
}

absl::StatusOr<uint32_t> ShadowReader::slots(SlabId slab) const {
  const absl::StatusOr<ShadowSlab> found = find_slab(memory_, records_, slab);
  if (!found.ok()) return found.status();
  return found->slots;
}

absl::StatusOr<ShadowEntry> ShadowReader::read(SlabId slab, uint32_t index) const {
  const absl::StatusOr<ShadowSlab> found = find_slab(memory_, records_, slab);
  if (!found.ok()) return found.status();
  if (index >= found->slots) return out_of_range(slab, index, found->slots);
  const std::byte* at = memory_.data() + kShadowRecordsAt +
                        size_t{found->first_record + index} * sizeof(ShadowRecord);
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    RecordWords words;
    const uint32_t before = load32(at);
    if (before % 2 != 0) continue;
    for (size_t i = 0; i < kRecordWords; ++i) words[i] = load64(at + i * sizeof(uint64_t));
    if (load32(at) != before) continue;
    ShadowRecord record;
    std::memcpy(&record, words.data(), sizeof(record));
    return entry_of(record, slab, index);
  }
  return make_error(
      {.code = ErrorCode::kUnavailable,
       .asked = absl::StrCat("shadow record of slot ", index, " of slab ", slab.value),
       .there = "it kept changing while being read",
       .todo = "read again",
       .retry_after_ms = 1});
}

}  // namespace memdecay
