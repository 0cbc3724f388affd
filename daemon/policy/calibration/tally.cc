// Sums by cell (see tally.h).
#include "daemon/policy/calibration/tally.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace memdecay::calibration {
namespace {

// Steps, distances and ages beyond 2^23 share the last bucket.
constexpr size_t kLastBucket = kBuckets - 1;

uint32_t key_of(size_t time, size_t region, size_t age, size_t distance) {
  return static_cast<uint32_t>(((time * kRegions + region) * kBuckets + age) * kBuckets + distance);
}

}  // namespace

uint64_t bucket_first(size_t bucket) {
  if (bucket < 2) return bucket;
  const uint64_t octave = uint64_t{1} << (bucket / 2);
  if (bucket % 2 == 0) return octave;
  // ceil(octave * sqrt(2))
  return static_cast<uint64_t>(std::ceil(static_cast<double>(octave) * std::sqrt(2.0)));
}

size_t bucket_of(uint64_t value) {
  if (value < 2) return static_cast<size_t>(value);
  const auto octave = static_cast<size_t>(std::bit_width(value) - 1);
  const size_t upper = 2 * octave + 1;
  const size_t bucket = upper <= kLastBucket && value >= bucket_first(upper) ? upper : upper - 1;
  return std::min(bucket, kLastBucket);
}

double bucket_middle(size_t bucket) {
  const uint64_t first = bucket_first(bucket);
  const uint64_t next = bucket_first(bucket + 1);
  return static_cast<double>(first + std::max(next, first + 1) - 1) / 2;
}

void Tally::add(const Seen& seen) {
  if (seen.kind != Seen::Queries::kDecode || seen.ages != Seen::Ages::kKnown) return;
  const size_t group = static_cast<size_t>(seen.family - 1) % kGroups;
  if (groups_.size() <= group) groups_.resize(group + 1);
  Open& open = groups_[group];
  uint64_t uncounted = 0;
  const bool counts = open.regions_of.size() < kCounted || open.regions_of.contains(seen.session);
  uint64_t& regions = counts ? open.regions_of[seen.session] : uncounted;
  const size_t time = bucket_of(seen.step);
  for (const PageLift& page : seen.pages) {
    if (page.region >= kRegions) continue;
    regions |= uint64_t{1} << page.region;
    Sums& sums =
        open.cells[key_of(time, page.region, bucket_of(page.age), bucket_of(page.distance))];
    ++views_[page.region];
    sums.tokens += page.tokens;
    sums.lift += page.relative * page.tokens;
  }
}

std::vector<Group> Tally::groups() const {
  std::vector<Group> out;
  for (const Open& open : groups_) {
    if (open.regions_of.empty()) continue;
    Group group;
    group.sessions = open.regions_of.size();
    for (const auto& [session, regions] : open.regions_of) {
      for (size_t region = 0; region < kRegions; ++region) {
        group.sessions_with[region] += (regions >> region & 1) != 0;
      }
    }
    std::vector<uint32_t> keys;
    for (const auto& [key, sums] : open.cells) keys.push_back(key);
    std::sort(keys.begin(), keys.end());  // one order, whatever the hash: sums are the same
    for (const uint32_t key : keys) {
      const Sums& sums = open.cells.at(key);
      Cell cell;
      cell.distance = static_cast<uint8_t>(key % kBuckets);
      cell.age = static_cast<uint8_t>(key / kBuckets % kBuckets);
      cell.region = static_cast<uint8_t>(key / kBuckets / kBuckets % kRegions);
      cell.time = static_cast<uint8_t>(key / kBuckets / kBuckets / kRegions);
      cell.tokens = sums.tokens;
      cell.lift = sums.lift;
      group.cells.push_back(cell);
    }
    out.push_back(std::move(group));
  }
  return out;
}

}  // namespace memdecay::calibration
