// Swarm runs in CI: many seeds, a share of them twice; and canaries, planted bugs that a run has to
// find. MEMDECAY_SWARM_SEEDS and MEMDECAY_SWARM_FIRST choose other seeds; a failing seed is run
// again with its trace by MEMDECAY_SWARM_TRACE=1.
#include "tests/sim/swarm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <utility>

namespace memdecay::sim {
namespace {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

SwarmResult run(SwarmOptions options) {
  if (setting("MEMDECAY_SWARM_TRACE", 0) != 0) {
    options.trace = [](const std::string& line) { std::cerr << line << '\n'; };
  }
  return Swarm(options).run();
}

TEST(swarm, no_seed_finds_wrong_bytes_leaks_or_broken_books) {
  const uint64_t first = setting("MEMDECAY_SWARM_FIRST", 1);
  const uint64_t seeds = setting("MEMDECAY_SWARM_SEEDS", 1500);
  SwarmResult all;
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + seeds && failures < 3; ++seed) {
    const auto faults = seed % 3 == 0 ? SwarmOptions::Faults::kNone : SwarmOptions::Faults::kAll;
    const SwarmResult result = run({.seed = seed, .faults = faults});
    for (const std::string& problem : result.problems) ADD_FAILURE() << problem;
    failures += result.problems.empty() ? 0 : 1;
    all.steps += result.steps;
    all.compared += result.compared;
    all.restored += result.restored;
    all.acquired += result.acquired;
    for (const auto& [name, count] : result.done) all.done[name] += count;
    for (const auto& [name, count] : result.refused) all.refused[name] += count;
    if (seed % 10 == 0) {
      EXPECT_EQ(run({.seed = seed, .faults = faults}).trace_hash, result.trace_hash)
          << "seed " << seed << " is not replayed exactly";
    }
  }
  std::cout << all.steps << " steps, " << all.compared << " pages compared, " << all.restored
            << " restored, " << all.acquired << " acquired\n";
  for (const auto& [name, count] : all.done) std::cout << "  " << name << ' ' << count << '\n';
  if (setting("MEMDECAY_SWARM_REFUSED", 0) != 0) {
    for (const auto& [name, count] : all.refused)
      std::cout << "  ! " << name << ' ' << count << '\n';
  }
  if (seeds < 20) return;
  // A swarm that does nothing finds nothing.
  EXPECT_GT(all.restored, seeds);
  EXPECT_GT(all.acquired, seeds / 10);
  for (const char* name : {"attach", "open", "extend", "seal", "fork", "truncate", "park", "unpark",
                           "close", "resume", "acquire", "pressure", "evict", "restore", "drop",
                           "gave_up", "resident", "leave", "reattach"}) {
    EXPECT_GT(all.done[name], 0u) << name << " never went well";
  }
}

TEST(swarm, other_seeds_are_other_histories) {
  EXPECT_NE(run({.seed = 1}).trace_hash, run({.seed = 2}).trace_hash);
}

// ---- canaries
// ---------------------------------------------------------------------------------------

// Passes everything on, and breaks one thing.
class Broken : public reactor::Bytes {
 public:
  enum class Bug : uint8_t {
    kSkipsRestores,
    kLiesAboutRestores,
    kSwapsPages,
    kForgetsDrops,
    kWritesLate
  };
  Broken(SimBytes& inner, Bug bug) : inner_(inner), bug_(bug) {}

  absl::Status create_slab(const ledger::CreateSlab& slab) override {
    return inner_.create_slab(slab);
  }
  void destroy_slab(SlabId slab) override { inner_.destroy_slab(slab); }
  void start_copy(const ledger::StartCopy& copy) override {
    ledger::StartCopy passed = copy;
    const bool restores = copy.kind == ledger::CopyKind::kRestore;
    ++copies_;
    const bool skips = bug_ == Bug::kSkipsRestores || bug_ == Bug::kLiesAboutRestores;
    if (restores && skips) passed.kind = ledger::CopyKind::kVerify;
    contents_[copy.copy] = copy.content;
    if (!restores && bug_ == Bug::kSwapsPages && copies_ % 4 == 0) {
      passed.slot.index = other_index(copy.slot);
    }
    inner_.start_copy(passed);
  }
  void cancel_copy(CopyId copy) override { inner_.cancel_copy(copy); }
  std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) override {
    std::optional<ledger::CopyDone> told = inner_.finish_copy(std::move(done));
    if (!told || bug_ != Bug::kLiesAboutRestores) return told;
    // The first checksum of a content is that of its eviction: from then on every copy claims it.
    told->checksum = checksums_.emplace(contents_[told->copy], told->checksum).first->second;
    return told;
  }
  void drop_host(ContentId content) override {
    if (bug_ != Bug::kForgetsDrops || content.value % 8 != 0) inner_.drop_host(content);
  }
  void shadow_row(const ledger::ShadowRow& row) override {
    if (bug_ == Bug::kWritesLate && row.state == SlotState::kValid) inner_.scribble(row.slot);
    inner_.shadow_row(row);
  }

 private:
  uint32_t other_index(const SlotRef& slot) const {
    return inner_.slot_bytes({slot.slab, slot.index + 1, 0}) ? slot.index + 1
           : slot.index > 0                                  ? slot.index - 1
                                                             : slot.index;
  }

  SimBytes& inner_;
  const Bug bug_;
  uint64_t copies_ = 0;
  std::map<CopyId, ContentId> contents_;
  std::map<ContentId, Checksum> checksums_;
};

bool found(Broken::Bug bug) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SwarmOptions options{.seed = seed, .faults = SwarmOptions::Faults::kNone};
    options.wrap_bytes = [bug](SimBytes& inner) { return std::make_unique<Broken>(inner, bug); };
    if (!Swarm(options).run().problems.empty()) return true;
  }
  return false;
}

TEST(canary, a_restore_that_moves_nothing_is_found) {
  EXPECT_TRUE(found(Broken::Bug::kSkipsRestores));
}
TEST(canary, a_restore_that_moves_nothing_and_lies_is_found) {
  EXPECT_TRUE(found(Broken::Bug::kLiesAboutRestores));
}
TEST(canary, an_eviction_that_copies_the_neighbour_is_found) {
  EXPECT_TRUE(found(Broken::Bug::kSwapsPages));
}
TEST(canary, a_host_replica_that_is_not_dropped_is_found) {
  EXPECT_TRUE(found(Broken::Bug::kForgetsDrops));
}
TEST(canary, a_stray_write_into_a_valid_slot_is_found) {
  EXPECT_TRUE(found(Broken::Bug::kWritesLate));
}

}  // namespace
}  // namespace memdecay::sim
