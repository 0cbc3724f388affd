// Exact attention masses of one forward call, by page.
//
// Why: a policy decides by how much attention pages receive; this engine computes attention
// explicitly, so it can say exactly.
// Thread: add() by several threads on different (query, head) rows; the rest by the owner.
// Invariants: sums are taken in one fixed order (for each layer and head the queries as they come,
// then layers, then heads), so neither threads nor chunks nor what else is asked for change a bit;
// listed + sink + tail + rest = 1 within 1e-5.
// Not here: attention itself (kernels.h), what is made of the masses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/ids.h"

namespace memdecay::reference {

struct LayerHead {
  size_t layer = 0;
  size_t head = 0;  // query head
  friend auto operator<=>(const LayerHead&, const LayerHead&) = default;
};
// Ascending, without repetition; empty: all layers and heads.
using HeadChoice = std::vector<LayerHead>;

// "all", "late" (the last third of the layers) or a list like "12:3,20:0" (LAYER:HEAD).
absl::StatusOr<HeadChoice> parse_heads(const std::string& text, size_t layers, size_t heads);

struct MassRequest {
  size_t sinks = 4;         // positions [0, sinks) count as sink mass, not as mass of their page
  size_t sealed_pages = 0;  // pages [0, sealed_pages) are listed; later positions are the tail
  size_t last_queries = 0;  // only the last so many tokens of the call ask; 0: all of them
  size_t max_listed = 0;    // only the heaviest so many pages are listed; 0: all of them
  // One result for each choice of heads.
  std::vector<HeadChoice> choices = {HeadChoice{}};
  // Results for every so many queries, in order, as if each group were a call of its own: pages
  // that are whole before its first query are listed too. 0: one group. Not with last_queries.
  size_t group_queries = 0;
};

struct PageMass {
  PageIndex page = 0;
  double mass = 0.0;
};

// Means over the chosen layers, heads and queries.
struct PageMasses {
  std::vector<PageMass> listed;  // ascending by page; holes never occur
  double sink = 0.0;
  double tail = 0.0;
  double rest = 0.0;  // sealed resident pages that are not listed
  size_t queries = 0;
};

class MassCollector {
 public:
  struct Call {
    std::span<const PageIndex> pages;  // the resident ones, ascending
    size_t page_tokens = 16;
    size_t first_position = 0;
    size_t queries = 0;
    size_t layers = 0;
    size_t heads = 0;
  };
  MassCollector(const MassRequest& request, const Call& call);

  bool wants(size_t layer, size_t head) const { return slot_[layer * heads_ + head] >= 0; }
  // The next `queries` tokens of the call; rows are numbered query * heads + head.
  void begin_chunk(size_t queries);
  // `weights`: [visible pages][page_tokens], those of one query, head and layer.
  void add(size_t row, std::span<const float> weights);
  // All rows of this layer are there: they join the totals.
  void end_layer(size_t layer);
  void end_chunk() { seen_queries_ += chunk_queries_; }
  // [group][choice]
  std::vector<PageMasses> results() const;

 private:
  size_t group_of(size_t query) const;
  PageMasses result(size_t group, const HeadChoice& choice) const;
  void keep_heaviest(PageMasses& masses) const;

  MassRequest request_;
  std::vector<PageIndex> pages_;
  size_t page_tokens_;
  size_t first_position_;
  size_t heads_;
  size_t first_asking_ = 0;  // query of the call
  size_t seen_queries_ = 0;  // of the call, in chunks that are done
  size_t chunk_queries_ = 0;
  HeadChoice wanted_;                  // by slot
  std::vector<int32_t> slot_;          // [layer][head]: index into wanted_, -1: nobody asks
  std::vector<size_t> group_queries_;  // [group]: how many have asked
  std::vector<double> rows_;           // [row][pages + 1]; the last column is the sink mass
  std::vector<double> totals_;         // [group][slot][pages + 1]
};

}  // namespace memdecay::reference
