// The record of decisions: what left, came back or was dropped, why, by which terms of its score,
// under which pressure, and what would have saved it. A bounded ring; explain reads it.
// Thread: the ledger's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ledger/choose.h"
#include "daemon/ledger/context.h"

namespace memdecay::ledger {

inline constexpr size_t kDecisions = 4096;

// The addends of a sealed page's score now, by name.
std::vector<std::pair<std::string, double>> named_terms(const Session& session, PageIndex page);

DecisionId record_eviction(Context& context, const Content& content, const Victim& victim,
                           const std::string& pressure, const Spared& spared);
DecisionId record(Context& context, std::string kind, ViewRef view, Reason reason);
// A host replica goes because of the tier's size.
DecisionId record_drop(Context& context, const Content& content, std::string_view pressure);

}  // namespace memdecay::ledger
