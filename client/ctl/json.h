// Messages and errors as JSON for scripts: field names as in the .proto, numbers as numbers
// (protobuf's own JSON writes 64-bit ones as text), enumerations by their vocabulary word, every
// field present. Thread: pure functions, any. Not here: what people read (render.h).
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace memdecay::ctl {

nlohmann::ordered_json to_json(const google::protobuf::Message& message);
// {"error", "asked", "there", "todo"}
nlohmann::ordered_json to_json(const absl::Status& status);

}  // namespace memdecay::ctl
