// Calls of the C interface and what their answers mean here; see daemon_store.h.
#include "adapters/reference/daemon_store.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kCallMs = 30'000;  // of a call that waits for nobody but the daemon
constexpr int32_t kSliceMs = 5000;   // one wait of a long one

// The thread's last error of the client, as a status of ours; codes have the same numbers.
absl::Status status_of(memdecay_code code) {
  if (code == MEMDECAY_OK) return absl::OkStatus();
  const memdecay_error& error = *memdecay_last_error();
  return make_error({.code = static_cast<ErrorCode>(code),
                     .asked = error.asked,
                     .there = error.there,
                     .todo = error.todo,
                     .retry_after_ms = error.retry_after_ms});
}

bool is_number(const std::string& text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value != 0;
}

memdecay_pause pause_of(SessionState why) {
  switch (why) {
    case SessionState::kWaitingTool:
      return MEMDECAY_WAITING_TOOL;
    case SessionState::kWaitingUser:
      return MEMDECAY_WAITING_USER;
    case SessionState::kEnded:
      return MEMDECAY_ENDED;
    case SessionState::kDecoding:
    case SessionState::kPreempted:
    case SessionState::kOrphaned:
      return MEMDECAY_PREEMPTED;
  }
  return MEMDECAY_PREEMPTED;
}

}  // namespace

DaemonStore::DaemonStore(DaemonOptions options, const LayoutIdentity& layout, PhaseHook hook)
    : options_(std::move(options)), layout_(layout), hook_(std::move(hook)) {}

absl::StatusOr<std::unique_ptr<DaemonStore>> DaemonStore::open(const DaemonOptions& options,
                                                               const LayoutIdentity& layout,
                                                               PhaseHook hook) {
  std::unique_ptr<DaemonStore> store(new DaemonStore(options, layout, std::move(hook)));
  if (absl::Status status = store->connect(); !status.ok()) return status;
  return store;
}

absl::Status DaemonStore::connect() {
  memdecay_options connect = MEMDECAY_OPTIONS_INIT;
  connect.socket_dir = options_.socket_dir.empty() ? nullptr : options_.socket_dir.c_str();
  connect.engine_name = options_.engine_name.c_str();
  connect.page_bytes = layout_.layout().groups[0].page_bytes;
  connect.page_tokens = layout_.layout().groups[0].page_tokens;
  connect.observe_every = options_.observe_every;
  connect.grants_ahead = options_.grants_ahead == 0 ? MEMDECAY_NO_GRANTS : options_.grants_ahead;
  connect.lockstep = options_.lockstep ? 1 : 0;
  connect.timeout_ms = kCallMs;
  client_ = engine::Client::connect(connect);
  if (!client_) return status_of(memdecay_last_error()->code);
  memdecay_session* session = nullptr;
  memdecay_code code = MEMDECAY_OK;
  if (options_.resume.empty()) {
    memdecay_open_options open = MEMDECAY_OPEN_INIT;
    open.name = options_.session.empty() ? nullptr : options_.session.c_str();
    open.mode = options_.lossy ? MEMDECAY_LOSSY : MEMDECAY_EXACT;
    open.budget_pages = options_.budget_pages;
    open.default_region = MEMDECAY_SCRATCHPAD;  // what the engine writes itself
    code = memdecay_open(client_.get(), &layout_.layout(), &open, &session);
  } else {
    uint64_t id = 0;
    const char* name = is_number(options_.resume, id) ? nullptr : options_.resume.c_str();
    code = memdecay_resume(client_.get(), &layout_.layout(), id, name, options_.steal ? 1 : 0,
                           &session);
  }
  if (code != MEMDECAY_OK) return status_of(code);
  session_ = engine::Session(session);
  return absl::OkStatus();
}

absl::Status DaemonStore::extend(uint32_t pages) {
  hook_(Phase::kGrant);
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.patience_ms);
  for (;;) {
    const memdecay_code code = memdecay_extend(session_.get(), pages, kSliceMs);
    if (code == MEMDECAY_OK) {
      hook_(Phase::kGrant);
      return absl::OkStatus();
    }
    const absl::Status status = status_of(code);
    if (code == MEMDECAY_DEADLINE && Clock::now() < deadline) continue;
    if (code == MEMDECAY_BUSY && Clock::now() < deadline) {
      if (absl::Status there = await_pages(); !there.ok()) return there;
      continue;
    }
    const bool no_room = code == MEMDECAY_RESOURCE_EXHAUSTED || code == MEMDECAY_QUOTA;
    if (!no_room || Clock::now() >= deadline) return status;
    if (absl::Status back = step_back(); !back.ok()) return back;
  }
}

