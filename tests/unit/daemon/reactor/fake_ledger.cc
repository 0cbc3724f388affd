// See fake_ledger.h.
#include "tests/unit/daemon/reactor/fake_ledger.h"

#include "daemon/reactor/trace.h"
#include "proto/contract/error.h"

namespace memdecay::ledger {

Ledger::Ledger(Options) : state_(std::make_unique<State>()) {}
Ledger::~Ledger() = default;

void Ledger::step(Instant now, const Event& event, Effects& effects) {
  state_->seen.push_back(reactor::to_text(event));
  state_->times.push_back(now);
  if (const auto* attach = std::get_if<Attach>(&event)) {
    effects.push_back(CreateSlab{SlabId{1}, TenantId{1}, {}, 64, 2});
    effects.push_back(ShareSlab{EngineId{1}, SlabId{1}, ShareSlab::Access::kReadWrite});
    effects.push_back(Reply{attach->origin.request, absl::OkStatus(), AttachReply{}});
  }
  if (std::holds_alternative<EvictPages>(event)) {
    effects.push_back(StartCopy{CopyId{1}, CopyKind::kEvict, ContentId{1}, {SlabId{1}, 0, 1}, 64});
    effects.push_back(CancelCopy{CopyId{1}});
    effects.push_back(DropHost{ContentId{1}});
    effects.push_back(WatchFence{EngineId{1}, {0, 0, 5}});
    effects.push_back(ShadowRow{{SlabId{1}, 0, 1}, SlotState::kFree, {}, {}});
    effects.push_back(DestroySlab{SlabId{1}});
    effects.push_back(Notice{EngineId{1}, SessionId{1}, ReadyNotice{}});
  }
  if (const auto* written = std::get_if<Written>(&event)) {
    state_->deadline = now + Duration::from_milliseconds(written->position);
    state_->stuck = written->position == 999;
  }
  if (std::holds_alternative<Tick>(event) && !state_->stuck) state_->deadline.reset();
}

std::vector<trace::Event> Ledger::take_tape() { return {}; }

std::optional<Instant> Ledger::next_deadline() const { return state_->deadline; }

absl::Status Ledger::reconfigure(Instant, const Options& options, Effects& effects) {
  if (options.device_pages == 0) return make_error(ErrorCode::kInvalidArgument, "no pages");
  effects.push_back(Notice{EngineId{1}, SessionId{}, BudgetNotice{options.device_pages}});
  return absl::OkStatus();
}

}  // namespace memdecay::ledger
