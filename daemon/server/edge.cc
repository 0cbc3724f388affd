// See edge.h.
#include "daemon/server/edge.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace memdecay::server {

RequestId Edge::expect(Answer answer) {
  const RequestId request = reactor_->next_request();
  const absl::MutexLock lock(&mutex_);
  waiting_.emplace(request, std::move(answer));
  return request;
}

Edge::Answer Edge::take(RequestId request) {
  const absl::MutexLock lock(&mutex_);
  const auto found = waiting_.find(request);
  if (found == waiting_.end()) return nullptr;
  Answer answer = std::move(found->second);
  waiting_.erase(found);
  return answer;
}

void Edge::fail(RequestId request, const absl::Status& status) {
  errors_.count(status);
  if (Answer answer = take(request)) answer({request, status, ledger::Done{}});
}

void Edge::ask(RequestId request, absl::StatusOr<ledger::Event> event) {
  absl::Status status = event.status();
  if (status.ok()) status = reactor_->post_request(*std::move(event));
  if (!status.ok()) fail(request, status);
}

void Edge::fail_all(const absl::Status& status) {
  absl::flat_hash_map<RequestId, Answer> all;
  {
    const absl::MutexLock lock(&mutex_);
    all.swap(waiting_);
  }
  for (auto& [request, answer] : all) answer({request, status, ledger::Done{}});
}

size_t Edge::waiting() const {
  const absl::MutexLock lock(&mutex_);
  return waiting_.size();
}

void Edge::reply(const ledger::Reply& reply) {
  if (Answer answer = take(reply.request)) answer(reply);
}

void Edge::notify(const ledger::Notice& notice) { engines_.notify(notice); }

void Edge::share_slab(const ledger::ShareSlab& share) {
  engines_.remember_slab(share);
  const bool writable = share.access == ledger::ShareSlab::Access::kReadWrite;
  absl::StatusOr<SlabHandle> slab =
      memory_.export_slab(share.slab, writable ? SlabAccess::kWritable : SlabAccess::kReadOnly);
  if (slab.ok()) {
    handles_->send_slab(share.engine, *std::move(slab));
  } else {
    errors_.count(slab.status());
  }
}

void Edge::stepped(const ledger::Event& event) {
  if (const auto* unmapped = std::get_if<ledger::SlabUnmapped>(&event)) {
    engines_.forget_slab(unmapped->origin.engine, unmapped->slab);
  }
  const auto* const disconnected = std::get_if<ledger::Disconnected>(&event);
  if (disconnected == nullptr) return;
  const EngineId engine = disconnected->engine;
  if (engines_.disconnected_stepped(engine) != EngineTable::Farewell::kOver) return;
  // What has passed, counts: its fences are reported before its end.
  memory_.last_look(engine);
  reactor_->complete(ledger::EngineGone{engine});
}

std::vector<SlabHandle> Edge::slabs_for_member(EngineId engine) {
  std::vector<SlabHandle> slabs;
  for (const ledger::ShareSlab& share : engines_.slabs_of(engine)) {
    const bool writable = share.access == ledger::ShareSlab::Access::kReadWrite;
    absl::StatusOr<SlabHandle> slab =
        memory_.export_slab(share.slab, writable ? SlabAccess::kWritable : SlabAccess::kReadOnly);
    if (slab.ok()) {
      slabs.push_back(*std::move(slab));
    } else {
      engines_.forget_slab(engine, share.slab);  // destroyed meanwhile
    }
  }
  return slabs;
}

}  // namespace memdecay::server
