// Effects of the ledger → messages of the control protocol: answers, notices, errors.
// Thread: pure functions, any thread. Not here: reports for operators (to_wire_report.h), who gets
// which message (edge.h).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/ledger/effects.h"
#include "memdecay/v1/admin.pb.h"
#include "memdecay/v1/memory.pb.h"
#include "proto/contract/clock.h"
#include "proto/contract/error.h"

namespace memdecay::server {

v1::ErrorDetail error_to_wire(const absl::Status& status);
v1::PageView view_to_wire(const ledger::PageView& view);

// The answer to the message with this seq. `now` turns instants into what is left of them.
v1::StreamResponse reply_to_wire(const ledger::Reply& reply, uint64_t seq, Instant now);
v1::StreamResponse error_reply_to_wire(const absl::Status& status, uint64_t seq, uint64_t session);
v1::StreamResponse notice_to_wire(const ledger::Notice& notice);

void fill(v1::LookupResponse& out, const ledger::LookupReply& in);
void fill(v1::RestoreReply& out, const ledger::RestoreReply& in);
void fill(v1::DropResponse& out, const ledger::DropReply& in);

// Whether the engine owes an answer to this notice.
enum class Owed : uint8_t { kNo, kYes };
Owed answer_owed(const ledger::Notice& notice);

}  // namespace memdecay::server
