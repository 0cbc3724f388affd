// See ledger_world.h.
#include "tests/bench/ledger_world.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "proto/contract/check.h"
#include "tests/bench/timing.h"

namespace memdecay::bench {
namespace {

constexpr Duration kBetweenSteps{1000};
constexpr uint32_t kPageTokens = 16;
constexpr uint64_t kPageBytes = 368'640;
constexpr uint32_t kBatch = 64;
constexpr TenantId kTenant{1};

ledger::LayoutRef layout() {
  ledger::LayoutRef out{.page_tokens = kPageTokens, .page_bytes = kPageBytes};
  out.name_space.bytes[0] = 1;
  return out;
}

std::vector<PageIndex> first_of(const std::vector<std::pair<PageIndex, Reason>>& pages) {
  std::vector<PageIndex> out;
  for (const auto& [page, reason] : pages) out.push_back(page);
  return out;
}

}  // namespace

LedgerWorld::LedgerWorld(ledger::Options options) : ledger_(std::move(options)) {
  const ledger::Reply& attached = call(
      ledger::Attach{.origin = {.request = {++last_request_}, .tenant = kTenant}, .name = "bench"});
  const auto& body = std::get<ledger::AttachReply>(attached.body);
  engine_ = body.engine;
  epoch_ = body.epoch;
}

ledger::Origin LedgerWorld::origin() {
  return {.request = {++last_request_}, .tenant = kTenant, .engine = engine_, .epoch = epoch_};
}

double LedgerWorld::step(const ledger::Event& event) {
  now_ = now_ + kBetweenSteps;
  const Stopwatch watch;
  ledger_.step(now_, event, effects_);
  const std::vector<trace::Event> tape = ledger_.take_tape();  // as the reactor does
  return watch.nanoseconds();
}

void LedgerWorld::record() { ledger_.start_tape(now_, {.salt = {1, 2}}); }

void LedgerWorld::stop_recording() { ledger_.stop_tape(); }

void LedgerWorld::settle() {
  for (size_t done = 0; done < effects_.size(); ++done) {
    const ledger::Effect effect = effects_[done];  // answers append to the list
    answer(effect);
  }
  effects_.clear();
  const auto due = ledger_.next_deadline();
  if (due.has_value() && *due <= now_) step(ledger::Tick{});
}

const ledger::Reply& LedgerWorld::call(const ledger::Event& event) {
  step(event);
  settle();
  return reply_;
}

void LedgerWorld::answer(const ledger::Effect& effect) {
  if (const auto* reply = std::get_if<ledger::Reply>(&effect)) {
    if (!reply->status.ok()) std::fprintf(stderr, "%s\n", reply->status.ToString().c_str());
    MEMDECAY_CHECK(reply->status.ok());
    reply_ = *reply;
  } else if (const auto* notice = std::get_if<ledger::Notice>(&effect)) {
    answer_notice(*notice);
  } else if (const auto* copy = std::get_if<ledger::StartCopy>(&effect)) {
    step(ledger::CopyDone{.copy = copy->copy, .checksum = {.low = copy->content.value}});
  } else if (const auto* fence = std::get_if<ledger::WatchFence>(&effect)) {
    step(ledger::FencePassed{fence->engine, fence->fence});
  }
}

void LedgerWorld::answer_notice(const ledger::Notice& notice) {
  if (const auto* evict = std::get_if<ledger::EvictNotice>(&notice.body)) {
    step(ledger::GaveUp{.origin = origin(),
                        .session = notice.session,
                        .decision = evict->decision,
                        .pages = first_of(evict->pages)});
  } else if (const auto* slab = std::get_if<ledger::UnmapSlabNotice>(&notice.body)) {
    step(ledger::SlabUnmapped{.origin = origin(), .slab = slab->slab});
  }
}

SessionId LedgerWorld::open(const std::string& name, Mode mode, uint32_t pages) {
  const ledger::Reply& opened =
      call(ledger::OpenSession{.origin = origin(), .name = name, .layout = layout(), .mode = mode});
  const SessionId session = std::get<ledger::SessionReply>(opened.body).session;
  grow(session, pages);
  return session;
}

void LedgerWorld::grow(SessionId session, uint32_t pages) {
  while (pages > 0) {
    const uint32_t batch = std::min(pages, kBatch);
    pages -= batch;
    const ledger::Reply& granted =
        call(ledger::Extend{.origin = origin(), .session = session, .pages = batch});
    const PageIndex first = std::get<ledger::GrantReply>(granted.body).pages.front().page;
    call(seal(session, first, batch));
  }
}

ledger::Seal LedgerWorld::seal(SessionId session, PageIndex page, uint32_t pages) {
  ledger::Seal out{.origin = origin(), .session = session, .first_page = page, .pages = pages};
  for (uint32_t i = 0; i < pages * kPageTokens; ++i) out.tokens.push_back(++last_token_);
  return out;
}

ledger::Observe LedgerWorld::observation(SessionId session, uint32_t pages) {
  ledger::Observe out{.origin = origin(), .session = session, .step = 1, .queries = 1};
  for (PageIndex page = 0; page < pages; ++page) out.masses.emplace_back(page, 1.0 / pages);
  return out;
}

void LedgerWorld::observe(SessionId session, uint32_t pages) { call(observation(session, pages)); }

}  // namespace memdecay::bench
