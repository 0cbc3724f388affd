// Page slots in ordinary memory, for one sequence: what a daemon would own.
//
// Slots lie apart at odd distances, so that nothing can depend on their addresses.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "adapters/reference/kv_page.h"

namespace memdecay::reference {

class HostPages {
 public:
  HostPages(const KvLayout& layout, size_t pages) : layout_(layout) {
    for (size_t page = 0; page < pages; ++page) add_slot();
  }

  PageTable table() const { return {read_, write_}; }

  std::vector<std::byte> copy_out(size_t page) const {
    return {read_[page], read_[page] + layout_.page_bytes()};
  }
  // The slot gets bytes that would spoil every sum, and the page is gone.
  void give_up(size_t page) {
    std::memset(write_[page], 0xff, layout_.page_bytes());
    write_[page] = nullptr;
    read_[page] = nullptr;
  }
  // Into another slot than before.
  void restore(size_t page, const std::vector<std::byte>& bytes) {
    slots_.push_back(std::make_unique<std::byte[]>(layout_.page_bytes() + 64));
    std::byte* at = slots_.back().get() + 6;  // halves stay aligned, vectors do not
    std::memcpy(at, bytes.data(), bytes.size());
    read_[page] = at;
    write_[page] = at;
  }
  void move(size_t page) {
    const std::vector<std::byte> bytes = copy_out(page);
    give_up(page);
    restore(page, bytes);
  }
  void hide(size_t page) { read_[page] = nullptr; }

 private:
  void add_slot() {
    slots_.push_back(std::make_unique<std::byte[]>(layout_.page_bytes()));
    read_.push_back(slots_.back().get());
    write_.push_back(slots_.back().get());
  }

  KvLayout layout_;
  std::vector<std::unique_ptr<std::byte[]>> slots_;
  std::vector<const std::byte*> read_;
  std::vector<std::byte*> write_;
};

}  // namespace memdecay::reference
