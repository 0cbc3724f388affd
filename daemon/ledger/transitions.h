// The two state tables of the protocol as data: which state of a page in a session, and of a slot,
// may follow which. Every change in the ledger passes through them; audit() and the tests read
// them. Thread: constants.
#pragma once

#include <array>
#include <cstddef>

#include "proto/contract/vocabulary.h"

namespace memdecay::ledger {

template <size_t kStates>
using Table = std::array<std::array<bool, kStates>, kStates>;

// Rows: from; columns: to. Order as in vocabulary.h.
// granted filling sealing mapped asked given_up hole restoring dropped
inline constexpr Table<kPageStates> kPageMoves = {{
    /* granted   */ {{false, true, true, true, false, false, false, false, false}},
    /* filling   */ {{false, false, true, true, false, false, false, false, false}},
    /* sealing   */ {{false, false, false, true, false, false, false, false, true}},
    /* mapped    */ {{false, false, false, false, true, true, false, false, true}},
    /* asked     */ {{false, false, false, true, false, true, false, false, true}},
    /* given_up  */ {{false, false, false, false, false, false, true, false, true}},
    /* hole      */ {{false, false, false, false, false, false, false, true, true}},
    /* restoring */ {{false, false, false, true, true, false, true, false, true}},
    /* dropped   */ {{false, false, false, false, false, false, false, false, false}},
}};

// free reserved valid copying_out copying_in quarantined
inline constexpr Table<kSlotStates> kSlotMoves = {{
    /* free        */ {{false, true, false, false, false, false}},
    /* reserved    */ {{true, false, true, false, true, true}},
    /* valid       */ {{true, false, false, true, false, true}},
    /* copying_out */ {{true, false, true, false, false, true}},
    /* copying_in  */ {{true, false, true, false, false, true}},
    /* quarantined */ {{true, false, false, false, false, false}},
}};

constexpr bool page_may_become(PageState from, PageState to) {
  return kPageMoves[static_cast<size_t>(from)][static_cast<size_t>(to)];
}
constexpr bool slot_may_become(SlotState from, SlotState to) {
  return kSlotMoves[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

// The engine may read the page.
constexpr bool is_mapped(PageState state) {
  return state == PageState::kMapped || state == PageState::kAsked;
}
// Counts in the budget of its session.
constexpr bool occupies(PageState state) {
  return state != PageState::kHole && state != PageState::kDropped;
}
constexpr bool is_unsealed(PageState state) {
  return state == PageState::kGranted || state == PageState::kFilling;
}

}  // namespace memdecay::ledger
