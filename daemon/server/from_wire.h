// Messages of the control protocol → events of the ledger. Everything a peer sends is checked for
// size and form here; what needs the state (does the session exist, do the masses sum to one) is
// the ledger's to refuse. Layouts become namespaces and token ids become content keys here, off the
// ledger's thread.
// Thread: pure functions, any thread. Errors: invalid_argument, layout_rejected, out_of_range.
// Not here: who the caller is (edge.h), answers (to_wire.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/ledger/events.h"
#include "memdecay/v1/admin.pb.h"
#include "memdecay/v1/memory.pb.h"
#include "memdecay/v1/orchestrator.pb.h"
#include "proto/contract/layout.h"

namespace memdecay::server {

// What the daemon holds every layout and request against.
struct WireRules {
  uint32_t page_tokens = 16;
  uint64_t page_bytes = 0;  // 0: any
  Mode mode = Mode::kExact;
};

// Validated; layout_rejected names the field.
absl::StatusOr<Layout> layout_from_wire(const v1::Layout& wire);
absl::StatusOr<ledger::LayoutRef> layout_ref(const v1::Layout& wire, const WireRules& rules);

// One message of an engine's stream. A resume by name has session 0: whoever can see the ledger
// fills it in.
absl::StatusOr<ledger::Event> event_from_wire(const v1::StreamRequest& wire,
                                              const ledger::Origin& origin, const WireRules& rules);
absl::StatusOr<ledger::Event> event_from_wire(const v1::LookupRequest& wire,
                                              const ledger::Origin& origin, const WireRules& rules);
absl::StatusOr<ledger::Event> event_from_wire(const v1::ApplyRequest& wire,
                                              const ledger::Origin& origin, SessionId session,
                                              const WireRules& rules);

// The part of a stream's messages that orchestrators have as well.
absl::StatusOr<ledger::Event> annotation_from_wire(const v1::StreamRequest& wire,
                                                   const ledger::Origin& origin,
                                                   const WireRules& rules);
absl::StatusOr<ledger::Event> pin_from_wire(const v1::PinRequest& wire,
                                            const ledger::Origin& origin, SessionId session);
absl::StatusOr<ledger::Event> unpin_from_wire(const v1::UnpinRequest& wire,
                                              const ledger::Origin& origin, SessionId session);

// Page lists of Admin, with their bound.
absl::StatusOr<std::vector<PageIndex>> pages_from_wire(
    const google::protobuf::RepeatedField<uint32_t>& pages);

}  // namespace memdecay::server
