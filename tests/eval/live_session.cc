// Calls of the engine's store; see live_session.h.
#include "tests/eval/live_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/reference/model.h"
#include "proto/contract/error.h"

namespace memdecay::eval {
namespace {

constexpr uint32_t kSparePages = 8;
constexpr int kMostSteps = 1000;  // without tokens, until a budget holds

}  // namespace

absl::StatusOr<reference::HeadChoice> channel_heads(const std::string& channel,
                                                    const reference::ModelShape& shape) {
  // L20H3+L21H0 is 20:3,21:0 in the engine's words.
  const std::string words = channel.starts_with("L")
                                ? absl::StrReplaceAll(channel, {{"L", ""}, {"H", ":"}, {"+", ","}})
                                : channel;
  return reference::parse_heads(words, shape.layers, shape.heads);
}

absl::StatusOr<std::unique_ptr<LiveSession>> LiveSession::open(
    const std::string& programs, const PlannedRun& run, const Scenario& scenario,
    const reference::LayoutIdentity& identity, uint32_t budget_pages) {
  std::unique_ptr<LiveSession> live(new LiveSession(run, scenario));
  const auto room = static_cast<uint32_t>(scenario.pages()) + kSparePages;
  std::vector<std::string> settings = run.daemon_settings(scenario.seed);
  settings.push_back(absl::StrCat("device.pages=", room));
  settings.push_back(absl::StrCat("host.pages=", room));
  auto process = bench::DaemonProcess::start(programs, settings);
  if (!process.ok()) return process.status();
  live->process_ = *std::move(process);
  const reference::DaemonOptions options{.socket_dir = live->process_->folder(),
                                         .engine_name = "memdecay-eval",
                                         .session = scenario.name(),
                                         .lossy = true,
                                         .budget_pages = budget_pages,
                                         .observe_every = 1,
                                         .grants_ahead = 0,
                                         .lockstep = true};
  auto store = reference::DaemonStore::open(options, identity, [](reference::Phase) {});
  if (!store.ok()) return store.status();
  live->store_ = *std::move(store);
  live->store_->forget();
  std::vector<reference::PageTag> tags;
  for (const reference::RegionSpan& span : scenario.spans) {
    tags.push_back(
        {static_cast<uint32_t>(span.begin), static_cast<uint32_t>(span.end), span.region});
  }
  if (absl::Status status = live->store_->tag(tags); !status.ok()) return status;
  return live;
}

absl::Status LiveSession::seal(size_t begin, size_t end, reference::Holes holes) {
  const size_t first = begin / kPageTokens;
  const size_t last = end / kPageTokens;
  if (first == last) return absl::OkStatus();
  const std::span<const TokenId> tokens(scenario_.tokens);
  return store_->seal(static_cast<PageIndex>(first),
                      tokens.subspan(first * kPageTokens, (last - first) * kPageTokens), holes);
}

absl::Status LiveSession::end_step(uint64_t step, size_t end, const reference::PageMasses& masses) {
  step_ = step;
  position_ = end;
  const bool observed =
      step == 0 ? run_.prefill == PlannedRun::Prefill::kObserved : step % run_.sampling == 0;
  reference::PageMasses report = masses;
  if (step > 0 && run_.queries == PlannedRun::Queries::kMean) {
    window_.add(masses);
    if (observed) {
      const absl::StatusOr<reference::PageTable> table = store_->table();
      if (!table.ok()) return table.status();
      report = window_.take(table->read);
    }
  }
  return store_->end_step({.step = step,
                           .position = static_cast<uint32_t>(end),
                           .masses = observed ? &report : nullptr});
}

absl::Status LiveSession::pin_facts() {
  for (const Fact& fact : scenario_.facts) {
    for (const PageIndex page : fact.pages) {
      if (absl::Status status = store_->pin(page); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<char>> LiveSession::resident() {
  const absl::StatusOr<reference::PageTable> table = store_->table();
  if (!table.ok()) return table.status();
  std::vector<char> out;
  for (const std::byte* address : table->read) out.push_back(address != nullptr ? 1 : 0);
  return out;
}

absl::Status LiveSession::shrink(uint32_t budget_pages) {
  budget_ = budget_pages;
  if (absl::Status status = store_->set_budget(budget_pages); !status.ok()) return status;
  return settle(budget_pages);
}

absl::Status LiveSession::settle(uint32_t pages) {
  for (int i = 0; i < kMostSteps; ++i) {
    const absl::StatusOr<reference::PageCounts> counts = store_->counts();
    if (!counts.ok()) return counts.status();
    if (counts->resident <= pages) return absl::OkStatus();
    // Pages are given up between steps; these compute nothing and count nothing.
    absl::Status status = store_->begin_step();
    if (status.ok()) {
      status = store_->end_step({.step = step_, .position = static_cast<uint32_t>(position_)});
    }
    if (!status.ok()) return status;
  }
  return make_error(ErrorCode::kDeadline, absl::StrCat("no more than ", pages, " pages"),
                    "there are more", "look at the daemon's log");
}

absl::Status LiveSession::bring_back(PageIndex page) {
  if (absl::Status status = store_->set_budget(budget_ + 1); !status.ok()) return status;
  const auto restored = store_->restore({&page, 1});
  if (!restored.ok()) return restored.status();
  const absl::StatusOr<std::vector<char>> there = resident();
  if (!there.ok()) return there.status();
  if ((*there)[page] != 0) return absl::OkStatus();
  return make_error(ErrorCode::kDataLoss, absl::StrCat("page ", page), "it did not come back",
                    "look at the daemon's log");
}

absl::Status LiveSession::give_up_again(PageIndex page) {
  absl::Status status = store_->evict({&page, 1});
  if (status.ok()) status = settle(budget_);
  return status.ok() ? store_->set_budget(budget_) : status;
}

}  // namespace memdecay::eval
