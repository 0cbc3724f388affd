// ShadowFile: a shadow table (proto/contract/shadow_table.h) in a sealed memfd, written by the
// daemon and handed out read-only. One a tenant: what lies in whose slots is nobody else's
// business. Thread: one writer; share() from the same.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "proto/contract/shadow_table.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::tiers {

class ShadowFile {
 public:
  // resource_exhausted: no memory or descriptors; invalid_argument: no or too many records.
  static absl::StatusOr<ShadowFile> create(uint32_t records);

  ShadowWriter& writer() { return writer_; }
  // A descriptor that cannot be mapped writable, close-on-exec.
  absl::StatusOr<UniqueFd> share() const;
  uint64_t bytes() const { return mapping_.bytes(); }

 private:
  ShadowFile(UniqueFd file, cuda::Mapping mapping, ShadowWriter writer)
      : file_(std::move(file)), mapping_(std::move(mapping)), writer_(writer) {}

  UniqueFd file_;
  cuda::Mapping mapping_;
  ShadowWriter writer_;
};

}  // namespace memdecay::tiers
