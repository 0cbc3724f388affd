// The numbers of the paper and of the trial on a real model. Sources: options.h.
// Thread: pure functions.
#include "daemon/policy/options.h"

#include <algorithm>

#include "absl/types/span.h"

namespace memdecay::policy {

std::vector<RegionParameters> default_regions() {
  std::vector<RegionParameters> regions(kBuiltInRegions);
  regions[region_id(Region::kSystem)] = {.b = 1.0, .half_life_tokens = 148.0};
  regions[region_id(Region::kPlan)] = {.b = 0.9, .half_life_tokens = 44.0};
  regions[region_id(Region::kUser)] = {.b = 0.6, .half_life_tokens = 31.0};
  regions[region_id(Region::kToolIn)] = {.b = 0.4, .half_life_tokens = 22.0};
  regions[region_id(Region::kToolOut)] = {.b = 0.6, .half_life_tokens = 37.0};
  regions[region_id(Region::kRetrieval)] = {.b = 0.4, .half_life_tokens = 76.0};
  regions[region_id(Region::kScratchpad)] = {.b = 0.4, .half_life_tokens = 14.0};
  return regions;
}

namespace {

// By bins, the last one for all that follow.
DistanceTable table_of(absl::Span<const double> bins) {
  DistanceTable table;
  table.fill(bins.back());
  std::copy(bins.begin(), bins.end(), table.begin());
  return table;
}

// SmolLM2-135M-Instruct, ~1,650 tokens, prefill and decode; regions are alike within 1.5.
//                                  0    2    4    8    16   32   64   128   256  512  1,024
constexpr double kAllHeads[] = {7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 1.6, 0.75, 0.5, 0.4, 0.35};
constexpr double kChosenHeads[] = {1.6, 1.6, 1.6, 1.6, 1.6, 4.0, 2.5, 1.2, 0.8, 0.5, 0.35};
constexpr double kNoExpectation[] = {1.0};

}  // namespace

DistanceTable ExpectedLift::of(RegionId region) const {
  const auto own = regions.find(region);
  if (own != regions.end()) return own->second;
  switch (table) {
    case Table::kShipped:
      return table_of(kAllHeads);
    case Table::kOne:
      return table_of(kNoExpectation);
    case Table::kShippedHeads:
      return table_of(kChosenHeads);
    case Table::kGiven:
      return given;
  }
  return given;
}

}  // namespace memdecay::policy
