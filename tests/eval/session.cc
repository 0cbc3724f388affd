// See session.h.
#include "tests/eval/session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/support/plain_layout.h"

namespace memdecay::eval {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr uint64_t kPageBytes = 64;
constexpr uint32_t kMostPages = 1024;  // of a recording
constexpr int32_t kCallMs = 30'000;
constexpr int32_t kEventMs = 200;
constexpr auto kPatience = std::chrono::seconds(30);  // until a budget holds

absl::Status status_of(memdecay_code code, const std::string& asked) {
  if (code == MEMDECAY_OK) return absl::OkStatus();
  const memdecay_error& error = *memdecay_last_error();
  return make_error({.code = static_cast<ErrorCode>(code),
                     .asked = absl::StrCat(asked, ": ", error.asked),
                     .there = error.there,
                     .todo = error.todo,
                     .retry_after_ms = error.retry_after_ms});
}

memdecay_layout layout() {
  static const memdecay_layout_group group = {1, 1, 1, kPageTokens, "token.dim", 0, kPageBytes};
  return test::plain_layout(group, "recorded");
}

// Several observations as one, as an engine would report it that adds up its masses: each counts by
// its queries. A page that was sealed in between has the mass it got since.
class MeanObservation {
 public:
  void add(const trace::Observed& seen) {
    const double weight = static_cast<double>(seen.queries);
    sum_.step = seen.step;
    sum_.query_position = seen.query_position;
    sum_.queries += seen.queries;
    sum_.sink += weight * seen.sink;
    sum_.tail += weight * seen.tail;
    sum_.rest += weight * seen.rest;
    for (const trace::PageMass& mass : seen.masses) by_page_[mass.page] += weight * mass.mass;
  }

  trace::Observed take() {
    trace::Observed mean = std::exchange(sum_, {.queries = 0});
    const double share = 1.0 / static_cast<double>(mean.queries);
    for (double* const mass : {&mean.sink, &mean.tail, &mean.rest}) *mass *= share;
    for (const auto& [page, mass] : by_page_) mean.masses.push_back({page, mass * share});
    by_page_.clear();
    return mean;
  }

 private:
  trace::Observed sum_{.queries = 0};
  std::map<PageIndex, double> by_page_;
};

// One recording on its way through one session.
class Player {
 public:
  Player(const engine::Client& client, const engine::Session& session,
         const RecordedSession& recording, const PlannedRun& run, uint32_t number)
      : client_(client), session_(session), recording_(recording), run_(run), number_(number) {}

  absl::Status play() {
    // All pages are granted at once; what a policy hears of is their sealing.
    absl::Status status =
        status_of(memdecay_extend(session_.get(), recording_.pages, kCallMs), "extend");
    for (const auto& moment : recording_.moments) {
      if (!status.ok()) return status;
      if (const auto* sealed = std::get_if<trace::Sealed>(&moment)) {
        status = seal(*sealed);
      } else if (const auto* tagged = std::get_if<trace::Tagged>(&moment)) {
        status = tag(tagged->page, tagged->runs);
      } else {
        status = observe(std::get<trace::Observed>(moment));
      }
    }
    return status;
  }

