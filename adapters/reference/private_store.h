// Pages in the process's own memory: as many as are asked for, for ever.
//
// Why: the yardstick. A run over this store is the run with unlimited memory that all others must
// equal, and the decode step without a daemon.
// Thread: as page_store.h.
// Not here: anything that takes a page away.
#pragma once

#include <memory>
#include <vector>

#include "adapters/reference/page_store.h"

namespace memdecay::reference {

class PrivateStore final : public PageStore {
 public:
  explicit PrivateStore(const KvLayout& layout) : layout_(layout) {}

  absl::Status extend(uint32_t pages) override;
  absl::Status begin_step() override { return absl::OkStatus(); }
  absl::StatusOr<PageTable> table() override { return PageTable{read_, write_}; }
  Masses masses_wanted(Work) const override { return Masses::kIgnored; }
  absl::Status seal(PageIndex, std::span<const TokenId>, Holes) override {
    return absl::OkStatus();
  }
  absl::Status end_step(const StepReport&) override { return absl::OkStatus(); }
  absl::Status truncate(size_t tokens) override;
  absl::Status tag(std::span<const PageTag>) override { return absl::OkStatus(); }
  absl::Status park(SessionState) override { return absl::OkStatus(); }
  absl::Status unpark() override { return absl::OkStatus(); }
  absl::Status await_pages() override { return absl::OkStatus(); }
  absl::StatusOr<PageCounts> counts() override;

 private:
  KvLayout layout_;
  std::vector<std::unique_ptr<std::byte[]>> slots_;
  std::vector<const std::byte*> read_;
  std::vector<std::byte*> write_;
};

}  // namespace memdecay::reference
