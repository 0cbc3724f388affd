// `--golden DIR`: every policy history (*.json) of a folder against the product's policies.
// Thread: the caller's.
#pragma once

#include <string>

namespace memdecay::scenario {

// Prints a line a history; returns how many differ or cannot be read.
int run_golden_folder(const std::string& folder);

}  // namespace memdecay::scenario
