// One pass backwards, in place (see future.h).
#include "client/ctl/replay/future.h"

namespace memdecay::ctl {
namespace {

constexpr uint32_t kNoReference = 0xffffffff;

}  // namespace

void Future::add(absl::Span<const uint64_t> blocks, TraceRequest::Kind kind) {
  for (const uint64_t block : blocks) {
    stored_.push_back(kind == TraceRequest::Kind::kStored);
    const auto fresh = static_cast<uint32_t>(numbers_.size());
    next_.push_back(numbers_.try_emplace(block, fresh).first->second);
  }
}

void Future::close() {
  std::vector<uint32_t> later(numbers_.size(), kNoReference);
  absl::flat_hash_map<uint64_t, uint32_t>().swap(numbers_);
  for (size_t at = next_.size(); at-- > 0;) {
    const uint32_t number = next_[at];
    next_[at] = later[number];
    later[number] = stored_[at] ? kNoReference : static_cast<uint32_t>(at);
  }
}

uint64_t Future::next(uint64_t reference) const {
  const uint32_t next = next_.at(reference);
  return next == kNoReference ? kNever : next;
}

}  // namespace memdecay::ctl
