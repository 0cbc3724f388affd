// What the reactor needs of the world, as narrow ports: the engines' side, copies, slabs, fences.
// The daemon plugs in sockets, movers and devices, simulation plugs in its own; the reactor and the
// ledger are the same in both. Calls are made on the reactor's thread, never block, and report back
// through Reactor::complete().
// Thread: the reactor's.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "daemon/base/clock.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "proto/contract/clock.h"
#include "proto/contract/ids.h"

namespace memdecay::reactor {

// Engines and callers: where replies, notices and descriptors go.
class Edge {
 public:
  virtual ~Edge() = default;
  virtual void reply(const ledger::Reply& reply) = 0;
  virtual void notify(const ledger::Notice& notice) = 0;
  // Sends the slab's descriptor to the engine's members.
  virtual void share_slab(const ledger::ShareSlab& share) = 0;
};

// Slabs and bytes. Failures to create a slab are answered at once (the reactor tells the ledger as
// SlabFailed); every copy is answered once through Reactor::complete(CopyDone), cancelled ones too.
// Memory that a copy uses stays until that copy has ended, whatever is destroyed or dropped before.
class Bytes {
 public:
  virtual ~Bytes() = default;
  virtual absl::Status create_slab(const ledger::CreateSlab& slab) = 0;
  virtual void destroy_slab(SlabId slab) = 0;
  virtual void start_copy(const ledger::StartCopy& copy) = 0;
  virtual void cancel_copy(CopyId copy) = 0;
  // The reactor hands every CopyDone through here before the ledger sees it: book-keeping on the
  // reactor's thread. Returns what the ledger is told (a verification may have failed), or nothing.
  virtual std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) = 0;
  virtual void drop_host(ContentId content) = 0;
  virtual void shadow_row(const ledger::ShadowRow& row) = 0;
};

// Fences of engines: reports FencePassed through Reactor::complete(), possibly at once.
class Fences {
 public:
  virtual ~Fences() = default;
  virtual void watch(EngineId engine, const Fence& fence) = 0;
};

using Clock = base::Clock;

}  // namespace memdecay::reactor
