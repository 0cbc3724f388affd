// See shadow_file.h.
#include "daemon/tiers/shadow_file.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "cuda/sealed_memory.h"
#include "proto/contract/error.h"

namespace memdecay::tiers {
namespace {

absl::Status failed(std::string asked) {
  return make_error(ErrorCode::kResourceExhausted, std::move(asked), std::strerror(errno));
}

}  // namespace

absl::StatusOr<ShadowFile> ShadowFile::create(uint32_t records) {
  if (records == 0 || records > kMaxShadowRecords) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a shadow table of " + std::to_string(records) + " records");
  }
  const size_t bytes = shadow_table_bytes(records);
  UniqueFd file = cuda::create_sealed_memory("memdecay-shadow", bytes, cuda::Prefault::kNo);
  if (!file) return failed("create a shadow table");
  std::optional<cuda::Mapping> mapping =
      cuda::map_sealed_memory(file.get(), bytes, cuda::Access::kReadWrite, cuda::Prefault::kNo);
  if (!mapping) return failed("map a shadow table");
  absl::StatusOr<ShadowWriter> writer = ShadowWriter::format(mapping->host_bytes(), records);
  if (!writer.ok()) return writer.status();
  return ShadowFile(std::move(file), *std::move(mapping), *writer);
}

absl::StatusOr<UniqueFd> ShadowFile::share() const {
  UniqueFd reopened = cuda::reopen_read_only(file_.get());
  if (!reopened) return failed("share a shadow table");
  return reopened;
}

}  // namespace memdecay::tiers
