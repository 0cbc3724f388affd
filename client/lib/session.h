// Session: what the client knows about one session of its engine.
// Thread: the client's mutex guards it, except info's buffers, which belong to the one thread that
// uses the session. Not here: messages about it (client*.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/lib/page_table.h"
#include "client/memdecay.h"
#include "proto/contract/error.h"
#include "proto/contract/ids.h"

namespace memdecay::client {

class Client;

// What the layout fixes.
struct SessionShape {
  uint32_t page_tokens = 0;
  uint64_t page_bytes = 0;
  uint32_t budget_pages = 0;
};

struct OpenSeal {
  PageIndex first = 0;
  uint32_t pages = 0;
  memdecay_fence fence{};
};

struct PageTrouble {
  PageIndex page = 0;
  ErrorCode code = ErrorCode::kInternal;
};

struct Session {
  Session(Client& owner, SlabMap& slabs) : client(owner), table(slabs) {}

  Client& client;
  SessionId id;
  std::string name;
  SessionShape shape;
  PageTable table;
  std::vector<TokenId> tokens;                // as resumed
  std::vector<memdecay_tagged_span> regions;  // as resumed
  uint32_t sealed_tokens = 0;
  uint32_t written_tokens = 0;
  uint64_t step = 0;
  uint32_t budget_pages = 0;
  memdecay_mode mode = MEMDECAY_EXACT;
  bool ready = true;
  bool orphaned = false;
  std::optional<PageTrouble> trouble;  // while not ready: what will not come

  bool in_step = false;
  bool observe_now = false;
  uint32_t steps_unobserved = 0;
  memdecay_fence last_read{};  // of the last step
  std::vector<OpenSeal> open_seals;

  bool refill_wanted = false;
  bool extend_in_flight = false;
};

}  // namespace memdecay::client
