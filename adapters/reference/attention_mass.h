// Exact attention masses of one forward call, by page.
//
// Why: a policy decides by how much attention pages receive; this engine computes attention
// explicitly, so it can say exactly.
// Thread: add() by several threads on different (query, head) rows; the rest by the owner.
// Invariants: sums are taken in one fixed order (layers as they come, then queries, then heads),
// so neither threads nor chunks change a bit; listed + sink + tail + rest = 1 within 1e-5.
// Not here: attention itself (kernels.h), what is made of the masses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/contract/ids.h"

namespace memdecay::reference {

struct MassRequest {
  size_t sinks = 4;            // positions [0, sinks) count as sink mass, not as mass of their page
  size_t sealed_pages = 0;     // pages [0, sealed_pages) are listed; later positions are the tail
  size_t last_queries = 0;     // only the last so many tokens of the call ask; 0: all of them
  size_t max_listed = 0;       // only the heaviest so many pages are listed; 0: all of them
  std::vector<size_t> layers;  // empty: all
  std::vector<size_t> heads;   // query heads; empty: all
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
  // `pages` are the resident page indices, ascending; a row is one (query, head) of the call.
  MassCollector(const MassRequest& request, std::span<const PageIndex> pages, size_t page_tokens,
                size_t layers, size_t heads);

  bool wants(size_t layer, size_t head) const { return layer_wanted_[layer] && head_wanted_[head]; }
  // The next `queries` tokens of the call; rows are numbered query * heads + head.
  void begin_chunk(size_t queries);
  // `weights`: [visible pages][page_tokens], those of one query, head and layer.
  void add(size_t row, std::span<const float> weights);
  // Joins the chunk's rows from query `first` on into the totals.
  void end_chunk(size_t first);
  PageMasses result() const;

 private:
  MassRequest request_;
  std::vector<PageIndex> pages_;
  size_t page_tokens_;
  size_t heads_;
  size_t wanted_layers_ = 0;
  size_t wanted_heads_ = 0;
  size_t queries_ = 0;
  std::vector<char> layer_wanted_;
  std::vector<char> head_wanted_;
  std::vector<double> rows_;    // [row][pages + 1]; the last column is the sink mass
  std::vector<double> totals_;  // [pages + 1]
};

}  // namespace memdecay::reference
