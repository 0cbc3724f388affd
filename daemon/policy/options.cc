// The numbers of the paper and of the trial on a real model. Sources: options.h.
// Thread: pure functions.
#include "daemon/policy/options.h"

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

DistanceTable shipped_expected_lift() {
  // Mean lift by distance of SmolLM2-135M-Instruct, all heads; regions are alike within 1.5.
  DistanceTable table;
  table.fill(0.35);                                                          // 1,024 and beyond
  for (int bin = 0; bin <= 5; ++bin) table[static_cast<size_t>(bin)] = 7.0;  // nearer than 64
  table[6] = 1.6;                                                            // 64–127
  table[7] = 0.75;
  table[8] = 0.5;
  table[9] = 0.4;  // 512–1,023
  return table;
}

}  // namespace memdecay::policy