  absl::Status pin_facts() {
    for (const FactPlace& fact : recording_.facts) {
      for (const PageIndex page : fact.pages) {
        const memdecay_code code = memdecay_pin(session_.get(), page, 1, 0);
        if (code != MEMDECAY_OK) return status_of(code, "pin a fact");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<char>> shrink(uint32_t percent) {
    const uint32_t budget = budget_pages(recording_.pages, percent);
    if (percent < 100) {
      const memdecay_code code = memdecay_set_budget(session_.get(), budget);
      if (code != MEMDECAY_OK) return status_of(code, absl::StrCat("a budget of ", budget));
    }
    // Events of earlier sessions may stand before the one that matters.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      std::vector<char> kept;
      for (const memdecay_page& page : session_.pages()) kept.push_back(page.read != nullptr);
      const auto count = static_cast<uint32_t>(std::count(kept.begin(), kept.end(), 1));
      if (count == budget) return kept;
      if (count < budget) {
        return make_error(ErrorCode::kInternal, absl::StrCat("a budget of ", budget, " pages"),
                          absl::StrCat("only ", count, " are there"), "more left than had to");
      }
      memdecay_event event{};
      const memdecay_code code = memdecay_next_event(client_.get(), kEventMs, &event);
      if (code == MEMDECAY_OK && event.kind == MEMDECAY_EVENT_REFUSED) {
        return status_of(event.code, "what was sent before");
      }
    }
    return make_error(ErrorCode::kDeadline, absl::StrCat("a budget of ", budget, " pages"),
                      "it is not met", "look at the daemon's log");
  }

 private:
  absl::Status tag(PageIndex page, std::span<const trace::RegionRun> runs) {
    std::vector<memdecay_tagged_span> spans;
    uint32_t at = page * kPageTokens;
    for (const trace::RegionRun& run : runs) {
      spans.push_back({at, at + run.tokens, run.region, 0});
      at += run.tokens;
    }
    return status_of(
        memdecay_tag(session_.get(), spans.data(), static_cast<uint32_t>(spans.size())), "tag");
  }

  // Token ids are this session's own: no page is shared with another.
  absl::Status seal(const trace::Sealed& sealed) {
    if (absl::Status status = tag(sealed.page, sealed.runs); !status.ok()) return status;
    uint32_t tokens[kPageTokens];
    const uint32_t first = (number_ << 14) + sealed.page * kPageTokens;
    for (uint32_t i = 0; i < kPageTokens; ++i) tokens[i] = first + i;
    memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
    seal.first_page = sealed.page;
    seal.pages = 1;
    seal.tokens = tokens;
    seal.token_count = kPageTokens;
    seal.no_wait = 1;
    return status_of(memdecay_seal(session_.get(), &seal), "seal");
  }

  absl::Status observe(const trace::Observed& seen) {
    if (seen.channel != run_.heads) return absl::OkStatus();
    if (seen.step == 0) {
      return run_.prefill == PlannedRun::Prefill::kObserved ? report(seen) : absl::OkStatus();
    }
    const bool due = seen.step % run_.sampling == 0;
    if (run_.queries == PlannedRun::Queries::kLast) return due ? report(seen) : absl::OkStatus();
    mean_.add(seen);
    return due ? report(mean_.take()) : absl::OkStatus();
  }

  absl::Status report(const trace::Observed& seen) {
    memdecay_step step = MEMDECAY_STEP_INIT;
    step.step = seen.step;
    step.position = static_cast<uint32_t>(seen.query_position) + 1;
    step.queries = seen.queries;
    step.sink = seen.sink;
    step.tail = seen.tail;
    step.rest = seen.rest;
    masses_.clear();
    for (const trace::PageMass& mass : seen.masses) masses_.push_back({mass.page, mass.mass});
    step.masses = masses_.data();
    step.mass_count = static_cast<uint32_t>(masses_.size());
    const memdecay_code code = memdecay_begin_step(session_.get());
    if (code != MEMDECAY_OK) return status_of(code, "begin a step");
    return status_of(memdecay_end_step(session_.get(), &step), "end a step");
  }

  const engine::Client& client_;
  const engine::Session& session_;
  const RecordedSession& recording_;
  const PlannedRun& run_;
  uint32_t number_;
  MeanObservation mean_;
  std::vector<memdecay_mass> masses_;
};

}  // namespace

uint32_t budget_pages(uint32_t pages, uint32_t percent) {
  return std::max<uint32_t>(1, pages * percent / 100);
}

absl::StatusOr<std::unique_ptr<ReplayDaemon>> ReplayDaemon::start(
    const std::string& programs, const std::vector<std::string>& settings) {
  std::unique_ptr<ReplayDaemon> daemon(new ReplayDaemon());
  std::vector<std::string> all = {
      absl::StrCat("device.pages=", kMostPages), absl::StrCat("host.pages=", kMostPages),
      absl::StrCat("device.slab_pages=", kMostPages), absl::StrCat("page_bytes=", kPageBytes)};
  all.insert(all.end(), settings.begin(), settings.end());
  auto process = bench::DaemonProcess::start(programs, all);
  if (!process.ok()) return process.status();
  daemon->process_ = *std::move(process);
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = daemon->process_->folder().c_str();
  options.engine_name = "memdecay-eval";
  options.page_tokens = kPageTokens;
  options.page_bytes = kPageBytes;
  options.grants_ahead = MEMDECAY_NO_GRANTS;
  options.observe_every = UINT32_MAX;  // the recording says when
  options.timeout_ms = kCallMs;
  daemon->client_ = engine::Client::connect(options);
  if (!daemon->client_) return status_of(memdecay_last_error()->code, "connect");
  return daemon;
}

absl::StatusOr<Kept> ReplayDaemon::play(const RecordedSession& recording, const PlannedRun& run) {
  if (recording.page_tokens != kPageTokens || recording.pages > kMostPages) {
    return make_error(
        ErrorCode::kInvalidArgument, absl::StrCat("recording ", recording.seed),
        absl::StrCat("has ", recording.pages, " pages of ", recording.page_tokens, " tokens"),
        absl::StrCat("record at most ", kMostPages, " pages of ", kPageTokens, " tokens"));
  }
  memdecay_open_options open = MEMDECAY_OPEN_INIT;
  const std::string name = absl::StrCat("recording-", ++sessions_);
  open.name = name.c_str();
  open.mode = MEMDECAY_LOSSY;
  engine::Session session = client_.open(layout(), open);
  if (!session) return status_of(memdecay_last_error()->code, "open");
  session.at_end(engine::AtEnd::kForget);
  Player player(client_, session, recording, run, sessions_);
  absl::Status status = player.play();
  if (status.ok() && run.facts == PlannedRun::Facts::kPinned) status = player.pin_facts();
  if (!status.ok()) return status;
  Kept kept;
  for (const uint32_t percent : run.budgets) {
    absl::StatusOr<std::vector<char>> pages = player.shrink(percent);
    if (!pages.ok()) return pages.status();
    kept.push_back(*std::move(pages));
  }
  return kept;
}

}  // namespace memdecay::eval
