// Reports of the ledger → messages of Admin and Orchestrator.
// Thread: pure functions, any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/ledger/report.h"
#include "memdecay/v1/admin.pb.h"
#include "memdecay/v1/orchestrator.pb.h"
#include "proto/contract/clock.h"

namespace memdecay::server {

void fill(v1::GetStatusResponse& out, const ledger::StatusReport& in);
void fill(v1::SessionInfo& out, const ledger::SessionReport& in);
void fill(v1::PageInfo& out, const ledger::PageReport& in);
void fill(google::protobuf::RepeatedPtrField<v1::ScoreTerm>& out,
          const std::vector<std::pair<std::string, double>>& in);
// How often what left was wanted again.
void fill_regrets(v1::GetStatusResponse& out, const ledger::Ledger& ledger);
void fill(v1::GetFiguresResponse& out, const ledger::Ledger& ledger);
void fill(v1::Decision& out, const ledger::DecisionReport& in, Instant now);

}  // namespace memdecay::server
