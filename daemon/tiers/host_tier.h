// HostTier: replicas of sealed pages in this process's memory, found by the content's id. A replica
// lies behind a page header (proto/contract/page_header.h) whose checksum covers header and bytes;
// it is verified on every read, and one that fails leaves at once.
// Writing and reading are two calls each, with the copy (a mover's) between them: reserve → commit
// or abandon, begin_read → end_read.
// Thread: one owner (the reactor's); movers touch only the bytes of places that are handed out.
// Invariants: one replica a content; used_bytes() == records in use (headers included, dropped ones
// with a reader too) <= limit; a place is not used again before its last reader has ended.
// Not here: which replica stays (ledger), copies (copier).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/limits.h"
#include "daemon/tiers/arena.h"
#include "proto/contract/ids.h"

namespace memdecay::tiers {

struct HostTierOptions {
  uint64_t limit_bytes = 0;  // records, headers included; 0: whoever asks keeps the limit
  uint64_t chunk_bytes = base::limits::kHostChunkBytes;
};

class HostTier {
 public:
  explicit HostTier(HostTierOptions options) : options_(options) {}
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  // What one replica takes: header and page, aligned to a cache line.
  static uint64_t record_bytes(uint64_t page_bytes);

  // A place that is being written or read; `page` is where the page's bytes are.
  struct Record {
    Arena::Place place;
    uint64_t page_bytes = 0;
    std::byte* page() const;
  };

  // ---- writing
  // ------------------------------------------------------------------------------------
  // resource_exhausted: the limit or the machine; invalid_argument: no page size.
  absl::StatusOr<Record> reserve(uint64_t page_bytes);
  // The bytes are in place and have this checksum: from now on they are the content's replica; an
  // earlier one is dropped.
  void commit(const Record& record, ContentId content, const Checksum& checksum);
  void abandon(const Record& record);

  // ---- reading
  // ------------------------------------------------------------------------------------ not_found;
  // data_loss: the header is damaged (the replica is gone then). The bytes stay where they are
  // until end_read.
  absl::StatusOr<Record> begin_read(ContentId content);
  // `taken`: the checksum of the bytes that were read, none if nothing was. data_loss: they are not
  // what was committed; the replica is gone then.
  absl::Status end_read(const Record& record, ContentId content, std::optional<Checksum> taken);

  // Forgets the replica; unknown contents are ignored.
  void drop(ContentId content);

  bool contains(ContentId content) const { return replicas_.contains(content); }
  size_t replicas() const { return replicas_.size(); }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t limit_bytes() const { return options_.limit_bytes; }
  uint64_t checksum_failures() const { return checksum_failures_; }

  // ---- damage, for tests and the lab. not_found; out_of_range
  // ---------------------------------------
  absl::Status flip_bit(ContentId content, uint64_t bit);  // of the page's bytes
  absl::Status zero(ContentId content);

 private:
  struct Replica {
    Record record;
    uint32_t readers = 0;
  };

  Arena& arena(uint64_t page_bytes);
  void free(const Record& record);
  // The replica leaves the index; its place is freed now or by its last reader.
  void forget(absl::flat_hash_map<ContentId, Replica>::iterator at);
  absl::Status damaged(ContentId content);
  std::optional<Checksum> expected(const Record& record, ContentId content) const;

  const HostTierOptions options_;
  std::map<uint64_t, Arena> arenas_;  // by record_bytes
  absl::flat_hash_map<ContentId, Replica> replicas_;
  absl::flat_hash_map<const std::byte*, uint32_t> leaving_;  // dropped places: readers left
  uint64_t used_bytes_ = 0;
  uint64_t checksum_failures_ = 0;
};

}  // namespace memdecay::tiers
