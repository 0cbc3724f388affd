// See copier.h.
#include "daemon/tiers/copier.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::tiers {
namespace {

// A replica that was counted on and is not there is as bad as a damaged one.
absl::Status lost(ContentId content, const absl::Status& status) {
  if (error_code(status) != ErrorCode::kNotFound) return status;
  return make_error(ErrorCode::kDataLoss, absl::StrCat("host replica of content ", content.value),
                    "it is gone", "recompute the page");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Copier>> Copier::create(cuda::Device& device, DeviceTier& slabs,
                                                       HostTier& host, Ended ended) {
  std::unique_ptr<Copier> copier(new Copier(slabs, host, std::move(ended)));
  absl::StatusOr<std::unique_ptr<cuda::Mover>> mover =
      device.create_mover({.queue_capacity = base::limits::kCopiesInFlight},
                          [ended_call = copier->ended_](const cuda::MoveCompletion& done) {
                            ended_call(CopyOutcome{done.id, done.status, done.checksum});
                          });
  if (!mover.ok()) return mover.status();
  copier->mover_ = *std::move(mover);
  return copier;
}

Copier::~Copier() {
  mover_.reset();
  for (auto& [id, copy] : copies_) let_go(*copy);
}

absl::StatusOr<cuda::MoveRequest> Copier::prepare(Copy& copy) {
  const CopyOrder& order = copy.order;
  const absl::StatusOr<SlabShape> shape = slabs_.shape(order.slab);
  if (!shape.ok()) return shape.status();
  if (shape->page_bytes != order.bytes) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("copy ", order.bytes, " bytes"),
                      absl::StrCat("pages of the slab have ", shape->page_bytes));
  }
  const absl::StatusOr<std::byte*> slot = slabs_.address(order.slab, order.index);
  if (!slot.ok()) return slot.status();
  cuda::MoveRequest move{
      .id = order.id, .bytes = order.bytes, .checksum = cuda::ChecksumMode::kTake};
  switch (order.direction) {
    case CopyDirection::kToHost: {
      absl::StatusOr<HostTier::Record> record = host_.reserve(order.bytes);
      if (!record.ok()) return record.status();
      copy.record = *record;
      move.from = *slot;
      move.to = record->page();
      break;
    }
    case CopyDirection::kToDevice: {
      absl::StatusOr<HostTier::Record> record = host_.begin_read(order.content);
      if (!record.ok()) return lost(order.content, record.status());
      copy.record = *record;
      move.from = record->page();
      move.to = *slot;
      if (record->page_bytes != order.bytes) {
        host_.end_read(*record, order.content, std::nullopt).IgnoreError();
        return make_error(ErrorCode::kInternal, absl::StrCat("restore ", order.bytes, " bytes"),
                          absl::StrCat("the replica has ", record->page_bytes));
      }
      break;
    }
    case CopyDirection::kVerify:
      copy.scratch.resize(order.bytes);
      move.from = *slot;
      move.to = copy.scratch.data();
      break;
  }
  return move;
}

void Copier::start(const CopyOrder& order) {
  MEMDECAY_CHECK(!copies_.contains(order.id));
  auto copy = std::make_unique<Copy>();
  copy->order = order;
  const absl::StatusOr<cuda::MoveRequest> move = prepare(*copy);
  if (!move.ok()) return ended_({order.id, move.status(), std::nullopt});
  slabs_.hold(order.slab);
  const Copy& started = *copies_.emplace(order.id, std::move(copy)).first->second;
  absl::Status submitted = mover_->submit(*move);
  if (submitted.ok()) return;
  let_go(started);
  copies_.erase(order.id);
  ended_({order.id, std::move(submitted), std::nullopt});
}

// Of a copy that moved nothing.
void Copier::let_go(const Copy& copy) {
  if (copy.order.direction == CopyDirection::kToHost) host_.abandon(copy.record);
  if (copy.order.direction == CopyDirection::kToDevice) {
    host_.end_read(copy.record, copy.order.content, std::nullopt).IgnoreError();
  }
  slabs_.release(copy.order.slab);
}

void Copier::cancel(CopyId id) {
  const auto at = copies_.find(id);
  if (at == copies_.end()) return;
  at->second->wanted = Copy::Wanted::kNo;
  if (mover_->cancel(id) == cuda::CancelResult::kCancelled) {
    ended_({id, absl::CancelledError("cancelled before it ran"), std::nullopt});
  }
}

void Copier::unwanted(ContentId content) {
  for (auto& [id, copy] : copies_) {
    if (copy->order.content == content) copy->wanted = Copy::Wanted::kNo;
  }
}

absl::Status Copier::finish_to_device(const Copy& copy, const CopyOutcome& outcome) {
  const CopyOrder& order = copy.order;
  absl::Status read = host_.end_read(copy.record, order.content, outcome.checksum);
  if (read.ok()) {
    if (outcome.checksum) totals_.to_device_bytes += order.bytes;
    return outcome.status;
  }
  // What the slot holds now may be no number at all: the next user must not multiply by it.
  slabs_.scrub(order.slab, order.index).IgnoreError();
  return read;
}

CopyOutcome Copier::finish(CopyOutcome outcome) {
  const auto at = copies_.find(outcome.id);
  if (at == copies_.end()) return outcome;
  const std::unique_ptr<Copy> copy = std::move(at->second);
  copies_.erase(at);
  switch (copy->order.direction) {
    case CopyDirection::kToHost:
      if (!outcome.status.ok() || !outcome.checksum) {
        host_.abandon(copy->record);
      } else if (copy->wanted == Copy::Wanted::kNo) {
        host_.abandon(copy->record);
        outcome.status = absl::CancelledError("nobody wants the replica");
      } else {
        host_.commit(copy->record, copy->order.content, *outcome.checksum);
        totals_.to_host_bytes += copy->order.bytes;
      }
      break;
    case CopyDirection::kToDevice:
      outcome.status = finish_to_device(*copy, outcome);
      break;
    case CopyDirection::kVerify:
      break;
  }
  slabs_.release(copy->order.slab);
  return outcome;
}

}  // namespace memdecay::tiers
