// Attention masses of several forward calls as one observation.
//
// Why: an engine reports attention every so many tokens; what a page got from the tokens in between
// counts as well, since a fact that is used once is used for a few tokens only.
// Thread: one.
// Invariants: each call counts by its queries; the parts of what is taken sum to 1 as those of each
// call do; a page that was sealed in between has the mass it got since, before that it was tail.
// Not here: computing masses (attention_mass.h), when they are reported (page_store.h).
#pragma once

#include <map>
#include <span>

#include "adapters/reference/attention_mass.h"
#include "proto/contract/ids.h"

namespace memdecay::reference {

class MassWindow {
 public:
  void add(const PageMasses& masses);
  // Everything since the last take, as a mean. Pages that are gone by now (`pages`: nullptr) take
  // no part: the others share what they had. Nothing was added: no queries.
  PageMasses take(std::span<const std::byte* const> pages);
  void clear() { *this = MassWindow(); }

 private:
  size_t queries_ = 0;
  double sink_ = 0.0;
  double tail_ = 0.0;
  double rest_ = 0.0;
  std::map<PageIndex, double> by_page_;
};

}  // namespace memdecay::reference
