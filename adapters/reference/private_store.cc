// Plain allocations, one a page; see private_store.h. Also the names of phases (page_store.h).
#include "adapters/reference/private_store.h"

namespace memdecay::reference {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kGrant:
      return "grant";
    case Phase::kWrite:
      return "write";
    case Phase::kSeal:
      return "seal";
    case Phase::kAcknowledge:
      return "acknowledge";
    case Phase::kRestore:
      return "restore";
  }
  return "unknown";
}

absl::Status PrivateStore::extend(uint32_t pages) {
  for (uint32_t i = 0; i < pages; ++i) {
    slots_.push_back(std::make_unique<std::byte[]>(layout_.page_bytes()));
    read_.push_back(slots_.back().get());
    write_.push_back(slots_.back().get());
  }
  return absl::OkStatus();
}

absl::Status PrivateStore::truncate(size_t tokens) {
  const size_t pages = tokens / layout_.page_tokens;
  if (pages >= slots_.size()) return absl::OkStatus();
  slots_.resize(pages);
  read_.resize(pages);
  write_.resize(pages);
  return absl::OkStatus();
}

absl::StatusOr<PageCounts> PrivateStore::counts() {
  const auto pages = static_cast<uint32_t>(slots_.size());
  return PageCounts{.pages = pages, .resident = pages};
}

}  // namespace memdecay::reference
