// The Edge port of the reactor: routes answers to whoever waits for them, notices and slabs to the
// engine they are for. Also what all edges share: pending requests and counts of refusals.
// Thread: reply(), notify(), share_slab() on the reactor's; everything else on any. A waiting
// caller's function runs on the reactor's thread, without locks held, and must not block.
// Invariant: every expected request is answered exactly once (at the latest by fail_all()).
// Not here: engines' streams (engine_table.h), descriptors on their way (handle_server.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/reactor/ports.h"
#include "daemon/reactor/reactor.h"
#include "daemon/server/engine_table.h"
#include "daemon/server/shared_memory.h"
#include "proto/contract/error.h"

namespace memdecay::server {

// Refusals by the edges themselves, by code; the ledger counts its own.
class ErrorCounts {
 public:
  void count(const absl::Status& status) { ++counts_[static_cast<size_t>(error_code(status))]; }
  uint64_t of(ErrorCode code) const { return counts_[static_cast<size_t>(code)].load(); }

 private:
  std::array<std::atomic<uint64_t>, kErrorCodes> counts_{};
};

// Takes descriptors to the members of an engine (handle_server.h).
class HandleLink {
 public:
  virtual ~HandleLink() = default;
  virtual void send_slab(EngineId engine, SlabHandle slab) = 0;
};

class Edge final : public reactor::Edge {
 public:
  using Answer = absl::AnyInvocable<void(const ledger::Reply&)>;

  Edge(EngineTable& engines, SharedMemory& memory) : engines_(engines), memory_(memory) {}
  // Before the first event.
  void bind(reactor::Reactor& reactor, HandleLink& handles) {
    reactor_ = &reactor;
    handles_ = &handles;
  }

  reactor::Reactor& reactor() { return *reactor_; }
  EngineTable& engines() const { return engines_; }
  ErrorCounts& errors() { return errors_; }

  // A request number whose reply runs `answer`.
  RequestId expect(Answer answer);
  // Runs its `answer` with this error now (the event could not be made or posted).
  void fail(RequestId request, const absl::Status& status);
  // Posts on the request lane; on failure the request fails.
  void ask(RequestId request, absl::StatusOr<ledger::Event> event);
  void fail_all(const absl::Status& status);
  size_t waiting() const;

  void reply(const ledger::Reply& reply) override;
  void notify(const ledger::Notice& notice) override;
  void share_slab(const ledger::ShareSlab& share) override;
  // After every step: an engine whose last word has been stepped is gone.
  void stepped(const ledger::Event& event);
  // Sends the slabs that an engine has to a member that came later. Reactor's thread.
  std::vector<SlabHandle> slabs_for_member(EngineId engine);

 private:
  Answer take(RequestId request);

  EngineTable& engines_;
  SharedMemory& memory_;
  reactor::Reactor* reactor_ = nullptr;
  HandleLink* handles_ = nullptr;
  ErrorCounts errors_;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<RequestId, Answer> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::server