// Lets the others have the pages of this session, and asks for them back.
absl::Status DaemonStore::step_back() {
  ++preemptions_;
  const auto retry =
      static_cast<int32_t>(std::clamp<int64_t>(memdecay_last_error()->retry_after_ms, 10, 1000));
  if (absl::Status status = park(SessionState::kPreempted); !status.ok()) return status;
  // Something of this session changing is worth a new try; otherwise the daemon's hint is.
  memdecay_event event{};
  memdecay_next_event(client_.get(), retry, &event);
  return unpark();
}

absl::Status DaemonStore::begin_step() { return status_of(memdecay_begin_step(session_.get())); }

absl::StatusOr<PageTable> DaemonStore::table() {
  const memdecay_page* pages = nullptr;
  uint32_t count = 0;
  const memdecay_code code = memdecay_page_table(session_.get(), &pages, &count);
  if (code != MEMDECAY_OK) return status_of(code);
  read_.resize(count);
  write_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    read_[i] = static_cast<const std::byte*>(pages[i].read);
    write_[i] = static_cast<std::byte*>(pages[i].write);
  }
  return PageTable{read_, write_};
}

Masses DaemonStore::masses_wanted(Work work) const {
  if (work == Work::kPrefill || memdecay_wants_masses(session_.get()) != 0) {
    return Masses::kReported;
  }
  return options_.queries == DaemonOptions::Queries::kOwn ? Masses::kIgnored : Masses::kLater;
}

absl::Status DaemonStore::seal(PageIndex first, std::span<const TokenId> tokens, Holes holes) {
  memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
  seal.first_page = first;
  seal.pages = static_cast<uint32_t>(tokens.size()) / layout_.layout().groups[0].page_tokens;
  seal.tokens = tokens.data();
  seal.token_count = static_cast<uint32_t>(tokens.size());
  seal.had_holes = holes == Holes::kUnsaid ? -1 : (holes == Holes::kSome ? 1 : 0);
  // Decoding waits for nobody: a refusal comes as an event (refusals()). A prefill's pages are many
  // and worth an answer: should this process die now, they are there.
  seal.no_wait = seal.pages == 1 ? 1 : 0;
  return status_of(memdecay_seal(session_.get(), &seal));
}

absl::Status DaemonStore::end_step(const StepReport& report) {
  memdecay_step step = MEMDECAY_STEP_INIT;
  step.step = report.step;
  step.position = report.position;
  masses_.clear();
  if (report.masses != nullptr) {
    for (const PageMass& mass : report.masses->listed) masses_.push_back({mass.page, mass.mass});
    step.queries = static_cast<uint32_t>(report.masses->queries);
    step.sink = report.masses->sink;
    step.tail = report.masses->tail;
    step.rest = report.masses->rest;
    step.masses = masses_.data();
    step.mass_count = static_cast<uint32_t>(masses_.size());
  }
  hook_(Phase::kAcknowledge);
  const memdecay_code code = memdecay_end_step(session_.get(), &step);
  if (code != MEMDECAY_OK) return status_of(code);
  hook_(Phase::kAcknowledge);
  return refusals();
}

// Answers to what was not waited for. Other events need nothing here: the library acts on them.
absl::Status DaemonStore::refusals() {
  memdecay_event event{};
  while (memdecay_next_event(client_.get(), -1, &event) == MEMDECAY_OK) {
    if (event.kind != MEMDECAY_EVENT_REFUSED) continue;
    return status_of(event.code);
  }
  return absl::OkStatus();
}

absl::Status DaemonStore::truncate(size_t tokens) {
  return status_of(memdecay_truncate(session_.get(), static_cast<uint32_t>(tokens)));
}

absl::Status DaemonStore::tag(std::span<const PageTag> tags) {
  std::vector<memdecay_tagged_span> spans;
  spans.reserve(tags.size());
  for (const PageTag& tag : tags) {
    spans.push_back({tag.begin, tag.end, static_cast<uint32_t>(tag.region), 0});
  }
  return status_of(memdecay_tag(session_.get(), spans.data(), static_cast<uint32_t>(spans.size())));
}

absl::Status DaemonStore::park(SessionState why) {
  const memdecay_code code = memdecay_park(session_.get(), pause_of(why));
  parked_ = parked_ || code == MEMDECAY_OK;
  return status_of(code);
}

