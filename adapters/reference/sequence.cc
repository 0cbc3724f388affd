// Steps over known tokens; see sequence.h.
#include "adapters/reference/sequence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

constexpr int kAttempts = 4;  // to begin a step with all pages there

}  // namespace

Sequence::Sequence(Decoder& decoder, PageStore& store, Promise promise, size_t chunk_tokens,
                   PhaseHook hook)
    : decoder_(decoder),
      store_(store),
      promise_(promise),
      chunk_tokens_(std::max<size_t>(1, chunk_tokens)),
      page_tokens_(decoder.layout().page_tokens),
      hook_(std::move(hook)) {}

void Sequence::adopt(std::span<const TokenId> tokens, std::optional<size_t> approximate_from,
                     uint64_t step) {
  MEMDECAY_CHECK(tokens_.empty() && tokens.size() % page_tokens_ == 0);
  tokens_.assign(tokens.begin(), tokens.end());
  computed_ = high_water_ = tokens_.size();
  sealed_pages_ = granted_pages_ = computed_ / page_tokens_;
  first_tainted_ = approximate_from;
  step_ = step;
}

void Sequence::append(std::span<const TokenId> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Sequence::accept(TokenId token) {
  tokens_.push_back(token);
  ++step_;
}

void Sequence::take_shared(size_t tokens) {
  MEMDECAY_CHECK(tokens % page_tokens_ == 0 && tokens >= computed_ && tokens <= tokens_.size());
  counters_.shared += tokens - computed_;
  computed_ = high_water_ = tokens;
  sealed_pages_ = granted_pages_ = tokens / page_tokens_;
}

absl::Status Sequence::catch_up() {
  while (computed_ < tokens_.size()) {
    const size_t count = std::min(chunk_tokens_, tokens_.size() - computed_);
    if (absl::Status status = compute(count); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool Sequence::has_holes(const PageTable& table) const {
  const auto end = table.read.begin() + static_cast<std::ptrdiff_t>(computed_ / page_tokens_);
  return std::find(table.read.begin(), end, nullptr) != end;
}

absl::Status Sequence::compute(size_t count) {
  const size_t pages = (computed_ + count + page_tokens_ - 1) / page_tokens_;
  if (pages > granted_pages_) {
    const auto more = static_cast<uint32_t>(pages - granted_pages_);
    if (absl::Status status = store_.extend(more); !status.ok()) return status;
    granted_pages_ = pages;
  }
  if (absl::Status status = begin_whole_step(); !status.ok()) return status;
  absl::StatusOr<std::optional<PageMasses>> masses = forward(count);
  StepReport report{.step = step_, .position = static_cast<uint32_t>(computed_)};
  if (masses.ok() && masses->has_value()) report.masses = &**masses;
  // Inside the step: no page leaves between being read and being sealed.
  absl::Status status = masses.ok() ? seal_full_pages() : masses.status();
  const absl::Status ended = store_.end_step(report);
  return status.ok() ? ended : status;
}

// Begins a step in which nothing is missing that must be there.
absl::Status Sequence::begin_whole_step() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (absl::Status status = store_.begin_step(); !status.ok()) return status;
    const absl::StatusOr<PageTable> table = store_.table();
    if (!table.ok()) return table.status();
    if (promise_ == Promise::kLossy || !has_holes(*table)) return absl::OkStatus();
    const StepReport nothing{.step = step_, .position = static_cast<uint32_t>(computed_)};
    if (absl::Status status = store_.end_step(nothing); !status.ok()) return status;
    if (absl::Status status = store_.await_pages(); !status.ok()) return status;
  }
  return make_error(ErrorCode::kInternal, absl::StrCat("compute position ", computed_),
                    "a page is missing in a session that is exact",
                    "unpark the session before computing");
}

absl::StatusOr<std::optional<PageMasses>> Sequence::forward(size_t count) {
  absl::StatusOr<PageTable> table = store_.table();
  if (!table.ok()) return table.status();
  const bool holes = has_holes(*table);
  MassRequest request;
  request.sealed_pages = sealed_pages_;
  request.choices = {observed_heads_};
  const Masses wanted = store_.masses_wanted(count > 1 ? Work::kPrefill : Work::kDecode);
  hook_(Phase::kWrite);
  const bool last = computed_ + count == tokens_.size();
  absl::StatusOr<ForwardOutput> out =
      decoder_.forward({.tokens = std::span<const TokenId>(tokens_).subspan(computed_, count),
                        .first_position = computed_,
                        .pages = *table,
                        .logits = last ? LogitRows::kLast : LogitRows::kNone,
                        .masses = wanted == Masses::kIgnored ? nullptr : &request});
  if (!out.ok()) return out.status();
  if (holes) first_tainted_ = std::min(first_tainted_.value_or(computed_), computed_);
  if (holes) counters_.with_holes += count;
  const size_t again = std::min(high_water_, computed_ + count);
  if (again > computed_) counters_.recomputed += again - computed_;
  counters_.forwarded += count;
  computed_ += count;
  high_water_ = std::max(high_water_, computed_);
  if (last) {
    logits_ = std::move(out->logits);
    logits_of_ = computed_;
  }
  if (out->masses.empty()) return std::nullopt;
  if (count > 1) return std::move(out->masses.front());
  window_.add(out->masses.front());
  if (wanted != Masses::kReported) return std::nullopt;
  return window_.take(table->read);
}

absl::Status Sequence::seal_full_pages() {
  const size_t full = computed_ / page_tokens_;
  // Pages before the first tainted one and from it on are two claims.
  const size_t tainted = first_tainted_ ? *first_tainted_ / page_tokens_ : full;
  while (sealed_pages_ < full) {
    const bool clean = sealed_pages_ < tainted;
    const size_t end = clean ? std::min(full, tainted) : full;
    const std::span<const TokenId> tokens = std::span<const TokenId>(tokens_).subspan(
        sealed_pages_ * page_tokens_, (end - sealed_pages_) * page_tokens_);
    const Holes unmarred = promise_ == Promise::kExact ? Holes::kNone : Holes::kUnsaid;
    const absl::Status status =
        store_.seal(static_cast<PageIndex>(sealed_pages_), tokens, clean ? unmarred : Holes::kSome);
    if (!status.ok()) return status;
    sealed_pages_ = end;
    hook_(Phase::kSeal);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Sequence::logits() {
  if (tokens_.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "logits", "no tokens are known",
                      "give the session a prompt first");
  }
  if (computed_ == tokens_.size() && logits_of_ != computed_) {
    if (computed_ > sealed_pages_ * page_tokens_) {
      --computed_;  // its page is still open: the same bits are written again
    } else if (absl::Status status = discard(computed_ - 1); !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = catch_up(); !status.ok()) return status;
  return std::span<const float>(logits_);
}

absl::Status Sequence::truncate(size_t count) {
  if (count >= tokens_.size()) return absl::OkStatus();
  absl::Status status;
  if (count < computed_) status = discard(count);
  tokens_.resize(count);
  high_water_ = std::min(high_water_, count);
  return status;
}

absl::Status Sequence::discard(size_t position) {
  const size_t page = position / page_tokens_;
  if (position >= computed_) return absl::OkStatus();
  if (absl::Status status = store_.truncate(page * page_tokens_); !status.ok()) return status;
  computed_ = page * page_tokens_;
  sealed_pages_ = std::min(sealed_pages_, page);
  granted_pages_ = page;
  if (first_tainted_ && *first_tainted_ >= computed_) first_tainted_.reset();
  logits_of_ = 0;
  window_.clear();  // it may know pages that are gone
  return absl::OkStatus();
}

}  // namespace memdecay::reference
