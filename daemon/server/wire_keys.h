// Content keys of what a caller asks for: token ids in, one key a whole page out.
// Thread: pure functions, any thread. Why apart from from_wire.h: only from_wire*.cc need it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/ledger/events.h"
#include "daemon/server/from_wire.h"
#include "proto/contract/page_key.h"

namespace memdecay::server {

struct KeyedTokens {
  ledger::LayoutRef layout;
  std::vector<PageKey> keys;
  std::vector<TokenId> tokens;  // keys.size() * page_tokens
  ledger::Tail tail = ledger::Tail::kNone;
};

// How an extra of the wire (bytes) enters the key; the ledger does the same at a seal.
inline ExtraKey extra_key(const std::string& bytes) { return {.kind = "extra", .value = bytes}; }

absl::StatusOr<std::vector<std::string>> extras_from_wire(
    const google::protobuf::RepeatedPtrField<std::string>& extras);
absl::StatusOr<KeyedTokens> keys_from_wire(
    const v1::Layout& wire, const google::protobuf::RepeatedField<uint32_t>& tokens,
    const google::protobuf::RepeatedPtrField<std::string>& extras, const WireRules& rules);

}  // namespace memdecay::server
