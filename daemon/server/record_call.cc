// See record_call.h.
#include "daemon/server/record_call.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/base/mailbox.h"
#include "daemon/policy/trace/event.h"
#include "daemon/server/grpc_call.h"
#include "daemon/server/real_random.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::server {
namespace {

namespace limits = base::limits;

struct RecordLimits {
  Duration longest = limits::kTapeLongest;
  uint64_t most_bytes = limits::kTapeMostBytes;
};

absl::StatusOr<RecordLimits> limits_of(const v1::RecordRequest& request) {
  RecordLimits out;
  if (request.longest_ms() < 0 || request.longest_ms() > out.longest.milliseconds()) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("a recording of ", request.longest_ms(), " ms"), {},
                      absl::StrCat("at most ", out.longest.milliseconds(), " ms"));
  }
  if (request.most_bytes() > out.most_bytes) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("a recording of ", request.most_bytes(), " bytes"), {},
                      absl::StrCat("at most ", out.most_bytes, " bytes"));
  }
  if (request.longest_ms() > 0) out.longest = Duration::from_milliseconds(request.longest_ms());
  if (request.most_bytes() > 0) out.most_bytes = request.most_bytes();
  return out;
}

absl::StatusOr<ledger::TapeOptions> tape_of(const v1::RecordRequest& request) {
  ledger::TapeOptions options{.sessions = {request.sessions().begin(), request.sessions().end()}};
  const absl::StatusOr<Token> token = random_token();
  if (!token.ok()) return token.status();
  for (size_t i = 0; i < token->size(); ++i) {
    uint64_t& half = options.salt[i * options.salt.size() / token->size()];
    half = half << 8 | (*token)[i];
  }
  return options;
}

std::string header_line(const ServiceFacts& facts, Instant now) {
  const ledger::Options& options = facts.config.ledger;
  trace::Header header{.page_tokens = options.page_tokens, .sinks = options.sinks};
  const size_t regions = std::max<size_t>(kBuiltInRegions, options.policy.regions.size());
  for (size_t i = 0; i < regions; ++i) {
    const auto region = static_cast<RegionId>(i);
    header.regions.push_back(i < kBuiltInRegions ? std::string(region_name(region))
                                                 : absl::StrCat("custom_", i));
  }
  const auto up = static_cast<uint64_t>((now - facts.started).milliseconds() / 1000);
  header.started_unix = facts.started_unix + up;
  return trace::to_line(header) + "\n";
}

class RecordCall final : public RecordReactor {
 public:
  RecordCall(const v1::RecordRequest& request, Edge& edge, Recorder& recorder,
             const ServiceFacts& facts, const base::Clock& clock)
      : request_(request), edge_(edge), recorder_(recorder), facts_(facts), clock_(clock) {}

  void start() {
    writer_ = std::thread([this] { work(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) gone_ = true;
    written_.ring();
  }
  void OnCancel() override {
    gone_ = true;
    wake_.ring();
  }
  void OnDone() override {
    writer_.join();
    delete this;
  }

 private:
  void work() {
    absl::Status status = record();
    if (!status.ok()) edge_.errors().count(status);
    Finish(to_grpc(status));
  }

  absl::Status record() {
    const absl::StatusOr<RecordLimits> limit = limits_of(request_);
    if (!limit.ok()) return limit.status();
    absl::StatusOr<ledger::TapeOptions> tape = tape_of(request_);
    if (!tape.ok()) return tape.status();
    absl::Status begun;
    between_steps([&](ledger::Ledger& ledger) {
      began_ = clock_.now();
      begun = recorder_.begin(ledger, began_, *std::move(tape), queue_);
    });
    if (!begun.ok()) return begun;
    ends_ = began_ + limit->longest;
    most_bytes_ = limit->most_bytes;
    add(header_line(facts_, began_));
    while (ended_.empty() && !gone_) {
      wake_.wait(limits::kTapeBeat);
      if (recorder_.stopping()) ended_ = "shutdown";
      if (clock_.now() >= ends_) ended_ = "time";
      write_all(ended_.empty() ? Last::kNo : Last::kYes);
    }
    between_steps([this](ledger::Ledger& ledger) { recorder_.end(ledger, queue_); });
    return absl::OkStatus();
  }

  enum class Last : uint8_t { kNo, kYes };

  // Everything that waits, in chunks; at least one message.
  void write_all(Last last) {
    for (const trace::Event& event : queue_.take()) {
      std::string line;
      trace::append_line(event, line);
      line += '\n';
      if (bytes_ + line.size() > most_bytes_) {
        ended_ = "bytes";
        break;
      }
      ++events_;
      add(std::move(line));
      if (lines_.size() >= limits::kTapeChunkBytes) send();
      if (gone_) return;
    }
    if (last == Last::kYes || ended_ == "bytes") message_.set_ended(ended_);
    send();
  }

  void add(std::string line) {
    bytes_ += line.size();
    lines_ += line;
  }

  void send() {
    if (gone_) return;
    message_.set_lines(std::exchange(lines_, {}));
    message_.set_events(events_);
    message_.set_bytes(bytes_);
    message_.set_lost_events(queue_.lost());
    message_.set_left_ms(std::max<int64_t>(0, (ends_ - clock_.now()).milliseconds()));
    StartWrite(&message_);
    written_.wait();
  }

  // Runs `look` on the reactor's thread and waits for it: the reactor outlives the calls.
  template <typename Look>
  void between_steps(Look look) {
    base::Wake done;
    edge_.reactor().inspect([&](ledger::Ledger& ledger) {
      look(ledger);
      done.ring();
    });
    done.wait();
  }

  const v1::RecordRequest request_;
  Edge& edge_;
  Recorder& recorder_;
  const ServiceFacts& facts_;
  const base::Clock& clock_;

  base::Wake wake_;     // half full, or the caller has left
  base::Wake written_;  // a message is out
  TapeQueue queue_{limits::kTapeBytes, wake_};
  std::atomic<bool> gone_{false};  // the caller

  // The writer's.
  Instant began_;
  Instant ends_;
  uint64_t most_bytes_ = 0;
  std::string ended_;
  std::string lines_;
  uint64_t events_ = 0;
  uint64_t bytes_ = 0;
  v1::RecordResponse message_;

  std::thread writer_;  // last
};

class Refusal final : public RecordReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(to_grpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

RecordReactor* start_recording(const v1::RecordRequest& request, Edge& edge, Recorder& recorder,
                               const ServiceFacts& facts, const base::Clock& clock) {
  auto* const call = new RecordCall(request, edge, recorder, facts, clock);
  call->start();
  return call;
}

RecordReactor* refuse_recording(Edge& edge, const absl::Status& status) {
  edge.errors().count(status);
  return new Refusal(status);
}

}  // namespace memdecay::server
