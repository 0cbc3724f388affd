// PageTable: state changes of a session's pages in its engine.
// Thread: the client's mutex guards it; see page_table.h.
#include "client/lib/page_table.h"

#include <algorithm>
#include <optional>

#include "proto/contract/check.h"

namespace memdecay::client {

bool PageTable::has_slot(const Page& page) {
  switch (page.state) {
    case PageState::kGranted:
    case PageState::kFilling:
    case PageState::kSealing:
    case PageState::kMapped:
    case PageState::kAsked:
      return static_cast<bool>(page.slot.slab);
    case PageState::kGivenUp:
    case PageState::kHole:
    case PageState::kRestoring:
    case PageState::kDropped:
      return false;
  }
  return false;
}

void PageTable::assign(std::span<const PageNews> pages) {
  for (const PageNews& news : pages) {
    // Pages that were granted to an engine before us are not ours to write.
    const bool unsealed = news.state == PageState::kGranted || news.state == PageState::kFilling;
    if (unsealed) continue;
    if (news.page >= pages_.size()) pages_.resize(news.page + 1);
    Page& page = pages_[news.page];
    page.state = news.state;
    page.slot = news.slot;
    page.exactness = news.exactness;
    page.address = {};
    resolve_page(page);
  }
  handed_ = size();
  ++version_;
}

void PageTable::add_granted(std::span<const PageNews> pages) {
  for (const PageNews& news : pages) {
    if (news.page != size()) continue;
    Page page;
    page.state = PageState::kGranted;
    page.slot = news.slot;
    resolve_page(page);
    pages_.push_back(page);
  }
}

uint32_t PageTable::ready_ahead() const {
  uint32_t ready = 0;
  for (uint32_t i = handed_; i < size() && pages_[i].address.write != nullptr; ++i) ++ready;
  return ready;
}

void PageTable::hand_out(uint32_t pages) {
  MEMDECAY_CHECK(pages <= ready_ahead());
  handed_ += pages;
  ++version_;
}

void PageTable::cut(PageIndex first) {
  if (first >= size()) return;
  for (PageIndex i = first; i < size(); ++i) close_view(pages_[i]);
  pages_.resize(first);
  handed_ = std::min(handed_, first);
  asked_.erase(asked_.lower_bound(first), asked_.end());
  offered_.erase(offered_.lower_bound(first), offered_.end());
  ++version_;
}

void PageTable::ask(DecisionId decision, std::span<const PageIndex> pages) {
  for (const PageIndex index : pages) {
    if (index >= size()) continue;
    Page& page = pages_[index];
    const bool mapped = page.state == PageState::kMapped || page.state == PageState::kAsked;
    if (offered_.erase(index) == 0 && !mapped) continue;
    if (mapped) page.state = PageState::kAsked;
    asked_[index] = decision;
    ++version_;
  }
}

std::vector<PageIndex> PageTable::withdraw(std::span<const PageIndex> pages) {
  std::vector<PageIndex> kept;
  for (const PageIndex index : pages) {
    if (index >= size()) continue;
    Page& page = pages_[index];
    if (page.state == PageState::kAsked && asked_.erase(index) > 0) page.state = PageState::kMapped;
    if (page.state == PageState::kMapped) kept.push_back(index);
    ++version_;
  }
  return kept;
}

void PageTable::offer(std::span<const PageNews> pages) {
  for (const PageNews& news : pages) {
    if (news.page < size()) offered_[news.page] = news;
  }
}

std::vector<GivenUp> PageTable::give_up() {
  std::map<DecisionId, std::vector<PageIndex>> by_decision;
  for (const auto& [index, decision] : asked_) {
    leave(pages_[index], PageState::kGivenUp);
    by_decision[decision].push_back(index);
  }
  asked_.clear();
  std::vector<GivenUp> out;
  out.reserve(by_decision.size());
  for (auto& [decision, pages] : by_decision) out.push_back({decision, std::move(pages)});
  return out;
}

NowResident PageTable::take_offered() {
  NowResident out;
  for (auto it = offered_.begin(); it != offered_.end();) {
    const PageNews& news = it->second;
    const std::optional<SlotAddress> address = slabs_.find(news.slot.slab, news.slot.index);
    if (!address) {
      ++it;
      continue;
    }
    Page& page = pages_[it->first];
    close_view(page);
    page = Page{.state = PageState::kMapped,
                .slot = news.slot,
                .address = {address->read, nullptr, address->bytes},
                .exactness = news.exactness};
    out.pages.push_back(it->first);
    out.generations.push_back(news.slot.generation);
    it = offered_.erase(it);
    ++version_;
  }
  return out;
}

void PageTable::released(PageIndex page) {
  if (page >= size() || pages_[page].state != PageState::kGivenUp) return;
  pages_[page].state = PageState::kHole;
  ++version_;
}

void PageTable::lost(PageIndex page) {
  if (page >= size()) return;
  asked_.erase(page);
  offered_.erase(page);
  leave(pages_[page], PageState::kDropped);
}

void PageTable::failed(PageIndex page) {
  if (page >= size() || pages_[page].state != PageState::kRestoring) return;
  pages_[page].state = PageState::kHole;
  ++version_;
}

void PageTable::orphan() {
  asked_.clear();
  offered_.clear();
  for (Page& page : pages_) {
    page.view = Page::View::kNone;
    page.address.write = nullptr;
    if (page.state == PageState::kAsked) page.state = PageState::kMapped;
  }
  ++version_;
}

bool PageTable::restoring() const {
  return std::any_of(pages_.begin(), pages_.end(),
                     [](const Page& page) { return page.state == PageState::kRestoring; });
}

bool PageTable::writable(PageIndex first, uint32_t pages) const {
  if (first > handed_ || pages > handed_ - first) return false;
  for (uint32_t i = first; i < first + pages; ++i) {
    if (pages_[i].view != Page::View::kOpen) return false;
  }
  return true;
}

std::vector<std::span<const std::byte>> PageTable::bytes(PageIndex first, uint32_t pages) const {
  std::vector<std::span<const std::byte>> out;
  for (uint32_t i = first; i < first + pages; ++i) {
    out.emplace_back(pages_[i].address.read, static_cast<size_t>(pages_[i].address.bytes));
  }
  return out;
}

void PageTable::seal(PageIndex first, uint32_t pages, Exactness exactness, Bytes bytes) {
  MEMDECAY_CHECK(writable(first, pages));
  for (uint32_t i = first; i < first + pages; ++i) {
    Page& page = pages_[i];
    page.exactness = exactness;
    page.view = Page::View::kSealedOpen;
    page.address.write = nullptr;
    page.state = PageState::kSealing;
  }
  ++version_;
  if (bytes == Bytes::kThere) close_sealed(first, pages);
}

void PageTable::close_sealed(PageIndex first, uint32_t pages) {
  const uint32_t end = std::min(size(), first + pages);
  for (uint32_t i = first; i < end; ++i) {
    Page& page = pages_[i];
    if (page.view != Page::View::kSealedOpen) continue;
    close_view(page);
    if (page.state == PageState::kSealing) page.state = PageState::kMapped;
  }
  ++version_;
}

void PageTable::unseal(PageIndex first, uint32_t pages) {
  const uint32_t end = std::min(size(), first + pages);
  for (uint32_t i = first; i < end; ++i) {
    Page& page = pages_[i];
    if (page.state != PageState::kMapped && page.state != PageState::kSealing) continue;
    close_view(page);
    page.state = PageState::kFilling;
    page.exactness = Exactness::kExact;
    if (const auto open = slabs_.reopen_slot(page.slot.slab, page.slot.index)) {
      page.address = *open;
      page.view = Page::View::kOpen;
    }
  }
  ++version_;
}

void PageTable::fill_to(uint32_t position, uint32_t page_tokens) {
  if (page_tokens == 0) return;
  const uint32_t end = std::min(handed_, (position + page_tokens - 1) / page_tokens);
  for (uint32_t i = end; i-- > 0 && pages_[i].view == Page::View::kOpen;) {
    pages_[i].state = PageState::kFilling;
    ++version_;
  }
}

bool PageTable::has_holes_before(PageIndex first) const {
  const auto end = pages_.begin() + std::min(first, size());
  return std::any_of(pages_.begin(), end, [](const Page& page) {
    return page.exactness == Exactness::kApproximate || !has_slot(page);
  });
}

void PageTable::resolve_page(Page& page) {
  if (!has_slot(page) || page.address.read != nullptr) return;
  if (page.state == PageState::kGranted) {
    const auto open = slabs_.open_slot(page.slot.slab, page.slot.index);
    if (!open) return;
    page.address = *open;
    page.view = Page::View::kOpen;
    return;
  }
  if (const auto there = slabs_.find(page.slot.slab, page.slot.index)) {
    page.address = {there->read, nullptr, there->bytes};
  }
}

void PageTable::resolve() {
  for (Page& page : pages_) resolve_page(page);
  ++version_;
}

bool PageTable::resolved() const {
  return std::all_of(pages_.begin(), pages_.begin() + handed_, [](const Page& page) {
    return !has_slot(page) || page.address.read != nullptr;
  });
}

bool PageTable::uses(SlabId slab) const {
  return std::any_of(pages_.begin(), pages_.end(),
                     [slab](const Page& page) { return page.slot.slab == slab && has_slot(page); });
}

void PageTable::close_view(Page& page) {
  if (page.view == Page::View::kNone) return;
  slabs_.close_slot(page.slot.slab, page.slot.index);
  page.view = Page::View::kNone;
  page.address.write = nullptr;
}

void PageTable::leave(Page& page, PageState state) {
  close_view(page);
  page.state = state;
  page.slot = {};
  page.address = {};
  ++version_;
}

void PageTable::refresh() {
  if (snapshot_version_ == version_) return;
  snapshot_.resize(handed_);
  for (uint32_t i = 0; i < handed_; ++i) {
    const Page& page = pages_[i];
    memdecay_page& out = snapshot_[i];
    out = {};
    out.read = page.address.read;
    out.write = page.view == Page::View::kOpen ? page.address.write : nullptr;
    out.page = i;
    out.slab = page.slot.slab.value;
    out.slot = page.slot.index;
    out.generation = page.slot.generation;
    out.state = static_cast<uint8_t>(page.state);
    out.approximate = page.exactness == Exactness::kApproximate ? 1 : 0;
  }
  snapshot_version_ = version_;
}

}  // namespace memdecay::client
