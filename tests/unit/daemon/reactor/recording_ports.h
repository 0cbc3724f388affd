// Ports that write down how they are called, one line a call.
// Thread: the reactor's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/reactor/ports.h"
#include "daemon/reactor/trace.h"

namespace memdecay::reactor {

struct RecordingPorts final : public Edge, public Bytes, public Fences {
  std::vector<std::string> calls;
  absl::Status slab_status;
  std::function<std::optional<ledger::CopyDone>(ledger::CopyDone)> on_finish;
  std::function<void(const ledger::Reply&)> on_reply;

  void reply(const ledger::Reply& reply) override {
    calls.push_back(to_text(reply));
    if (on_reply) on_reply(reply);
  }
  void notify(const ledger::Notice& notice) override { calls.push_back(to_text(notice)); }
  void share_slab(const ledger::ShareSlab& share) override { calls.push_back(to_text(share)); }
  absl::Status create_slab(const ledger::CreateSlab& slab) override {
    calls.push_back(to_text(slab));
    return slab_status;
  }
  void destroy_slab(SlabId slab) override { calls.push_back(to_text(ledger::DestroySlab{slab})); }
  void start_copy(const ledger::StartCopy& copy) override { calls.push_back(to_text(copy)); }
  void cancel_copy(CopyId copy) override { calls.push_back(to_text(ledger::CancelCopy{copy})); }
  std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) override {
    calls.push_back("finish " + std::to_string(done.copy.value));
    if (on_finish) return on_finish(std::move(done));
    return done;
  }
  void drop_host(ContentId content) override {
    calls.push_back(to_text(ledger::DropHost{content}));
  }
  void shadow_row(const ledger::ShadowRow& row) override { calls.push_back(to_text(row)); }
  void watch(EngineId engine, const Fence& fence) override {
    calls.push_back(to_text(ledger::WatchFence{engine, fence}));
  }
};

class ManualClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void set(Instant now) { now_ = now; }
  void advance(Duration by) { now_ = now_ + by; }

 private:
  Instant now_{1'000'000'000};
};

}  // namespace memdecay::reactor
