// What opening, resuming and forking a session have in common.
// Thread: the ledger's.
#pragma once

#include <string>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

absl::Status check_layout(const State& state, const LayoutRef& layout);
// An engine that places blocks itself gets its buffer with its first session's layout.
absl::Status ensure_buffer(Context& context, Engine& engine, const LayoutRef& layout);
// The session as its engine must see it.
SessionReply describe(const State& state, const Session& session);
// Registers the wanted name, or one made of the id.
std::string session_name(State& state, TenantId tenant, const std::string& wanted, SessionId id);

}  // namespace memdecay::ledger
