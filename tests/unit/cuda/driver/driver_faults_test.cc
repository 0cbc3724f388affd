// Every driver call that a page's life makes, failed at its first, a middle and its last use, once
// with an error that passes and once with one that breaks the context. Whatever fails: an error
// comes back as a status, no wrong byte is taken for a right one, nothing hangs, and nothing is
// left in the driver that it could have given back. The table of call and outcome is printed.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/checksum.h"
#include "proto/contract/error.h"
#include "tests/contract/completions.h"
#include "tests/support/fakecuda/fixture.h"

namespace memdecay::cuda {
namespace {

// Calls that are made to give something back: when they fail, what they were to give back stays.
bool gives_back(const std::string& call) {
  for (const char* name :
       {"cuMemUnmap", "cuMemRelease", "cuMemAddressFree", "cuStreamDestroy", "cuEventDestroy",
        "cuMemFreeHost", "cuDevicePrimaryCtxRelease", "cuCtxSetCurrent"}) {
    if (call == name) return true;
  }
  return false;
}

class DriverFaults : public OnFakeDriver {
 protected:
  struct Outcome {
    int errors = 0;       // statuses that were not ok
    int wrong_bytes = 0;  // of moves that were answered with ok
    ErrorCode first = ErrorCode::kOk;

    void note(const absl::Status& status) {
      if (status.ok()) return;
      if (errors++ == 0) first = error_code(status);
    }
  };

  static std::optional<MoveCompletion> move(Device& device, const MoveRequest& request,
                                            Outcome& outcome) {
    Completions completions;
    const auto mover = device.create_mover({}, completions.callback());
    if (!mover.ok()) {
      outcome.note(mover.status());
      return std::nullopt;
    }
    EXPECT_TRUE((*mover)->submit(request).ok());
    const MoveCompletion done = completions.await(1).front();
    outcome.note(done.status);
    if (!done.status.ok()) return std::nullopt;
    return done;
  }

  // Two slabs, one of them shared; bytes go up, across, over to the importer and down again.
  static Outcome life() {
    Outcome outcome;
    auto owner = open(8 * kGranule);
    auto importer = open(0);
    outcome.note(owner.status());
    outcome.note(importer.status());
    if (!owner.ok() || !importer.ok()) return outcome;
    for (int round = 0; round < 2; ++round) share_and_move(**owner, **importer, outcome);
    return outcome;
  }

  static void share_and_move(Device& owner, Device& importer, Outcome& outcome) {
    constexpr uint64_t kBytes = 5 * kGranule / 2;  // two chunks
    static const Bytes bytes = pattern(3, kBytes);
    const auto first = owner.create_slab(3 * kGranule);
    const auto second = owner.create_slab(3 * kGranule);
    outcome.note(first.status());
    outcome.note(second.status());
    if (!first.ok() || !second.ok()) return;
    auto descriptor = owner.export_slab(*second, Access::kReadOnly);
    outcome.note(descriptor.status());
    const bool written =
        move(owner, {.from = bytes.data(), .to = first->address(), .bytes = kBytes}, outcome) &&
        move(owner,
             {.from = first->address(),
              .to = second->address(),
              .bytes = kBytes,
              .checksum = ChecksumMode::kTake},
             outcome);
    if (!descriptor.ok() || !written) return;
    const auto mapping = importer.map(*std::move(descriptor), second->bytes(), Access::kReadOnly);
    outcome.note(mapping.status());
    if (!mapping.ok()) return;
    Bytes back(kBytes);
    const auto done = move(importer,
                           {.from = mapping->address(),
                            .to = back.data(),
                            .bytes = kBytes,
                            .checksum = ChecksumMode::kTake},
                           outcome);
    if (!done) return;
    const bool right =
        std::equal(back.begin(), back.end(), bytes.begin()) && done->checksum == checksum_of(back);
    outcome.wrong_bytes += right ? 0 : 1;
  }

  static std::map<std::string, uint64_t> calls_of_a_life() {
    configure("");
    const Outcome outcome = life();
    EXPECT_EQ(outcome.errors, 0);
    std::map<std::string, uint64_t> calls;
    std::stringstream table(fakecuda_call_table());
    std::string name;
    uint64_t count = 0;
    while (table >> name >> count) calls[name] = count;
    return calls;
  }

  static void sweep(const std::string& call, uint64_t number, const std::string& words,
                    const char* kind) {
    configure("seed=" + std::to_string(number) + " " + words);
    const Outcome outcome = life();
    EXPECT_EQ(outcome.wrong_bytes, 0) << words;
    const std::string left = fakecuda_leaks();
    if (!gives_back(call)) {
      EXPECT_EQ(left, "") << words;
    }
    std::printf("%-38s %5llu  %-7s %-20s %s\n", call.c_str(),
                static_cast<unsigned long long>(number), kind,
                std::string(error_name(outcome.first)).c_str(), left.c_str());
    fakecuda_forget();
  }
};

TEST_F(DriverFaults, each_call_fails_at_its_first_middle_and_last_use) {
  const std::map<std::string, uint64_t> calls = calls_of_a_life();
  EXPECT_GE(calls.size(), 28u);
  for (const auto& [call, count] : calls) {
    if (call == "cuGetErrorName") continue;  // asked after a failure only
    for (const uint64_t number : std::set<uint64_t>{1, (count + 1) / 2, count}) {
      const std::string at = call + ":" + std::to_string(number);
      sweep(call, number, "fail=" + at + ":1", "passing");
      if (!gives_back(call) && call != "cuGetProcAddress") {
        sweep(call, number, "sticky=" + at, "sticky");
      }
    }
  }
}

}  // namespace
}  // namespace memdecay::cuda
