// The fake driver's settings as a value, and their text form (control.h).
// Thread: values. Not here: what a setting does.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace fakecuda {

enum class ComputeMode : uint8_t { kDefault, kExclusive, kProhibited };

struct Options {
  int version = 13000;
  uint64_t seed = 1;
  uint64_t late_us = 300;
  uint64_t vram_bytes = uint64_t{1} << 30;
  uint64_t taken_bytes = 0;
  int devices = 1;
  bool mig = false;
  ComputeMode mode = ComputeMode::kDefault;
  bool mps = false;
  bool no_device = false;
  bool no_vmm = false;
  bool no_posix_fd = false;
  std::set<std::string> without;
  std::map<std::pair<std::string, uint64_t>, int> failures;  // (call, its number) → CUresult
  std::set<std::pair<std::string, uint64_t>> sticky;
  std::set<std::string> skip;
  std::string report;
};

// Empty on success, else what is wrong.
std::string parse_options(const std::string& words, Options& options);

}  // namespace fakecuda
