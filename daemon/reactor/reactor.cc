// See reactor.h. One loop: completions first, then the streams, with a request after every few
// stream events so that neither starves the other; then what waits for time.
// The three lanes and the inspections are mailboxes; everything else belongs to the reactor's role.
#include "daemon/reactor/reactor.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "daemon/base/limits.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread_role.h"
#include "proto/contract/error.h"

namespace memdecay::reactor {
namespace {

namespace limits = base::limits;

using EventBox = base::Mailbox<ledger::Event>;
using Look = std::function<void(ledger::Ledger&)>;

struct Reload {
  ledger::Options options;
  std::function<void(absl::Status)> done;
};

// Steps between two looks at the clock for deadlines.
constexpr size_t kStepsABatch = 64;
// Of one run_ready(): a ledger that never comes to rest must not keep its caller for ever.
constexpr size_t kStepsAReady = size_t{1} << 15;

}  // namespace

struct Reactor::Parts {
  Parts(ledger::Options options, Clock& a_clock, Edge& an_edge, Bytes& some_bytes,
        Fences& some_fences)
      : clock(a_clock),
        edge(an_edge),
        bytes(some_bytes),
        fences(some_fences),
        completions(SIZE_MAX, wake),
        stream(limits::kStreamLane, wake),
        requests(limits::kRequestLane, wake),
        looks(SIZE_MAX, wake),
        reloads(SIZE_MAX, wake),
        ledger(std::move(options)) {}

  std::optional<ledger::Event> next_event() MEMDECAY_REQUIRES(role);
  size_t run_batch() MEMDECAY_REQUIRES(role);
  size_t tick_if_due() MEMDECAY_REQUIRES(role);
  size_t run_ready() MEMDECAY_REQUIRES(role);
  void handle(ledger::Event event) MEMDECAY_REQUIRES(role);
  void step(const ledger::Event& event) MEMDECAY_REQUIRES(role);
  void carry_out(const ledger::Effect& effect) MEMDECAY_REQUIRES(role);
  void apply(Reload reload) MEMDECAY_REQUIRES(role);
  void wake_streams() MEMDECAY_REQUIRES(role);
  Instant now() MEMDECAY_REQUIRES(role);
  void sleep() MEMDECAY_REQUIRES(role);

  Clock& clock;
  Edge& edge;
  Bytes& bytes;
  Fences& fences;

