// What would have saved a page that leaves, computed: the smallest b or half-life of its region
// with which its score had reached the next page's, and how much more room had kept it.
//
// The arithmetic is that of the score's terms (policy/memdecay_n.cc, memdecay_n0.cc: sums in
// half-lives; memdecay.cc: a product in plain numbers); for forms without b and half-life there is
// room and a pin. Other pages of the region would move too: the figures hold for this page alone.
// Thread: pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ledger/choose.h"
#include "daemon/ledger/context.h"

namespace memdecay::ledger {

using Terms = std::vector<std::pair<std::string, double>>;

// By how much a page's parameters would have to grow for `more` score; nothing: no value does it.
struct Growth {
  std::optional<double> b;          // factor
  std::optional<double> half_life;  // factor
};
Growth growth_for(const Terms& terms, double more);

// "a pin; score 0.42 more: b of user >= 0.83 (now 0.6), half_life of user >= 44 (now 31); budget +
// 3 pages (now 24)".
std::string saved_by(const State& state, const Victim& victim, const Spared& spared,
                     const Terms& terms);

}  // namespace memdecay::ledger
