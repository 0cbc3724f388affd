// What the tiers keep of the contents that no living session references, by the policy `decay`
// (daemon/policy/retention): which uses are told, how much a content is worth by them, what can no
// longer be found, and what does not pay for its place.
//
//      a use ──► History: E of the key, one for both tiers ──► level = log2 E + log2 b, in Worth
//        │
//        ├──► Ghosts of the device ──► H of the device   the order of a tier: class, priority,
//        └──► Ghosts of the host   ──► H of the host     tref/H + level, leaf before root
//        (ranks.cc)
//
// A use is: a page is mapped for a session that acquires or resumes it, or comes back from below;
// and once for every content, told when it first stands in an order: its being stored. What living
// sessions do on their own pages is none, and neither is a look-up, nor a lease without a session.
// Thread: the ledger's. Bounds: History's and Ghosts'; kCutOffAStep pages behind a lost one.
// Not here: classes and places (ranks.cc), who may leave at all (choose.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

enum class Held : uint8_t { kDevice, kHost };  // the tiers that have an order

// Sizes of the tiers as they are now; at the start, after a reload.
void size_keep(State& state);
Duration tier_h(const State& state, Held tier);
RetentionSettings::By tier_by(const State& state, Held tier);

// Where the page was when it was used.
enum class UsedFrom : uint8_t { kDevice, kHost, kNowhere };
// One use. `chain`: uses with one number follow each other, the root first.
void tell_use(State& state, Content& content, Instant now, uint64_t chain, UsedFrom from);
// Its session ends: what it says of the worth of its pages, and which stand behind a lost one.
void tell_worths(State& state, const Session& session);
// It is about to stand in an order for the first time.
void first_stand(State& state, Content& content);
// Its level on the ladder of the tier; 0 where the tier does not ask for uses.
int16_t level(const State& state, const Content& content, Held tier);

// At its seal: the page before it.
void name_parent(Content& content, const std::optional<PageKey>& parent);
// The key was the last with bytes, or is there again: the pages behind it.
void parent_gone(State& state, TenantId tenant, const PageKey& key);
void parent_back(State& state, TenantId tenant, const PageKey& key);
void leave_family(State& state, const Content& content);

// Restoring the page takes no longer than computing it again, as far as that is known.
bool pays(const State& state, const Content& content);
// What is declared or measured; 0: not known.
double restore_bytes_per_s(const State& state);
void note_restore(State& state, const Copy& copy, Instant now);
// "all: compute time is not known", "restore 1.2 ms, compute 3.2 ms a page of 64 KiB, …"
std::string admission(const State& state);

// Why it stands where it stands in the order: the addends of its score, in doublings of use, and
// beside them whether it is cut off and how deep in its chain it is.
struct KeptScore {
  double score = 0;
  std::vector<std::pair<std::string, double>> terms;
};
KeptScore kept_score(const State& state, const Content& content, Held tier, Instant now);

}  // namespace memdecay::ledger
