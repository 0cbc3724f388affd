// Forward passes in batches, handed out as single steps; see episode_pass.h.
#include "tests/eval/episode_pass.h"

#include <algorithm>
#include <utility>

namespace memdecay::eval {
namespace {

class Pass {
 public:
  Pass(reference::Decoder& decoder, const Scenario& scenario,
       std::vector<reference::HeadChoice> choices, const TakeStep& take)
      : decoder_(decoder), scenario_(scenario), choices_(std::move(choices)), take_(take) {}

  // `group`: queries of one step.
  absl::Status compute(const reference::PageTable& pages, size_t begin, size_t end, size_t group) {
    const reference::MassRequest request{
        .sealed_pages = begin / kPageTokens, .choices = choices_, .group_queries = group};
    const absl::StatusOr<reference::ForwardOutput> out =
        decoder_.forward({.tokens = std::span(scenario_.tokens).subspan(begin, end - begin),
                          .first_position = begin,
                          .pages = pages,
                          .logits = reference::LogitRows::kNone,
                          .masses = &request});
    if (!out.ok()) return out.status();
    const std::span<const reference::PageMasses> masses = out->masses;
    for (size_t at = begin; at < end; at += group) {
      const SeenStep seen{
          .step = at < scenario_.prefill_tokens ? 0 : at - scenario_.prefill_tokens + 1,
          .begin = at,
          .end = at + group,
          .masses = masses.subspan((at - begin) / group * choices_.size(), choices_.size())};
      if (absl::Status status = take_(seen); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  reference::Decoder& decoder_;
  const Scenario& scenario_;
  std::vector<reference::HeadChoice> choices_;
  const TakeStep& take_;
};

}  // namespace

absl::Status pass_episode(reference::Decoder& decoder, const Scenario& scenario,
                          std::vector<reference::HeadChoice> choices, reference::PageStore& store,
                          const TakeStep& take) {
  absl::Status status = store.extend(static_cast<uint32_t>(scenario.pages()));
  if (!status.ok()) return status;
  const absl::StatusOr<reference::PageTable> pages = store.table();
  if (!pages.ok()) return pages.status();
  Pass pass(decoder, scenario, std::move(choices), take);
  const size_t prefilled = scenario.prefill_tokens;
  const size_t all = scenario.tokens.size();
  for (size_t at = 0; status.ok() && at < prefilled; at += kChunkTokens) {
    const size_t end = std::min(at + kChunkTokens, prefilled);
    status = pass.compute(*pages, at, end, end - at);
  }
  for (size_t at = prefilled; status.ok() && at < all; at += kChunkTokens) {
    status = pass.compute(*pages, at, std::min(at + kChunkTokens, all), 1);
  }
  return status;
}

}  // namespace memdecay::eval
