// What things cost: slabs by size, and moves by size through a mover. Each figure is the least of
// several tries, in microseconds or bytes a second, measured in this run.
#include <algorithm>
#include <chrono>
#include <vector>

#include "cuda/blocking_mover.h"
#include "tests/gpu/checks.h"

namespace memdecay::gpu {
namespace {

using std::chrono::steady_clock;

constexpr int kTries = 5;
constexpr uint64_t kMiB = uint64_t{1} << 20;

template <typename Work>
double microseconds(const Work& work) {
  const auto begin = steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
}

absl::Status operations(const Target& target, Json& report) {
  report["unit"] = "microseconds, least of 5";
  for (const uint64_t bytes : {2 * kMiB, 64 * kMiB, 512 * kMiB}) {
    const auto owner = target.device(bytes);
    const auto importer = target.device(0);
    if (!owner.ok()) return owner.status();
    if (!importer.ok()) return importer.status();
    double create = 1e12;
    double share = 1e12;
    double map = 1e12;
    double unmap = 1e12;
    double destroy = 1e12;
    for (int i = 0; i < kTries; ++i) {
      absl::StatusOr<cuda::Slab> slab = absl::UnknownError("");
      create = std::min(create, microseconds([&] { slab = (*owner)->create_slab(bytes); }));
      if (!slab.ok()) {
        report[std::to_string(bytes)] = word_of(slab.status());
        break;
      }
      absl::StatusOr<cuda::Fd> fd = absl::UnknownError("");
      share = std::min(share, microseconds([&] {
                         fd = (*owner)->export_slab(*slab, cuda::Access::kReadWrite);
                       }));
      if (!fd.ok()) return fd.status();
      absl::StatusOr<cuda::Mapping> mapping = absl::UnknownError("");
      map = std::min(map, microseconds([&] {
                       mapping = (*importer)->map(*std::move(fd), bytes, cuda::Access::kReadWrite);
                     }));
      if (!mapping.ok()) return mapping.status();
      unmap = std::min(unmap, microseconds([&] { mapping->reset(); }));
      destroy = std::min(destroy, microseconds([&] { slab->reset(); }));
    }
    if (report.contains(std::to_string(bytes))) continue;
    report[std::to_string(bytes)] = {{"create_and_clear", create},
                                     {"export", share},
                                     {"import_and_map", map},
                                     {"unmap", unmap},
                                     {"destroy", destroy}};
  }
  return absl::OkStatus();
}

absl::Status moves(const Target& target, Json& report) {
  constexpr uint64_t kMost = 64 * kMiB;
  const auto device = target.device(2 * kMost);
  if (!device.ok()) return device.status();
  const auto slab = (*device)->create_slab(2 * kMost);
  if (!slab.ok()) return slab.status();
  cuda::BlockingMover mover([&](cuda::MoverOptions options, cuda::MoverCallback completed) {
    return (*device)->create_mover(options, std::move(completed));
  });
  std::vector<std::byte> host(kMost, std::byte{1});
  std::byte* const there = slab->address();
  report["unit"] = "bytes a second, best of 5, pageable host memory through the mover's buffers";
  for (uint64_t bytes = 64 << 10; bytes <= kMost; bytes *= 4) {
    absl::Status status;
    const auto rate = [&](const cuda::MoveRequest& request) {
      double least = 1e12;
      for (int i = 0; i < kTries; ++i) {
        least = std::min(least, microseconds([&] { status.Update(mover.run(request).status); }));
      }
      return static_cast<double>(bytes) / least * 1e6;
    };
    report[std::to_string(bytes)] = {
        {"to_device", rate({.from = host.data(), .to = there, .bytes = bytes})},
        {"to_host", rate({.from = there, .to = host.data(), .bytes = bytes})},
        {"on_device", rate({.from = there, .to = there + kMost, .bytes = bytes})}};
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Check> time_checks() {
  return {{"operations", "what slabs cost by size", operations},
          {"moves", "how fast a mover moves by size", moves}};
}

}  // namespace memdecay::gpu
