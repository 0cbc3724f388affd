// The lowest pages of many sessions in one order (policy.h: lowest_of).
//
// Sessions that changed are scanned with the bound that the others' kept victims set, so that most
// of their pages fall out by one comparison; what is kept reaches somewhat beyond what was asked,
// so that the next question finds it. Then the kept lists are merged. A list that ends too early,
// since its pages are not eligible or its bound was too low, is replaced by a scan of that session.
// Thread: the owner's of all sources.
#include <algorithm>
#include <utility>

#include "daemon/policy/cache.h"
#include "daemon/policy/lowest.h"
#include "daemon/policy/policy.h"

namespace memdecay::policy {
namespace {

// One session's list while it is merged.
struct Stream {
  size_t source = 0;
  absl::Span<const Victim> victims;
  std::optional<Victim> bound;  // what follows the list goes after it; nothing: nothing follows
  std::vector<Victim> own;      // where the list lies if it was scanned again
  size_t next = 0;

  bool at_end() const { return next == victims.size(); }
  const Victim& head() const { return at_end() ? *bound : victims[next]; }
};

// Heap order: the stream whose head goes first is on top. An end comes before equal heads, since
// what it hides may be equal too.
bool later(const Stream* a, const Stream* b) {
  if (goes_strictly_before(b->head(), a->head())) return true;
  if (goes_strictly_before(a->head(), b->head())) return false;
  if (a->at_end() != b->at_end()) return b->at_end();
  return a->source > b->source;
}

}  // namespace

std::vector<Policy::Pick> Policy::lowest_of(
    absl::Span<const Source> sources, size_t count,
    absl::FunctionRef<bool(size_t source, PageIndex)> eligible) {
  std::vector<Pick> picks;
  if (count == 0) return picks;
  const size_t keep = std::max(2 * count, kCachedVictims);
  Lowest all(keep, std::nullopt);
  const auto offer = [&all](const Policy& policy) {
    for (const Victim& victim : policy.cache_->victims) {
      if (!all.passes(victim)) break;
      all.add(victim);
    }
  };
  for (const Source& source : sources) {
    if (source.policy->cached(source.activity)) offer(*source.policy);
  }
  for (const Source& source : sources) {
    if (source.policy->cached(source.activity)) continue;
    source.policy->fill_cache(keep, source.activity, all.bound());
    offer(*source.policy);
  }

  std::vector<Stream> streams(sources.size());
  std::vector<Stream*> heap;
  const auto skip = [&](Stream& stream) {
    while (!stream.at_end() && !eligible(stream.source, stream.victims[stream.next].page)) {
      ++stream.next;
    }
    if (stream.at_end() && !stream.bound.has_value()) return;
    heap.push_back(&stream);
    std::push_heap(heap.begin(), heap.end(), later);
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    const Cache& cache = *sources[i].policy->cache_;
    streams[i].source = i;
    streams[i].victims = cache.victims;
    streams[i].bound = cache.bound;
    skip(streams[i]);
  }
  std::vector<size_t> taken(sources.size(), 0);
  while (!heap.empty() && picks.size() < count) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Stream& stream = *heap.back();
    heap.pop_back();
    if (!stream.at_end()) {
      picks.push_back({.source = stream.source, .victim = stream.victims[stream.next++]});
      ++taken[stream.source];
    } else {
      const Source& source = sources[stream.source];
      stream.own = source.policy->lowest(
          count, source.activity, [&](PageIndex page) { return eligible(stream.source, page); });
      stream.victims = stream.own;
      stream.bound.reset();  // `count` are enough
      stream.next = std::min(taken[stream.source], stream.own.size());
    }
    skip(stream);
  }
  return picks;
}

}  // namespace memdecay::policy
