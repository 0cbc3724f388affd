// audit(): recomputes every counter from the page states and checks what must hold between the
// tables. Any line it returns is a leak or a bug; `check` shows them, tests stop on them.
#include "daemon/ledger/audit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/ledger.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

class Auditor {
 public:
  explicit Auditor(const State& state) : state_(state) {}

  std::vector<std::string> run() {
    slabs();
    contents();
    sessions();
    leases();
    copies();
    orders();
    return std::move(found_);
  }

 private:
  // Any condition: a bool, or what converts to one.
  template <typename Condition, typename... Parts>
  void expect(const Condition& holds, const Parts&... parts) {
    if (!holds) found_.push_back(absl::StrCat(parts...));
  }
  template <typename Number>
  void equal(std::string_view what, Number counted, Number kept) {
    expect(counted == kept, as_absl(what), ": counted ", counted, ", kept ", kept);
  }

  void slabs();
  void slot(const Slab& slab, uint32_t index);
  void contents();
  void content(const Content& content);
  void sessions();
  void view(const Session& session, PageIndex page);
  void leases();
  void copies();
  void orders();

  const State& state_;
  std::vector<std::string> found_;
};

void Auditor::slot(const Slab& slab, uint32_t index) {
  const Slot& slot = slab.slots[index];
  const std::string name = absl::StrCat("slot ", slab.id.value, ".", index, " (",
                                        as_absl(slot_state_name(slot.state)), ")");
  const SlotRef ref{slab.id, index, slot.generation};
  const bool holds_content = slot.state == SlotState::kValid ||
                             slot.state == SlotState::kCopyingOut ||
                             slot.state == SlotState::kCopyingIn;
  const auto content = state_.contents.find(slot.content);
  if (holds_content) {
    expect(content != state_.contents.end() && content->second->slot == ref, name,
           ": its content does not know it");
  }
  if (slot.state == SlotState::kFree) {
    expect(!slot.content && !slot.holder.session && !slot.copy, name, ": something still refers");
  }
  if (slot.state == SlotState::kQuarantined) {
    expect(slot.writer || slot.copy || slot.open_fences > 0, name, ": nothing holds it");
  }
  if (slot.state == SlotState::kReserved && slot.holder.session) {
    const auto session = state_.sessions.find(slot.holder.session);
    const bool known = session != state_.sessions.end() &&
                       slot.holder.page < session->second->pages.size() &&
                       session->second->pages[slot.holder.page].slot == ref;
    expect(known, name, ": its page does not know it");
  }
}

void Auditor::slabs() {
  uint32_t used_active = 0;
  uint32_t retiring = 0;
  uint32_t total = 0;
  absl::flat_hash_map<TenantId, uint32_t> by_tenant;
  for (const auto& [id, slab] : state_.slabs) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < slab.slots.size(); ++i) {
      used += slab.slots[i].state != SlotState::kFree;
      slot(slab, i);
    }
    const auto size = static_cast<uint32_t>(slab.slots.size());
    total += size;
    by_tenant[slab.tenant] += used;
    equal(absl::StrCat("slab ", id.value, " used"), used, slab.used);
    const bool active = slab.life == Slab::Life::kActive;
    used_active += active ? used : 0;
    retiring += active ? 0 : size;
    const auto free = state_.free.find({slab.tenant, slab.name_space});
    for (uint32_t i = 0; i < size && active && !slab.buffer_of; ++i) {
      const bool listed = free != state_.free.end() && free->second.contains({id, i});
      expect(listed == (slab.slots[i].state == SlotState::kFree), "slot ", id.value, ".", i,
             ": free list differs");
    }
  }
  equal("used slots", used_active, state_.used_slots);
  equal("retiring pages", retiring, state_.retiring_pages);
  equal("pages in slabs", total, state_.slab_pages_total);
  for (const auto& [id, tenant] : state_.tenants) {
    equal(absl::StrCat("slots of tenant ", tenant.options.name), by_tenant[id], tenant.used);
  }
}

void Auditor::content(const Content& content) {
  const std::string name = absl::StrCat("content ", content.id.value);
  for (const ViewRef& ref : content.views) {
    const auto session = state_.sessions.find(ref.session);
    const bool known = session != state_.sessions.end() &&
                       ref.page < session->second->pages.size() &&
                       session->second->pages[ref.page].content == content.id;
    expect(known, name, ": a view does not know it");
  }
  expect(!content.slot_valid || content.slot.has_value(), name, ": valid without a slot");
  expect(content.exactness == PageView::Exactness::kExact || !content.key.has_value(), name,
         ": approximate with a key");
  expect(!content.indexed || content.key.has_value(), name, ": indexed without a key");
  expect(!content.views.empty() || content.indexed || content.leases > 0 || content.copy, name,
         ": nobody can find it");
  expect(content.host != HostState::kWriting || content.copy, name, ": written by no copy");
  expect(content.leaving == state_.leaving.contains(content.id), name, ": leaving differs");
  const bool arriving = content.slot.has_value() && !content.slot_valid;
  bool sealing = false;
  for (const ViewRef& ref : content.views) {
    sealing |= view_of(state_, ref).state == PageState::kSealing;
  }
  expect(!arriving || content.copy || sealing, name, ": copied in by no copy");
  expect(has_bytes(content) || sealing, name, ": has no bytes anywhere");
}

