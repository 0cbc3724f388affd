// The sidecar of a recording: what lies on which page, and what the model knows with all of them.
//
// Why: tables are made from traces and sidecars alone, without model and tokenizer.
// Thread: pure functions.
// Not here: writing files (trace_file.h).
#pragma once

#include <span>
#include <string>

#include "tests/eval/prober.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

// JSON text. `answers`: those of all_questions() with the full cache.
std::string sidecar(const Scenario& scenario, std::span<const Answer> answers);

}  // namespace memdecay::eval
