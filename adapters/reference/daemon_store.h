// A session's pages in slots that memdecayd owns, through libmemdecay's C interface.
//
// Why: shows what an engine has to do, and all it has to do: extend, write, seal, bracket steps,
// park and unpark. Attention reads the slots themselves; there is no copy of K or V here.
// Thread: one.
// Invariants: a store has one session; an exact session computes only when it is ready; when the
// pool has no room this session steps back (parks as preempted) until it has, so that sessions that
// share too little memory take turns.
// Not here: which pages leave (the daemon decides), what is computed (sequence.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/layout_identity.h"
#include "adapters/reference/page_store.h"
#include "client/memdecay.hpp"

namespace memdecay::reference {

struct DaemonOptions {
  std::string socket_dir;  // empty: the client's default
  std::string engine_name = "memdecay-engine";
  std::string session;  // name; empty: the daemon makes one
  std::string resume;   // name or id of a session to go on with; empty: open a new one
  bool steal = false;   // resume it although its engine lives
  bool lossy = false;
  uint32_t budget_pages = 0;
  uint32_t observe_every = 16;
  // A report tells of all queries since the last one, or of the step's own.
  enum class Queries : uint8_t { kSinceLast, kOwn } queries = Queries::kSinceLast;
  uint32_t grants_ahead = 2;
  bool lockstep = false;
  int32_t patience_ms = 600'000;  // longest wait for room or for pages to come back
};

class DaemonStore final : public PageStore {
 public:
  static absl::StatusOr<std::unique_ptr<DaemonStore>> open(const DaemonOptions& options,
                                                           const LayoutIdentity& layout,
                                                           PhaseHook hook);
  // The content stays and can be resumed, unless forget() was called.
  ~DaemonStore() override = default;

  absl::Status extend(uint32_t pages) override;
  absl::Status begin_step() override;
  absl::StatusOr<PageTable> table() override;
  Masses masses_wanted(Work work) const override;
  absl::Status seal(PageIndex first, std::span<const TokenId> tokens, Holes holes) override;
  absl::Status end_step(const StepReport& report) override;
  absl::Status truncate(size_t tokens) override;
  absl::Status tag(std::span<const PageTag> tags) override;
  absl::Status park(SessionState why) override;
  absl::Status unpark() override;
  absl::Status await_pages() override;
  absl::StatusOr<PageCounts> counts() override;

  memdecay_session_info info() const { return session_.info(); }
  std::span<const memdecay_page> pages() const { return session_.pages(); }
  uint32_t preemptions() const { return preemptions_; }
  uint32_t late_pages() const { return late_pages_; }
  bool parked() const { return parked_; }
  // Waits until all pages that the mode demands are there. data_loss: one is gone for ever.
  absl::Status wait_ready();
  // Maps what others have sealed of these tokens; the number of leading tokens that are there now.
  absl::StatusOr<size_t> acquire(std::span<const TokenId> tokens);
  // Never a victim while the session runs. quota: the tenant may not pin more.
  absl::Status pin(PageIndex page);
  absl::Status evict(std::span<const PageIndex> pages);
  absl::StatusOr<memdecay_restore_result> restore(std::span<const PageIndex> pages);
  absl::StatusOr<memdecay_repair_info> repair();
  absl::Status set_budget(uint32_t pages);
  absl::Status set_mode(Mode mode);
  void forget() { session_.at_end(engine::AtEnd::kForget); }
  // The first page whose bytes are gone.
  std::optional<PageIndex> first_dropped() const;

 private:
  DaemonStore(DaemonOptions options, const LayoutIdentity& layout, PhaseHook hook);
  absl::Status connect();
  absl::Status step_back();
  absl::Status refusals();

  DaemonOptions options_;
  const LayoutIdentity& layout_;
  PhaseHook hook_;
  engine::Client client_;
  engine::Session session_;  // goes before the client
  bool parked_ = false;
  uint32_t preemptions_ = 0;
  uint32_t late_pages_ = 0;
  std::vector<const std::byte*> read_;
  std::vector<std::byte*> write_;
  std::vector<memdecay_mass> masses_;
};

}  // namespace memdecay::reference