void Auditor::contents() {
  uint32_t host_pages = 0;
  uint64_t host_bytes = 0;
  for (const auto& [id, held] : state_.contents) {
    content(*held);
    if (held->host == HostState::kNone) continue;
    ++host_pages;
    host_bytes += host_page_bytes(*held);
  }
  equal("host pages", host_pages, state_.host_used_pages);
  equal("host bytes", host_bytes, state_.host_used_bytes);
  const Options& options = state_.options;
  if (options.host_pages > 0) {
    expect(host_pages <= options.host_pages, "host tier above its limit: ", host_pages);
  } else {
    expect(host_bytes <= options.host_bytes, "host tier above its limit: ", host_bytes);
  }
  for (const auto& [key, entry] : state_.index) {
    const auto first = state_.contents.find(entry.first);
    expect(first != state_.contents.end() && first->second->indexed, "an index entry is dangling");
    for (const ContentId twin : entry.twins) {
      expect(state_.contents.contains(twin), "a twin is dangling");
    }
  }
}

void Auditor::view(const Session& session, PageIndex page) {
  const View& view = session.pages[page];
  const std::string name = absl::StrCat("page ", page, " of session ", session.name, " (",
                                        as_absl(page_state_name(view.state)), ")");
  if (is_unsealed(view.state)) {
    expect(page >= session.sealed_pages, name, ": unsealed before sealed ones");
    return;
  }
  if (view.state == PageState::kDropped) {
    expect(!view.content, name, ": has a content");
    return;
  }
  const auto found = state_.contents.find(view.content);
  if (found == state_.contents.end()) {
    expect(false, name, ": has no content");
    return;
  }
  const Content& content = *found->second;
  const ViewRef ref{session.id, page};
  expect(std::count(content.views.begin(), content.views.end(), ref) == 1, name,
         ": its content does not know it");
  expect(!is_mapped(view.state) || content.slot_valid, name, ": mapped without a slot");
  expect(view.state != PageState::kGivenUp || content.slot.has_value(), name,
         ": given up without a slot");
  expect(session.policy->resident(page) ==
             (is_mapped(view.state) || view.state == PageState::kSealing),
         name, ": the policy disagrees about residency");
}

void Auditor::sessions() {
  absl::flat_hash_map<TenantId, uint32_t> pins;
  for (const auto& [id, session] : state_.sessions) {
    for (PageIndex page = 0; page < session->pages.size(); ++page) {
      view(*session, page);
      pins[session->tenant] += session->pages[page].pinned;
    }
    const std::string name = absl::StrCat("session ", session->name);
    expect(session->mode == Mode::kLossy || !session->ready || missing_pages(*session) == 0, name,
           ": exact and ready with pages missing");
    expect(session->tokens.size() == size_t{session->sealed_pages} * session->layout.page_tokens,
           name, ": tokens and sealed pages differ");
  }
  for (const auto& [id, tenant] : state_.tenants) {
    equal(absl::StrCat("pins of tenant ", tenant.options.name), pins[id], tenant.pins);
  }
}

void Auditor::leases() {
  absl::flat_hash_map<ContentId, uint32_t> held;
  for (const auto& [id, lease] : state_.leases) {
    for (const ContentId content : lease.contents) ++held[content];
  }
  for (const auto& [id, content] : state_.contents) {
    equal(absl::StrCat("leases of content ", id.value), held[id], content->leases);
  }
}

void Auditor::copies() {
  for (const auto& [id, copy] : state_.copies) {
    if (copy.abandoned) continue;
    const auto content = state_.contents.find(copy.what.content);
    expect(content != state_.contents.end() && content->second->copy == id, "copy ", id.value,
           ": its content does not know it");
  }
}

void Auditor::orders() {
  for (const auto& [id, content] : state_.contents) {
    expect((content->host == HostState::kValid) == content->host_rank.has_value(), "content ",
           id.value, ": host order differs");
    if (content->host_rank.has_value()) {
      expect(state_.host_order.contains(*content->host_rank), "content ", id.value,
             ": not in the host order");
    }
    if (content->device_rank.has_value()) {
      expect(state_.unreferenced.contains(*content->device_rank), "content ", id.value,
             ": not among the unreferenced");
    }
  }
}

}  // namespace

std::vector<std::string> audit(const State& state) { return Auditor(state).run(); }

std::vector<std::string> Ledger::audit() const { return ledger::audit(*state_); }

}  // namespace memdecay::ledger
