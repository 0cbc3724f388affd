// See trace.h. One overload a type; a new event or effect without one does not compile.
#include "daemon/reactor/trace.h"

#include <variant>

#include "daemon/reactor/trace_line.h"

namespace memdecay::reactor {
namespace {

using namespace ledger;  // every name below is one of its events or effects

Line line(const Attach& e) {
  return Line("attach")
      .with(e.origin)
      .with("name", e.name)
      .with("placement", e.placement)
      .with("blocks", e.blocks);
}
Line line(const Reattach& e) { return Line("reattach").with(e.origin); }
Line line(const Disconnected& e) { return Line("disconnected").with("engine", e.engine); }
Line line(const Silence& e) { return Line("silence").with("engine", e.engine).with("now", e.now); }
Line line(const EngineGone& e) { return Line("engine_gone").with("engine", e.engine); }
Line line(const Leave& e) { return Line("leave").with(e.origin); }
Line line(const SlabUnmapped& e) {
  return Line("slab_unmapped").with(e.origin).with("slab", e.slab);
}
Line line(const OpenSession& e) {
  return Line("open")
      .with(e.origin)
      .with("name", e.name)
      .with("space", e.layout.name_space)
      .with("page_bytes", e.layout.page_bytes)
      .with("mode", e.mode)
      .with("budget", e.budget_pages)
      .with("priority", e.priority)
      .with("policy", e.policy);
}
Line line(const ResumeSession& e) {
  return Line("resume").with(e.origin).with("session", e.session).with("steal", e.steal);
}
Line line(const ForkSession& e) {
  return Line("fork").with(e.origin).with("from", e.from).with("name", e.name);
}
Line line(const CloseSession& e) {
  return Line("close")
      .with(e.origin)
      .with("session", e.session)
      .with("what", e.what)
      .with("fence", e.fence);
}
Line line(const Extend& e) {
  return Line("extend")
      .with(e.origin)
      .with("session", e.session)
      .with("pages", e.pages)
      .folded("blocks", e.blocks);
}
Line line(const Written& e) {
  return Line("written").with(e.origin).with("session", e.session).with("position", e.position);
}
Line line(const Seal& e) {
  return Line("seal")
      .with(e.origin)
      .with("session", e.session)
      .with("first", e.first_page)
      .with("pages", e.pages)
      .folded("tokens", e.tokens)
      .with("checksums", e.checksums)
      .with("extras", e.extras)
      .with("fence", e.fence)
      .with("claim", e.claim);
}
Line line(const Tag& e) {
  return Line("tag").with(e.origin).with("session", e.session).with("spans", e.spans);
}
Line line(const Untag& e) {
  return Line("untag").with(e.origin).with("session", e.session).with("span", e.span);
}
Line line(const EndGroup& e) {
  return Line("end_group")
      .with(e.origin)
      .with("session", e.session)
      .with("span", e.span)
      .with("cut", e.cut);
}
Line line(const Hint& e) {
  return Line("hint")
      .with(e.origin)
      .with("session", e.session)
      .with("span", e.span)
      .with("relevance", e.relevance);
}
Line line(const Supersede& e) {
  return Line("supersede").with(e.origin).with("session", e.session).with("span", e.span);
}
Line line(const Pin& e) {
  return Line("pin")
      .with(e.origin)
      .with("session", e.session)
      .with("first", e.first_page)
      .with("pages", e.pages)
      .with("ttl", e.ttl);
}
Line line(const Unpin& e) {
  return Line("unpin")
      .with(e.origin)
      .with("session", e.session)
      .with("first", e.first_page)
      .with("pages", e.pages);
}
Line line(const SetBudget& e) {
  return Line("set_budget")
      .with(e.origin)
      .with("session", e.session)
      .with("budget", e.budget_pages);
}
Line line(const SetMode& e) {
  return Line("set_mode").with(e.origin).with("session", e.session).with("mode", e.mode);
}
Line line(const Truncate& e) {
  return Line("truncate").with(e.origin).with("session", e.session).with("tokens", e.tokens);
}
Line line(const Park& e) {
  return Line("park").with(e.origin).with("session", e.session).with("state", e.state);
}
Line line(const Unpark& e) { return Line("unpark").with(e.origin).with("session", e.session); }
Line line(const Repair& e) { return Line("repair").with(e.origin).with("session", e.session); }
Line line(const Observe& e) {
  return Line("observe")
      .with(e.origin)
      .with("session", e.session)
      .with("step", e.step)
      .with("position", e.position)
      .with("queries", e.queries)
      .with("sink", e.sink)
      .with("tail", e.tail)
      .with("rest", e.rest)
      .with("masses", e.masses);
}
Line line(const GaveUp& e) {
  return Line("gave_up")
      .with(e.origin)
      .with("session", e.session)
      .with("decision", e.decision)
      .with("pages", e.pages)
      .with("fence", e.fence)
      .with("position", e.position);
}
Line line(const Kept& e) {
  return Line("kept").with(e.origin).with("session", e.session).with("pages", e.pages);
}
Line line(const Resident& e) {
  return Line("resident")
      .with(e.origin)
      .with("session", e.session)
      .with("pages", e.pages)
      .with("generations", e.generations)
      .with("position", e.position);
}
Line line(const ReadFence& e) {
  return Line("read_fence")
      .with(e.origin)
      .with("session", e.session)
      .with("pages", e.pages)
      .with("fence", e.fence);
}
Line line(const EvictPages& e) {
  return Line("evict").with(e.origin).with("session", e.session).with("pages", e.pages);
}
Line line(const RestorePages& e) {
  return Line("restore")
      .with(e.origin)
      .with("session", e.session)
      .with("pages", e.pages)
      .folded("blocks", e.blocks);
}
Line line(const CancelRestore& e) {
  return Line("cancel_restore").with(e.origin).with("restore", e.restore);
}
Line line(const Lookup& e) {
  return Line("lookup").with(e.origin).folded("keys", e.keys).folded("tokens", e.tokens);
}
Line line(const Acquire& e) {
  return Line("acquire")
      .with(e.origin)
      .with("session", e.session)
      .folded("keys", e.keys)
      .folded("tokens", e.tokens);
}
Line line(const Release& e) { return Line("release").with(e.origin).with("lease", e.lease); }
Line line(const Pressure& e) { return Line("pressure").with(e.origin).with("pages", e.pages); }
Line line(const Drop& e) {
  return Line("drop")
      .with(e.origin)
      .with("session", e.session)
      .with("pages", e.pages)
      .with("tier", e.tier)
      .with("reach", e.reach);
}
Line line(const Drain& e) { return Line("drain").with(e.origin); }
Line line(const CopyDone& e) {
  return Line("copy_done")
      .with("copy", e.copy)
      .with("status", e.status)
      .with("checksum", e.checksum);
}
Line line(const FencePassed& e) {
  return Line("fence_passed").with("engine", e.engine).with("fence", e.fence);
}
Line line(const SlabFailed& e) {
  return Line("slab_failed").with("slab", e.slab).with("status", e.status);
}
Line line(const Tick&) { return Line("tick"); }

// ---- what replies and notices carry
// ---------------------------------------------------------------
void body(Line& out, const Done&) { out.with("with", std::string_view("done")); }
void body(Line& out, const AttachReply& r) { out.with("engine", r.engine).with("epoch", r.epoch); }
void body(Line& out, const SessionReply& r) {
  out.with("session", r.session)
      .with("name", r.name)
      .with("position", r.position)
      .folded("tokens", r.tokens)
      .with("pages", r.pages)
      .with("ready", r.ready)
      .with("step", r.step)
      .with("mode", r.mode);
}
void body(Line& out, const GrantReply& r) { out.with("granted", r.pages); }
void body(Line& out, const RepairReply& r) {
  out.with("needed", r.needed).with("first", r.first_page).with("tokens", r.tokens);
}
void body(Line& out, const RestoreReply& r) {
  out.with("resident", r.resident).with("failed", r.failed);
}
void body(Line& out, const LookupReply& r) {
  out.with("hit", r.pages)
      .with("device", r.device_pages)
      .with("host", r.host_pages)
      .with("first_missing", r.first_missing)
      .with("pending", r.pending);
}
void body(Line& out, const AcquireReply& r) {
  out.with("lease", r.lease)
      .with("pages", r.pages)
      .with("expires", r.expires)
      .with("views", r.views);
}
void body(Line& out, const PressureReply& r) { out.with("free", r.free_pages); }
void body(Line& out, const DropReply& r) { out.with("cleared", r.cleared); }

void body(Line& out, const EvictNotice& n) {
  out.with("what", std::string_view("evict")).with("decision", n.decision).with("pages", n.pages);
}
void body(Line& out, const WithdrawNotice& n) {
  out.with("what", std::string_view("withdraw"))
      .with("decision", n.decision)
      .with("pages", n.pages);
}
void body(Line& out, const ReleasedNotice& n) {
  out.with("what", std::string_view("released")).with("pages", n.pages);
}
void body(Line& out, const RestoreNotice& n) {
  out.with("what", std::string_view("restore")).with("pages", n.pages);
}
void body(Line& out, const ReadyNotice&) { out.with("what", std::string_view("ready")); }
void body(Line& out, const FailedNotice& n) {
  out.with("what", std::string_view("failed")).with("page", n.page).with("code", n.code);
}
void body(Line& out, const LostNotice& n) {
  out.with("what", std::string_view("lost")).with("page", n.page);
}
void body(Line& out, const BudgetNotice& n) {
  out.with("what", std::string_view("budget")).with("pages", n.budget_pages);
}
void body(Line& out, const ModeNotice& n) {
  out.with("what", std::string_view("mode")).with("mode", n.mode);
}
void body(Line& out, const ShutdownNotice&) { out.with("what", std::string_view("shutdown")); }
void body(Line& out, const UnmapSlabNotice& n) {
  out.with("what", std::string_view("unmap_slab")).with("slab", n.slab);
}

Line line(const Reply& r) {
  Line out("reply");
  out.with("request", r.request).with("status", r.status);
  std::visit([&out](const auto& value) { body(out, value); }, r.body);
  return out;
}
Line line(const Notice& n) {
  Line out("notice");
  out.with("engine", n.engine).with("session", n.session);
  std::visit([&out](const auto& value) { body(out, value); }, n.body);
  return out;
}
Line line(const CreateSlab& e) {
  return Line("create_slab")
      .with("slab", e.slab)
      .with("tenant", e.tenant)
      .with("space", e.name_space)
      .with("page_bytes", e.page_bytes)
      .with("pages", e.pages);
}
Line line(const DestroySlab& e) { return Line("destroy_slab").with("slab", e.slab); }
Line line(const ShareSlab& e) {
  return Line("share_slab").with("engine", e.engine).with("slab", e.slab).with("access", e.access);
}
Line line(const StartCopy& e) {
  return Line("start_copy")
      .with("copy", e.copy)
      .with("kind", e.kind)
      .with("content", e.content)
      .with("slot", e.slot)
      .with("bytes", e.bytes);
}
Line line(const CancelCopy& e) { return Line("cancel_copy").with("copy", e.copy); }
Line line(const DropHost& e) { return Line("drop_host").with("content", e.content); }
Line line(const WatchFence& e) {
  return Line("watch_fence").with("engine", e.engine).with("fence", e.fence);
}
Line line(const ShadowRow& e) {
  return Line("shadow_row")
      .with("slot", e.slot)
      .with("state", e.state)
      .with("key", e.key)
      .with("checksum", e.checksum);
}

template <typename Variant>
std::string text_of(const Variant& value) {
  return std::visit([](const auto& one) { return line(one).text(); }, value);
}

}  // namespace

std::string to_text(const ledger::Event& event) { return text_of(event); }
std::string to_text(const ledger::Effect& effect) { return text_of(effect); }

}  // namespace memdecay::reactor
