// Events of the ledger as lines for an engine process, and its answers as the ledger's replies. So
// a script's verbs are the same in both worlds. Thread: pure functions.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "tests/scenario/wire_words.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

struct WireCall {
  std::string line;  // without the id
  std::function<ledger::ReplyBody(const WireWords&)> decode;
};

// unsupported: an event that an engine process has no command for.
absl::StatusOr<WireCall> encode(const ledger::Event& event, const Extras& extras);

// The answer's code and message as a status.
absl::Status answered_status(const WireWords& words);
std::string fence_word(const Fence& fence);
Fence fence_from(const std::string& text);

}  // namespace memdecay::scenario
