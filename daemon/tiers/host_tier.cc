// See host_tier.h. In memory a record is named by its content's id (a "private" header): nobody
// outside this process reads it, and an id is never given twice.
#include "daemon/tiers/host_tier.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/checksum.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/layout.h"
#include "proto/contract/page_header.h"

namespace memdecay::tiers {
namespace {

constexpr uint64_t kAlignment = 64;

absl::Status no_replica(ContentId content) {
  return make_error(ErrorCode::kNotFound, absl::StrCat("host replica of content ", content.value));
}

PageHeader header_of(const HostTier::Record& record, ContentId content) {
  PageHeader header;
  header.session = SessionId{content.value};
  header.tokens = 1;  // this tier does not know; the format wants a number
  header.page_bytes = record.page_bytes;
  header.generation = record.place.generation;
  return header;
}

}  // namespace

uint64_t HostTier::record_bytes(uint64_t page_bytes) {
  return (kPageHeaderBytes + page_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::byte* HostTier::Record::page() const { return place.address + kPageHeaderBytes; }

Arena& HostTier::arena(uint64_t page_bytes) {
  const uint64_t stride = record_bytes(page_bytes);
  return arenas_.try_emplace(stride, stride, options_.chunk_bytes).first->second;
}

absl::StatusOr<HostTier::Record> HostTier::reserve(uint64_t page_bytes) {
  if (page_bytes == 0 || page_bytes > kMaxPageBytes) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("a page of ", page_bytes, " bytes"));
  }
  const uint64_t bytes = record_bytes(page_bytes);
  if (options_.limit_bytes != 0 && bytes > options_.limit_bytes - used_bytes_) {
    return make_error(ErrorCode::kResourceExhausted, absl::StrCat(bytes, " bytes in the host tier"),
                      absl::StrCat(used_bytes_, " of ", options_.limit_bytes, " are used"),
                      "raise host.bytes or drop pages");
  }
  absl::StatusOr<Arena::Place> place = arena(page_bytes).take();
  if (!place.ok()) return place.status();
  used_bytes_ += bytes;
  return Record{*place, page_bytes};
}

void HostTier::free(const Record& record) {
  arena(record.page_bytes).give_back(record.place);
  used_bytes_ -= record_bytes(record.page_bytes);
}

void HostTier::commit(const Record& record, ContentId content, const Checksum& checksum) {
  PageHeader header = header_of(record, content);
  header.checksum = cuda::replica_checksum(header, checksum);
  const PageHeaderImage image = encode_page_header(header);
  std::memcpy(record.place.address, image.data(), image.size());
  drop(content);
  replicas_.emplace(content, Replica{.record = record});
}

void HostTier::abandon(const Record& record) { free(record); }

// The stored checksum of a header that is what commit() wrote; none if it is damaged.
std::optional<Checksum> HostTier::expected(const Record& record, ContentId content) const {
  const absl::StatusOr<PageHeader> stored =
      decode_page_header(std::span(record.place.address, kPageHeaderBytes));
  if (!stored.ok()) return std::nullopt;
  PageHeader wanted = header_of(record, content);
  wanted.checksum = stored->checksum;
  if (!(*stored == wanted)) return std::nullopt;
  return stored->checksum;
}

absl::Status HostTier::damaged(ContentId content) {
  ++checksum_failures_;
  return make_error(ErrorCode::kDataLoss, absl::StrCat("host replica of content ", content.value),
                    "its checksum does not match", "recompute the page");
}

absl::StatusOr<HostTier::Record> HostTier::begin_read(ContentId content) {
  const auto at = replicas_.find(content);
  if (at == replicas_.end()) return no_replica(content);
  if (!expected(at->second.record, content)) {
    forget(at);
    return damaged(content);
  }
  ++at->second.readers;
  return at->second.record;
}

absl::Status HostTier::end_read(const Record& record, ContentId content,
                                std::optional<Checksum> taken) {
  absl::Status status;
  if (taken) {
    const std::optional<Checksum> stored = expected(record, content);
    const PageHeader header = header_of(record, content);
    if (!stored || cuda::replica_checksum(header, *taken) != *stored) status = damaged(content);
  }
  const auto leaving = leaving_.find(record.place.address);
  if (leaving != leaving_.end()) {  // dropped while it was read
    if (--leaving->second == 0) {
      leaving_.erase(leaving);
      free(record);
    }
    return status;
  }
  const auto at = replicas_.find(content);
  MEMDECAY_CHECK(at != replicas_.end() && at->second.readers > 0);
  --at->second.readers;
  if (!status.ok()) forget(at);
  return status;
}

void HostTier::forget(absl::flat_hash_map<ContentId, Replica>::iterator at) {
  const Replica replica = at->second;
  replicas_.erase(at);
  if (replica.readers == 0) {
    free(replica.record);
  } else {
    leaving_.emplace(replica.record.place.address, replica.readers);
  }
}

void HostTier::drop(ContentId content) {
  const auto at = replicas_.find(content);
  if (at != replicas_.end()) forget(at);
}

absl::Status HostTier::flip_bit(ContentId content, uint64_t bit) {
  const auto at = replicas_.find(content);
  if (at == replicas_.end()) return no_replica(content);
  const Record& record = at->second.record;
  if (bit >= record.page_bytes * 8) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("bit ", bit),
                      absl::StrCat("a page of ", record.page_bytes, " bytes"));
  }
  record.page()[bit / 8] ^= std::byte{1} << (bit % 8);
  return absl::OkStatus();
}

absl::Status HostTier::zero(ContentId content) {
  const auto at = replicas_.find(content);
  if (at == replicas_.end()) return no_replica(content);
  std::fill_n(at->second.record.page(), at->second.record.page_bytes, std::byte{0});
  return absl::OkStatus();
}

}  // namespace memdecay::tiers
