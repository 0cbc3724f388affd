// Checks that only silicon can answer, one function each: it tries a thing on the driver and
// reports what happened as one line of JSON. A check asserts nothing about the driver; README.md
// beside this says what the code does either way. Each check runs in a process of its own (run.sh),
// because some break their context on purpose. Thread: main's. Not here: rules that must hold
// (tests/contract, which run.sh runs as well).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "cuda/driver/gpu.h"
#include "nlohmann/json.hpp"

namespace memdecay::gpu {

using Json = nlohmann::ordered_json;

struct Target {
  std::string library;
  std::string uuid;
  absl::StatusOr<std::unique_ptr<cuda::Gpu>> open() const { return cuda::Gpu::open(library, uuid); }
  absl::StatusOr<std::unique_ptr<cuda::Device>> device(uint64_t limit_bytes) const;
};

struct Check {
  const char* name;
  const char* question;
  // Fills the report; an error: the check itself could not be made.
  absl::Status (*run)(const Target& target, Json& report);
};

std::vector<Check> memory_checks();   // checks_memory.cc
std::vector<Check> process_checks();  // checks_processes.cc
std::vector<Check> time_checks();     // checks_time.cc

// The other process of process_checks(): maps what the socket sends, answers with one byte whether
// it saw what was written ('y', 'n', 'e': could not look), and stays until it is killed.
int import_and_stay(const Target& target, int socket);

// "ok", or the driver's word for it.
std::string word_of(const absl::Status& status);

}  // namespace memdecay::gpu