absl::Status DaemonStore::unpark() {
  if (!parked_) return absl::OkStatus();
  hook_(Phase::kRestore);
  // Asked first and waited for afterwards: pages are on their way in between.
  const memdecay_code code = memdecay_unpark(session_.get(), 1);
  parked_ = false;
  if (code != MEMDECAY_OK && code != MEMDECAY_DEADLINE) return status_of(code);
  hook_(Phase::kRestore);
  return code == MEMDECAY_OK ? absl::OkStatus() : wait_ready();
}

// A page that was asked for before the session went on can leave after it: it is asked back.
absl::Status DaemonStore::await_pages() {
  ++late_pages_;
  const memdecay_code code = memdecay_unpark(session_.get(), kSliceMs);
  return code == MEMDECAY_OK ? absl::OkStatus() : wait_ready();
}

absl::Status DaemonStore::wait_ready() {
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.patience_ms);
  for (;;) {
    memdecay_code code = memdecay_wait_ready(session_.get(), kSliceMs);
    if (code == MEMDECAY_OK || Clock::now() >= deadline) return status_of(code);
    // No room for a page after all: it is asked for again. What else stops it needs a decision.
    if (code == MEMDECAY_RESOURCE_EXHAUSTED || code == MEMDECAY_UNAVAILABLE) {
      code = memdecay_unpark(session_.get(), kSliceMs);
    }
    if (code != MEMDECAY_DEADLINE && code != MEMDECAY_OK && code != MEMDECAY_RESOURCE_EXHAUSTED) {
      return status_of(code);
    }
  }
}

absl::StatusOr<PageCounts> DaemonStore::counts() {
  PageCounts counts;
  for (const memdecay_page& page : session_.pages()) {
    ++counts.pages;
    if (page.read != nullptr) {
      ++counts.resident;
    } else {
      ++counts.holes;
    }
    counts.approximate += page.approximate;
  }
  return counts;
}

absl::StatusOr<size_t> DaemonStore::acquire(std::span<const TokenId> tokens) {
  const uint32_t page_tokens = layout_.layout().groups[0].page_tokens;
  // The last token is computed here in any case: its logits are wanted.
  const size_t whole = tokens.empty() ? 0 : (tokens.size() - 1) / page_tokens * page_tokens;
  if (whole == 0) return 0;
  memdecay_lease lease{};
  memdecay_code code =
      memdecay_acquire(client_.get(), &layout_.layout(), session_.get(), tokens.data(),
                       static_cast<uint32_t>(whole), nullptr, 0, &lease);
  if (code == MEMDECAY_NOT_FOUND || code == MEMDECAY_DATA_LOSS) return 0;
  if (code != MEMDECAY_OK) return status_of(code);
  if (lease.pages == 0) return 0;
  if (absl::Status status = wait_ready(); !status.ok()) return status;
  // The pages are the session's now; the lease has done its work.
  code = memdecay_release(client_.get(), lease.id);
  if (code != MEMDECAY_OK && code != MEMDECAY_LEASE_EXPIRED) return status_of(code);
  return size_t{lease.pages} * page_tokens;
}

absl::Status DaemonStore::pin(PageIndex page) {
  return status_of(memdecay_pin(session_.get(), page, 1, 0));
}

absl::Status DaemonStore::evict(std::span<const PageIndex> pages) {
  return status_of(
      memdecay_evict(session_.get(), pages.data(), static_cast<uint32_t>(pages.size())));
}

absl::StatusOr<memdecay_restore_result> DaemonStore::restore(std::span<const PageIndex> pages) {
  memdecay_restore_result result{};
  hook_(Phase::kRestore);
  const memdecay_code code = memdecay_restore(
      session_.get(), pages.data(), static_cast<uint32_t>(pages.size()), 2 * kSliceMs, &result);
  if (code != MEMDECAY_OK) return status_of(code);
  return result;
}

absl::StatusOr<memdecay_repair_info> DaemonStore::repair() {
  memdecay_repair_info repair{};
  const memdecay_code code = memdecay_repair(session_.get(), &repair, kSliceMs);
  if (code != MEMDECAY_OK) return status_of(code);
  return repair;
}

absl::Status DaemonStore::set_budget(uint32_t pages) {
  return status_of(memdecay_set_budget(session_.get(), pages));
}

absl::Status DaemonStore::set_mode(Mode mode) {
  return status_of(
      memdecay_set_mode(session_.get(), mode == Mode::kLossy ? MEMDECAY_LOSSY : MEMDECAY_EXACT));
}

std::optional<PageIndex> DaemonStore::first_dropped() const {
  for (const memdecay_page& page : session_.pages()) {
    if (page.state == MEMDECAY_PAGE_DROPPED) return page.page;
  }
  return std::nullopt;
}

}  // namespace memdecay::reference
