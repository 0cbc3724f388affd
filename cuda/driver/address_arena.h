// AddressArena: which parts of one reserved range of device addresses are taken. First fit, in
// whole granules; neighbours that come back are joined.
// Thread: one owner. Invariant: free ranges are disjoint, not adjacent, inside the reservation.
// Not here: reserving and mapping (driver_device.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace memdecay::cuda {

struct AddressRange {
  uint64_t base = 0;
  uint64_t bytes = 0;
  bool contains(uint64_t address) const { return address - base < bytes; }
};

class AddressArena {
 public:
  explicit AddressArena(AddressRange whole) : free_{{whole.base, whole.bytes}} {}

  // Nothing: no free range is that long.
  std::optional<uint64_t> take(uint64_t bytes);
  // What take() gave, whole.
  void give_back(uint64_t address, uint64_t bytes);

 private:
  std::map<uint64_t, uint64_t> free_;  // address → bytes
};

}  // namespace memdecay::cuda
