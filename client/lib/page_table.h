// PageTable: the pages of one session as its engine sees them, and what is pending about them. Asks
// and restores wait here until the session is at a step boundary; grants wait here until the engine
// takes them (hand_out) and, like restores, until the slab that they lie in has arrived.
// Pages [0, handed) are the engine's; [handed, size) are granted ahead of need.
// Thread: the client's mutex guards it. Invariants: a page has `write` exactly while it is granted
// or filling; each slot opened for writing is closed once; pages of snapshot() equal the first
// `handed` pages at the last refresh().
// Not here: messages (client*.cc), memory (slab_map.h), who may have what (daemon).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "client/lib/slab_map.h"
#include "client/memdecay.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::client {

enum class Exactness : uint8_t { kExact, kApproximate };

// What a message says about one page (memdecay.v1.PageView).
struct PageNews {
  PageIndex page = 0;
  PageState state = PageState::kHole;
  SlotRef slot;
  Exactness exactness = Exactness::kExact;
};

struct GivenUp {
  DecisionId decision;
  std::vector<PageIndex> pages;
};

struct NowResident {
  std::vector<PageIndex> pages;
  std::vector<uint32_t> generations;
};

class PageTable {
 public:
  explicit PageTable(SlabMap& slabs) : slabs_(slabs) {}
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;
  ~PageTable() { cut(0); }

  // ---- growth ----
  // A resumed, forked or acquired state: pages at their index; all are handed out.
  void assign(std::span<const PageNews> pages);
  // Granted pages, which must follow the last one; others are ignored (they were truncated).
  void add_granted(std::span<const PageNews> pages);
  // Granted, there, not handed out.
  uint32_t ready_ahead() const;
  uint32_t granted_ahead() const { return size() - handed_; }
  void hand_out(uint32_t pages);
  // Pages from `first` on are no longer this session's.
  void cut(PageIndex first);
  uint32_t size() const { return static_cast<uint32_t>(pages_.size()); }
  uint32_t handed() const { return handed_; }

  // ---- the handshake ----
  // Of a mapped page, or of one that is offered and not taken yet: the offer is over then, and the
  // page is given up without having been mapped.
  void ask(DecisionId decision, std::span<const PageIndex> pages);
  // Which of them are still mapped: they stay.
  std::vector<PageIndex> withdraw(std::span<const PageIndex> pages);
  void offer(std::span<const PageNews> pages);
  // The boundary. Everything asked for leaves; everything offered comes, if its slab is here.
  std::vector<GivenUp> give_up();
  NowResident take_offered();
  bool has_pending() const { return !asked_.empty() || !offered_.empty(); }
  void released(PageIndex page);
  void lost(PageIndex page);
  void failed(PageIndex page);

  // ---- sealing ----
  // Whether all of them are handed out and writable.
  bool writable(PageIndex first, uint32_t pages) const;
  std::vector<std::span<const std::byte>> bytes(PageIndex first, uint32_t pages) const;
  // Open fence: the producer may still write, so protection waits for close_sealed().
  enum class Bytes : uint8_t { kThere, kBehindFence };
  void seal(PageIndex first, uint32_t pages, Exactness exactness, Bytes bytes);
  void close_sealed(PageIndex first, uint32_t pages);
  // The daemon refused: pages are written again.
  void unseal(PageIndex first, uint32_t pages);
  void fill_to(uint32_t position, uint32_t page_tokens);
  // Something before `first` is missing or approximate.
  bool has_holes_before(PageIndex first) const;

  // ---- memory ----
  // The daemon knows nothing of it any more: nothing is pending, nothing is writable, addresses
  // stay. The slabs' own bookkeeping is not touched.
  void orphan();
  bool restoring() const;
  // Slabs that arrived late: addresses of pages that waited for them.
  void resolve();
  // Pages [0, handed) with a slot have an address.
  bool resolved() const;
  bool uses(SlabId slab) const;

  // ---- the engine's copy ----
  // Brings the copy up to date; pages_of() is stable between refreshes.
  void refresh();
  const std::vector<memdecay_page>& snapshot() const { return snapshot_; }

 private:
  struct Page {
    PageState state = PageState::kHole;
    SlotRef slot;
    SlotAddress address;
    Exactness exactness = Exactness::kExact;
    enum class View : uint8_t { kNone, kOpen, kSealedOpen } view = View::kNone;
  };

  static bool has_slot(const Page& page);
  void resolve_page(Page& page);
  void close_view(Page& page);
  void leave(Page& page, PageState state);

  SlabMap& slabs_;
  std::vector<Page> pages_;
  uint32_t handed_ = 0;
  std::map<PageIndex, DecisionId> asked_;
  std::map<PageIndex, PageNews> offered_;
  std::vector<memdecay_page> snapshot_;
  uint64_t version_ = 1;
  uint64_t snapshot_version_ = 0;
};

}  // namespace memdecay::client
