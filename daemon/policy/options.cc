// The numbers of the paper and of the trial on a real model. Sources: options.h.
// Thread: pure functions.
#include "daemon/policy/options.h"

#include <algorithm>

#include "absl/types/span.h"

namespace memdecay::policy {

std::vector<RegionParameters> default_regions() {
  std::vector<RegionParameters> regions(kBuiltInRegions);
  regions[region_id(Region::kSystem)] = {.b = 1.0, .half_life = 148.0};
  regions[region_id(Region::kPlan)] = {.b = 0.9, .half_life = 44.0};
  regions[region_id(Region::kUser)] = {.b = 0.6, .half_life = 31.0};
  regions[region_id(Region::kToolIn)] = {.b = 0.4, .half_life = 22.0};
  regions[region_id(Region::kToolOut)] = {.b = 0.6, .half_life = 37.0};
  regions[region_id(Region::kRetrieval)] = {.b = 0.4, .half_life = 76.0};
  regions[region_id(Region::kScratchpad)] = {.b = 0.4, .half_life = 14.0};
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

// SmolLM2-135M-Instruct: mean lift of the queries of generated tokens, 32 episodes of ~1,790 tokens
// (tests/eval, set tune), by the first token distance of each bin. Nearer than 32 it is steeper;
// but those are the recent pages, which stay anyway, and in a short session they would be the mean.
//                                    0     2     4     8     16    32    64    128   256   512
//                                    1,024
constexpr double kLateLayers[] = {7.57, 7.57, 7.57, 7.57, 7.57, 4.48, 3.05, 1.86, .943, .488, .304};
constexpr double kChosenHeads[] = {3.92, 3.92, 3.92, 3.92, 3.92, 2.8, 2.44, 1.99, 1.22, .628, .465};
constexpr double kNoExpectation[] = {1.0};

}  // namespace

DistanceTable ExpectedLift::of(RegionId region) const {
  const auto own = regions.find(region);
  if (own != regions.end()) return own->second;
  switch (table) {
    case Table::kShipped:
      return table_of(kLateLayers);
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
