// The ledger's front: one event in, effects out, the pump after every step (see ledger.h).
#include "daemon/ledger/ledger.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/pump.h"
#include "daemon/ledger/slots.h"

namespace memdecay::ledger {
namespace {

absl::Status check_reservations(const Options& options) {
  uint64_t sum = 0;
  for (const TenantOptions& tenant : options.tenants) sum += tenant.reservation_pages;
  if (sum <= options.device_pages) return absl::OkStatus();
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat("reservations of ", sum, " pages together"),
                    absl::StrCat("the pool has ", options.device_pages),
                    "lower tenants[].reservation or raise device.pages");
}

// The reservations in force: what was promised, scaled to a pool that shrank.
void set_reservations(State& state) {
  uint64_t promised = 0;
  for (const auto& [id, tenant] : state.tenants) promised += tenant.options.reservation_pages;
  for (auto& [id, tenant] : state.tenants) {
    const uint64_t wanted = tenant.options.reservation_pages;
    const uint64_t capacity = state.options.device_pages;
    tenant.reservation_pages =
        static_cast<uint32_t>(promised <= capacity ? wanted : wanted * capacity / promised);
  }
}

void set_tenants(State& state) {
  uint32_t next = 1;
  for (const TenantOptions& options : state.options.tenants) {
    Tenant& tenant = state.tenants[TenantId{next}];
    tenant.id = TenantId{next++};
    tenant.options = options;
  }
  set_reservations(state);
}

// To the choice of sessions, and to policies with regions that age by the wall clock.
void tell_time(Context& context) {
  context.state.now = context.now;
  if (!context.state.tells_time) return;
  for (auto& [id, session] : context.state.sessions) {
    if (!session->policy->counts_seconds()) continue;
    session->policy->on_seconds(
        static_cast<double>(context.now.nanoseconds - session->opened.nanoseconds) * 1e-9);
  }
}

// What a running daemon cannot change.
absl::Status check_reload(const Options& now, const Options& next) {
  const auto fixed = [](std::string_view key) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat(std::string(key), " changed"),
                      "it is fixed while the daemon runs", "restart the daemon with it");
  };
  if (now.page_tokens != next.page_tokens) return fixed("page_tokens");
  if (now.slab_pages != next.slab_pages) return fixed("device.slab_pages");
  if (next.tenants.size() < now.tenants.size()) return fixed("tenants (fewer of them)");
  for (size_t i = 0; i < now.tenants.size(); ++i) {
    if (now.tenants[i].name != next.tenants[i].name) return fixed("a tenant's name or place");
  }
  const bool shrinks = next.device_pages < now.device_pages;
  return shrinks ? absl::OkStatus() : check_reservations(next);
}

}  // namespace

Ledger::Ledger(Options options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  set_tenants(*state_);
  size_keep(*state_);
}

Ledger::~Ledger() = default;

void Ledger::step(Instant now, const Event& event, Effects& effects) {
  Context context{*state_, now, effects};
  tell_time(context);
  std::visit([&context](const auto& what) { apply(context, what); }, event);
  pump(context);
  stamp_tape(*state_, now);
}

std::optional<Instant> Ledger::next_deadline() const {
  if (state_->timers.empty()) return std::nullopt;
  return state_->timers.begin()->when;
}

absl::Status Ledger::reconfigure(Instant now, const Options& options, Effects& effects) {
  absl::Status status = check_reload(state_->options, options);
  if (!status.ok()) return status;
  status = policy::make_policy(options.policy).status();
  if (!status.ok()) return status;
  state_->options = options;
  set_tenants(*state_);
  size_keep(*state_);
  for (auto& [id, content] : state_->contents) refresh_ranks(*state_, *content);
  Context context{*state_, now, effects};
  tell_time(context);
  shrink_to_capacity(context);
  trim_host(context);
  pump(context);
  stamp_tape(*state_, now);
  return absl::OkStatus();
}

void Ledger::start_tape(Instant now, TapeOptions options) {
  state_->tape = std::make_unique<Tape>(Tape{.options = std::move(options), .began = now});
}

void Ledger::stop_tape() { state_->tape.reset(); }

std::vector<trace::Event> Ledger::take_tape() {
  if (state_->tape == nullptr) return {};
  state_->tape->stamped = 0;
  return std::exchange(state_->tape->events, {});
}

void Ledger::truncate_keys_for_test(int bits) { state_->key_bits = std::clamp(bits, 1, 256); }

}  // namespace memdecay::ledger