  base::Wake wake;
  EventBox completions;  // bounded by copies, fences and slabs in flight
  EventBox stream;
  EventBox requests;
  base::Mailbox<Look> looks;      // bounded by the calls that the edges admit
  base::Mailbox<Reload> reloads;  // likewise
  std::atomic<uint64_t> last_request{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<bool> stream_was_full{false};
  std::atomic<bool> stopping{false};

  base::ThreadRole role;
  ledger::Ledger ledger MEMDECAY_GUARDED_BY(role);
  ledger::Effects effects MEMDECAY_GUARDED_BY(role);
  uint32_t stream_steps MEMDECAY_GUARDED_BY(role) = 0;  // since the last request
  Instant last_now MEMDECAY_GUARDED_BY(role);
  std::optional<Instant> last_tick MEMDECAY_GUARDED_BY(role);
  std::function<void(const StepReport&)> look;  // set before the first event
  std::function<void()> stream_room;            // likewise
};

Instant Reactor::Parts::now() {
  last_now = std::max(last_now, clock.now());
  return last_now;
}

std::optional<ledger::Event> Reactor::Parts::next_event() {
  if (auto event = completions.take()) return event;
  if (stream_steps < limits::kStreamStepsARequest) {
    if (auto event = stream.take()) {
      ++stream_steps;
      return event;
    }
  }
  stream_steps = 0;
  if (auto event = requests.take()) return event;
  return stream.take();
}

void Reactor::Parts::carry_out(const ledger::Effect& effect) {
  if (const auto* reply = std::get_if<ledger::Reply>(&effect)) {
    edge.reply(*reply);
  } else if (const auto* notice = std::get_if<ledger::Notice>(&effect)) {
    edge.notify(*notice);
  } else if (const auto* create = std::get_if<ledger::CreateSlab>(&effect)) {
    absl::Status created = bytes.create_slab(*create);
    if (!created.ok()) completions.put_always(ledger::SlabFailed{create->slab, std::move(created)});
  } else if (const auto* destroy = std::get_if<ledger::DestroySlab>(&effect)) {
    bytes.destroy_slab(destroy->slab);
  } else if (const auto* share = std::get_if<ledger::ShareSlab>(&effect)) {
    edge.share_slab(*share);
  } else if (const auto* copy = std::get_if<ledger::StartCopy>(&effect)) {
    bytes.start_copy(*copy);
  } else if (const auto* cancel = std::get_if<ledger::CancelCopy>(&effect)) {
    bytes.cancel_copy(cancel->copy);
  } else if (const auto* drop = std::get_if<ledger::DropHost>(&effect)) {
    bytes.drop_host(drop->content);
  } else if (const auto* watch = std::get_if<ledger::WatchFence>(&effect)) {
    fences.watch(watch->engine, watch->fence);
  } else if (const auto* row = std::get_if<ledger::ShadowRow>(&effect)) {
    bytes.shadow_row(*row);
  }
}

void Reactor::Parts::step(const ledger::Event& event) {
  effects.clear();
  const Instant before = now();
  ledger.step(before, event, effects);
  const Duration took = clock.now() - before;
  for (const ledger::Effect& effect : effects) carry_out(effect);
  std::vector<trace::Event> tape = ledger.take_tape();
  if (look) look(StepReport{before, took, event, effects, tape});
}

void Reactor::Parts::handle(ledger::Event event) {
  if (auto* done = std::get_if<ledger::CopyDone>(&event)) {
    std::optional<ledger::CopyDone> told = bytes.finish_copy(std::move(*done));
    if (!told) return;
    event = *std::move(told);
  }
  step(event);
}

void Reactor::Parts::apply(Reload reload) {
  effects.clear();
  absl::Status status = ledger.reconfigure(now(), reload.options, effects);
  for (const ledger::Effect& effect : effects) carry_out(effect);
  if (reload.done) reload.done(std::move(status));
}

void Reactor::Parts::wake_streams() {
  if (stream.size() > stream.capacity() / 2 || !stream_was_full.exchange(false)) return;
  if (stream_room) stream_room();
}

// One turn of everything, bounded, so that deadlines are looked at under any load.
size_t Reactor::Parts::run_batch() {
  size_t steps = 0;
  while (auto some_look = looks.take()) {
    (*some_look)(ledger);
    ++steps;
  }
  while (auto reload = reloads.take()) {
    apply(*std::move(reload));
    ++steps;
  }
  while (steps < kStepsABatch) {
    auto event = next_event();
    if (!event) break;
    handle(*std::move(event));
    ++steps;
  }
  wake_streams();
  return steps;
}

size_t Reactor::Parts::tick_if_due() {
  const std::optional<Instant> due = ledger.next_deadline();
  const Instant time = now();
  if (!due || *due > time) return 0;
  // A deadline that its own Tick did not clear must not become a busy loop.
  if (last_tick && time < *last_tick + limits::kTickAgain && *due <= *last_tick) return 0;
  last_tick = time;
  step(ledger::Tick{});
  return 1;
}

size_t Reactor::Parts::run_ready() {
  size_t steps = 0;
  while (steps < kStepsAReady) {
    const size_t before = steps;
    steps += run_batch();
    steps += tick_if_due();
    if (steps == before) break;
  }
  return steps;
}

void Reactor::Parts::sleep() {
  const std::optional<Instant> due = ledger.next_deadline();
  Duration longest = limits::kLongestSleep;
  if (due) longest = std::min(longest, std::max(*due - clock.now(), limits::kTickAgain));
  wake.wait(longest);
}

Reactor::Reactor(ledger::Options options, Clock& clock, Edge& edge, Bytes& bytes, Fences& fences)
    : parts_(std::make_unique<Parts>(std::move(options), clock, edge, bytes, fences)) {}

Reactor::~Reactor() = default;

void Reactor::complete(ledger::Event event) { parts_->completions.put_always(std::move(event)); }

Posted Reactor::post_stream(ledger::Event event) {
  if (parts_->stream.put(std::move(event)) == EventBox::Put::kTaken) return Posted::kTaken;
  ++parts_->rejected;
  // The flag first, then a ring: the reactor looks at the flag once more after this.
  parts_->stream_was_full = true;
  parts_->wake.ring();
  return Posted::kFull;
}

absl::Status Reactor::post_request(ledger::Event event) {
  if (parts_->requests.put(std::move(event)) == EventBox::Put::kTaken) return absl::OkStatus();
  ++parts_->rejected;
  return make_error({.code = ErrorCode::kUnavailable,
                     .asked = "a place in the queue of requests",
                     .there = "all " + std::to_string(parts_->requests.capacity()) + " are taken",
                     .todo = "try again",
                     .retry_after_ms = limits::kRetry.milliseconds()});
}

void Reactor::inspect(std::function<void(ledger::Ledger&)> look) {
  parts_->looks.put_always(std::move(look));
}

void Reactor::reconfigure(ledger::Options options, std::function<void(absl::Status)> done) {
  parts_->reloads.put_always(Reload{std::move(options), std::move(done)});
}

void Reactor::on_step(std::function<void(const StepReport&)> look) {
  parts_->look = std::move(look);
}

void Reactor::on_stream_room(std::function<void()> wake) { parts_->stream_room = std::move(wake); }

RequestId Reactor::next_request() { return RequestId{++parts_->last_request}; }

size_t Reactor::run_ready() {
  const base::InRole in_role(parts_->role);
  return parts_->run_ready();
}

std::optional<Instant> Reactor::next_deadline() const { return ledger().next_deadline(); }

void Reactor::run() {
  const base::InRole in_role(parts_->role);
  while (!parts_->stopping) {
    parts_->run_batch();
    parts_->tick_if_due();
    if (parts_->completions.size() + parts_->stream.size() + parts_->requests.size() == 0) {
      parts_->sleep();
    }
  }
  parts_->run_ready();  // what was posted before stop()
}

void Reactor::stop() {
  parts_->stopping = true;
  parts_->wake.ring();
}

Reactor::Depths Reactor::depths() const {
  return {.completions = parts_->completions.size(),
          .stream = parts_->stream.size(),
          .requests = parts_->requests.size(),
          .rejected = parts_->rejected.load()};
}

const ledger::Ledger& Reactor::ledger() const {
  // Between runs nobody has the role, inside a callback of a run the caller has it; both may read.
  Parts& parts = *parts_;
  return [&parts]() MEMDECAY_NO_ROLE_CHECK -> const ledger::Ledger& { return parts.ledger; }();
}

}  // namespace memdecay::reactor
