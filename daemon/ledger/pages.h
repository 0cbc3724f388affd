// A session's pages: their states, what a session lacks, whether it computes, and whether what it
// computes is exact. The one place that changes View::state.
// Thread: the ledger's. Not here: why a page leaves (choose.h) and how (leave.h, restore.h).
#pragma once

#include <vector>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

const View& view_of(const State& state, ViewRef ref);
View& view_of(State& state, ViewRef ref);

// It computes, or its pages are on their way for that: nobody may rob an exact one.
bool is_running(const Session& session);
// Its engine must take a page out of its tables before the slot can be re-used.
bool must_ask(const State& state, const Session& session);
// Its engine can be asked and is expected to answer.
bool can_ask(const State& state, const Session& session);

// It is in that state from now on.
void enter_state(Context& context, Session& session, SessionState next);
// How long the session has been in its state.
double waited_seconds(const Session& session, Instant now);
// Brings what is known of waiting sessions up to now.
void count_waiting(State& state, Session& session);

// Whether the answer to a question about the page is overdue.
enum class Late : uint8_t { kNo, kYes };
void set_late(State& state, const Session& session, View& view, Late late);
void set_page_state(State& state, ViewRef ref, PageState next);
// The page's bytes are gone: tells policy, engine and whoever waits for it.
void drop_page(Context& context, ViewRef ref);

// Pages that count in the budget.
uint32_t occupancy(const Session& session);
// Sealed pages that are not mapped.
uint32_t missing_pages(const Session& session);
// A page is asked back, which is as good as gone: an exact session does not compute on it.
bool loses_pages(const Session& session);
std::optional<PageIndex> first_dropped(const Session& session);
// The smallest budget: sinks, recent pages, explicit pins, and one page being written.
uint32_t smallest_budget(const State& state, const Session& session);

// Tokens were written up to `position`: with a page missing they taint the tail.
void note_written(Session& session, uint32_t position);

// The page as its engine must see it.
PageView page_view(const State& state, const Session& session, PageIndex page);

// Whether a session's policy knows the region.
absl::Status check_region(const policy::Policy& policy, RegionId region);
// What a new session of the tenant starts from.
const policy::PolicyOptions& policy_options(const State& state, TenantId tenant);

// Regions of a page's tokens, and changing them.
std::vector<policy::RegionRun> region_runs(const Session& session, PageIndex page);
RegionId main_region(const Session& session, PageIndex page);
void set_region(Session& session, Span span, RegionId region);
// Tells the policy the page's regions; softens pins that the pin budget does not carry.
void tell_regions(Context& context, Session& session, PageIndex page);
// The atomic span that covers the page as pages [first, last], if any.
std::optional<std::pair<PageIndex, PageIndex>> atomic_pages(const Session& session, PageIndex page);

}  // namespace memdecay::ledger
