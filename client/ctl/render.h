// What people read: answers of the daemon as plain lines and aligned columns.
// Thread: pure functions, any. Not here: JSON (json.h), the page map (page_map.h).
#pragma once

#include <string>

#include "client/ctl/model_size.h"
#include "memdecay/v1/admin.pb.h"

namespace memdecay::ctl {

std::string render(const v1::GetStatusResponse& status);
std::string render(const v1::ListSessionsResponse& sessions);
std::string render(const v1::SessionInfo& session);
std::string render(const v1::ExplainResponse& answer);
std::string render(const v1::ListDecisionsResponse& decisions);
std::string render(const v1::CheckResponse& check);
std::string render(const v1::RestoreReply& restored);
std::string render(const v1::DropResponse& dropped);
std::string render(const ModelSize& size);
// "1.5 MiB"
std::string bytes_text(uint64_t bytes);

}  // namespace memdecay::ctl
