// memdecay-gpu-check: runs checks and prints a line of JSON for each. Exit 0: every check could be
// made, whatever it found; 1: one could not; 77: there is no device, which run.sh says loudly.
// Thread: main's.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/driver_device.h"
#include "proto/contract/error.h"
#include "tests/gpu/checks.h"

namespace memdecay::gpu {

absl::StatusOr<std::unique_ptr<cuda::Device>> Target::device(uint64_t limit_bytes) const {
  return cuda::create_driver_device({.uuid = uuid, .limit_bytes = limit_bytes, .library = library});
}

std::string word_of(const absl::Status& status) {
  return status.ok() ? std::string("ok") : error_detail(status).there;
}

namespace {

constexpr int kNoDevice = 77;

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& group : {memory_checks(), process_checks(), time_checks()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

int run_check(const Check& check, const Target& target) {
  const auto begin = std::chrono::steady_clock::now();
  Json report{{"check", check.name}, {"question", check.question}};
  const absl::Status made = check.run(target, report);
  if (!made.ok()) report["not_made"] = std::string(made.message());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  report["seconds"] = took.count();
  std::printf("%s\n", report.dump().c_str());
  std::fflush(stdout);
  return made.ok() ? 0 : 1;
}

int run(const Target& target, const std::vector<std::string>& names, bool list) {
  if (list) {
    for (const Check& check : all_checks()) std::printf("%s\n", check.name);
    return 0;
  }
  const auto gpu = target.open();
  if (!gpu.ok()) {
    std::fprintf(stderr, "no device: %s\n", std::string(gpu.status().message()).c_str());
    return kNoDevice;
  }
  int result = 0;
  for (const Check& check : all_checks()) {
    for (const std::string& name : names) {
      if (name == check.name) result |= run_check(check, target);
    }
  }
  return result;
}

}  // namespace
}  // namespace memdecay::gpu

int main(int argc, char** argv) {
  memdecay::gpu::Target target{.library = memdecay::cuda::kDriverLibrary};
  std::vector<std::string> names;
  bool list = false;
  int importer = -1;
  CLI::App app("Asks a GPU's driver what its documentation leaves open; see tests/gpu/README.md.");
  app.add_option("CHECK", names, "checks to make");
  app.add_option("--library", target.library, "the driver; default libcuda.so.1");
  app.add_option("--uuid", target.uuid, "the GPU; default the only one there is");
  app.add_option("--importer", importer, "a socket: be the other process of a check");
  app.add_flag("--list", list, "print the checks' names");
  CLI11_PARSE(app, argc, argv);
  if (importer >= 0) return memdecay::gpu::import_and_stay(target, importer);
  return memdecay::gpu::run(target, names, list);
}
