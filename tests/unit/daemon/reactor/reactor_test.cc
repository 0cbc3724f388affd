// The reactor's own rules, on a stand-in ledger.
#include "daemon/reactor/reactor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/limits.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/real_clock.h"
#include "proto/contract/error.h"
#include "tests/unit/daemon/reactor/fake_ledger.h"
#include "tests/unit/daemon/reactor/recording_ports.h"

namespace memdecay::reactor {
namespace {

namespace limits = base::limits;

ledger::Event stream_event(uint64_t number) {
  return ledger::Observe{.origin = {}, .session = SessionId{1}, .step = number};
}
ledger::Event request_event(uint64_t number) {
  return ledger::Drain{{RequestId{number}, {}, {}, {}}};
}
ledger::Event completion(uint64_t number) { return ledger::CopyDone{CopyId{number}, {}, {}}; }

class ReactorTest : public testing::Test {
 protected:
  const std::vector<std::string>& seen() { return reactor_.ledger().state().seen; }
  // The first word of every event seen.
  std::vector<std::string> kinds() {
    std::vector<std::string> kinds;
    for (const std::string& text : seen()) kinds.push_back(text.substr(0, text.find(' ')));
    return kinds;
  }

  ManualClock clock_;
  RecordingPorts ports_;
  Reactor reactor_{{}, clock_, ports_, ports_, ports_};
};

TEST_F(ReactorTest, completions_go_first_then_streams_then_requests) {
  ASSERT_TRUE(reactor_.post_request(request_event(1)).ok());
  ASSERT_EQ(reactor_.post_stream(stream_event(1)), Posted::kTaken);
  reactor_.complete(completion(1));
  ASSERT_EQ(reactor_.post_stream(stream_event(2)), Posted::kTaken);
  reactor_.complete(completion(2));
  EXPECT_EQ(reactor_.depths().completions, 2u);
  EXPECT_EQ(reactor_.depths().stream, 2u);
  EXPECT_EQ(reactor_.depths().requests, 1u);
  EXPECT_EQ(reactor_.run_ready(), 5u);
  EXPECT_EQ(kinds(),
            (std::vector<std::string>{"copy_done", "copy_done", "observe", "observe", "drain"}));
}

TEST_F(ReactorTest, a_request_is_not_starved_by_the_streams) {
  for (uint64_t i = 0; i < 100; ++i)
    ASSERT_EQ(reactor_.post_stream(stream_event(i)), Posted::kTaken);
  ASSERT_TRUE(reactor_.post_request(request_event(1)).ok());
  reactor_.run_ready();
  const std::vector<std::string> all = kinds();
  const auto at = std::find(all.begin(), all.end(), "drain") - all.begin();
  EXPECT_EQ(at, static_cast<std::ptrdiff_t>(limits::kStreamStepsARequest));
  EXPECT_EQ(all.size(), 101u);
}

TEST_F(ReactorTest, a_lane_keeps_its_order) {
  for (uint64_t i = 0; i < 50; ++i)
    ASSERT_EQ(reactor_.post_stream(stream_event(i)), Posted::kTaken);
  reactor_.run_ready();
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_NE(seen()[i].find("step=" + std::to_string(i) + " "), std::string::npos);
  }
}

TEST_F(ReactorTest, a_full_stream_lane_says_so_and_wakes_the_readers_once_when_half_empty) {
  int woken = 0;
  size_t depth_when_woken = 0;
  reactor_.on_stream_room([&] {
    ++woken;
    depth_when_woken = reactor_.depths().stream;
  });
  for (size_t i = 0; i < limits::kStreamLane; ++i) {
    ASSERT_EQ(reactor_.post_stream(stream_event(i)), Posted::kTaken);
  }
  EXPECT_EQ(reactor_.post_stream(stream_event(0)), Posted::kFull);
  EXPECT_EQ(reactor_.post_stream(stream_event(0)), Posted::kFull);
  EXPECT_EQ(reactor_.depths().rejected, 2u);
  reactor_.run_ready();
  EXPECT_EQ(woken, 1);
  EXPECT_LE(depth_when_woken, limits::kStreamLane / 2);
  EXPECT_EQ(seen().size(), limits::kStreamLane);
  EXPECT_EQ(reactor_.post_stream(stream_event(0)), Posted::kTaken);
}

TEST_F(ReactorTest, a_full_request_lane_answers_unavailable_with_a_retry_hint) {
  for (size_t i = 0; i < limits::kRequestLane; ++i) {
    ASSERT_TRUE(reactor_.post_request(request_event(i)).ok());
  }
  const absl::Status refused = reactor_.post_request(request_event(0));
  EXPECT_EQ(error_code(refused), ErrorCode::kUnavailable);
  EXPECT_GT(error_detail(refused).retry_after_ms, 0);
  reactor_.complete(completion(1));  // never refused
  EXPECT_EQ(reactor_.run_ready(), limits::kRequestLane + 1);
}

TEST_F(ReactorTest, effects_run_in_order_and_before_the_next_step) {
  ports_.on_reply = [this](const ledger::Reply&) {
    EXPECT_EQ(seen().size(), 1u);  // the second event has not been stepped
    reactor_.complete(completion(9));
  };
  ASSERT_TRUE(reactor_.post_request(ledger::Attach{}).ok());
  ASSERT_TRUE(reactor_.post_request(request_event(1)).ok());
  reactor_.run_ready();
  ASSERT_EQ(ports_.calls.size(), 4u);
  EXPECT_EQ(ports_.calls[0].substr(0, 18), "create_slab slab=1");
  EXPECT_EQ(ports_.calls[1].substr(0, 10), "share_slab");
  EXPECT_EQ(ports_.calls[2].substr(0, 5), "reply");
  EXPECT_EQ(ports_.calls[3], "finish 9");
  EXPECT_EQ(kinds(), (std::vector<std::string>{"attach", "copy_done", "drain"}));
}

TEST_F(ReactorTest, every_kind_of_effect_reaches_its_port) {
  ASSERT_TRUE(reactor_.post_request(ledger::EvictPages{}).ok());
  reactor_.run_ready();
  std::vector<std::string> first;
  for (const std::string& call : ports_.calls) first.push_back(call.substr(0, call.find(' ')));
  EXPECT_EQ(first,
            (std::vector<std::string>{"start_copy", "cancel_copy", "drop_host", "watch_fence",
                                      "shadow_row", "destroy_slab", "notice"}));
}

TEST_F(ReactorTest, a_slab_that_cannot_be_made_is_told_to_the_ledger) {
  ports_.slab_status = make_error(ErrorCode::kResourceExhausted, "a slab");
  ASSERT_TRUE(reactor_.post_request(ledger::Attach{}).ok());
  ASSERT_TRUE(reactor_.post_request(request_event(1)).ok());
  reactor_.run_ready();
  EXPECT_EQ(seen().at(1), "slab_failed slab=1 status=resource_exhausted");
}

TEST_F(ReactorTest, the_ledger_hears_of_a_copy_what_bytes_makes_of_it) {
  ports_.on_finish = [](ledger::CopyDone done) -> std::optional<ledger::CopyDone> {
    if (done.copy.value == 1) return std::nullopt;
    done.status = make_error(ErrorCode::kDataLoss, "a replica");
    return done;
  };
  reactor_.complete(completion(1));
  reactor_.complete(completion(2));
  reactor_.run_ready();
  ASSERT_EQ(seen().size(), 1u);
  EXPECT_NE(seen()[0].find("copy=2 status=data_loss"), std::string::npos);
}

TEST_F(ReactorTest, ticks_when_a_deadline_is_due_and_not_before) {
  ASSERT_EQ(reactor_.post_stream(ledger::Written{.position = 50}), Posted::kTaken);
  reactor_.run_ready();
  EXPECT_EQ(reactor_.next_deadline(), clock_.now() + Duration::from_milliseconds(50));
  clock_.advance(Duration::from_milliseconds(49));
  EXPECT_EQ(reactor_.run_ready(), 0u);
  clock_.advance(Duration::from_milliseconds(1));
  EXPECT_EQ(reactor_.run_ready(), 1u);
  EXPECT_EQ(kinds().back(), "tick");
  EXPECT_EQ(reactor_.next_deadline(), std::nullopt);
}

TEST_F(ReactorTest, a_deadline_that_its_tick_leaves_due_is_no_busy_loop) {
  ASSERT_EQ(reactor_.post_stream(ledger::Written{.position = 999}), Posted::kTaken);
  reactor_.run_ready();
  clock_.advance(Duration::from_seconds(2));
  EXPECT_EQ(reactor_.run_ready(), 1u);
  EXPECT_EQ(reactor_.run_ready(), 0u);
  clock_.advance(limits::kTickAgain);
  EXPECT_EQ(reactor_.run_ready(), 1u);
}

TEST_F(ReactorTest, deadlines_are_looked_at_under_load) {
  ASSERT_EQ(reactor_.post_stream(ledger::Written{.position = 0}), Posted::kTaken);
  for (uint64_t i = 0; i < 500; ++i)
    ASSERT_EQ(reactor_.post_stream(stream_event(i)), Posted::kTaken);
  reactor_.run_ready();
  const std::vector<std::string> all = kinds();
  EXPECT_LT(std::find(all.begin(), all.end(), "tick") - all.begin(), 100);
}

TEST_F(ReactorTest, time_never_runs_back_for_the_ledger) {
  reactor_.complete(completion(1));
  reactor_.run_ready();
  const Instant first = clock_.now();
  clock_.set({first.nanoseconds - 1000});
  reactor_.complete(completion(2));
  reactor_.run_ready();
  EXPECT_EQ(reactor_.ledger().state().times, (std::vector<Instant>{first, first}));
}

TEST_F(ReactorTest, inspections_run_between_steps) {
  size_t steps_seen = 99;
  reactor_.complete(completion(1));
  reactor_.run_ready();
  reactor_.inspect([&](ledger::Ledger& ledger) { steps_seen = ledger.state().seen.size(); });
  EXPECT_EQ(steps_seen, 99u);
  reactor_.run_ready();
  EXPECT_EQ(steps_seen, 1u);
}

TEST_F(ReactorTest, a_reload_is_carried_out_and_a_refused_one_is_told) {
  std::vector<ErrorCode> outcomes;
  const auto note = [&outcomes](const absl::Status& status) {
    outcomes.push_back(error_code(status));
  };
  ledger::Options bad;
  bad.device_pages = 0;
  reactor_.reconfigure(bad, note);
  reactor_.reconfigure(ledger::Options{.device_pages = 7}, note);
  reactor_.run_ready();
  EXPECT_EQ(outcomes, (std::vector<ErrorCode>{ErrorCode::kInvalidArgument, ErrorCode::kOk}));
  ASSERT_EQ(ports_.calls.size(), 1u);
  EXPECT_NE(ports_.calls[0].find("budget pages=7"), std::string::npos);
}

TEST_F(ReactorTest, steps_are_reported_with_their_effects) {
  std::vector<size_t> effects;
  reactor_.on_step([&effects](const StepReport& step) { effects.push_back(step.effects.size()); });
  ASSERT_TRUE(reactor_.post_request(ledger::Attach{}).ok());
  ASSERT_TRUE(reactor_.post_request(request_event(1)).ok());
  reactor_.run_ready();
  EXPECT_EQ(effects, (std::vector<size_t>{3, 0}));
}

TEST_F(ReactorTest, request_numbers_are_never_given_twice) {
  EXPECT_NE(reactor_.next_request(), reactor_.next_request());
  EXPECT_TRUE(static_cast<bool>(reactor_.next_request()));
}

// ---- with threads and the real clock
// ----------------------------------------------------------------

TEST(reactor_thread, steps_everything_that_many_threads_post_and_stops) {
  base::RealClock clock;
  RecordingPorts ports;
  Reactor reactor({}, clock, ports, ports, ports);
  std::thread runner([&reactor] { reactor.run(); });
  constexpr uint64_t kEach = 3000;
  std::vector<std::thread> senders;
  senders.emplace_back([&reactor] {
    for (uint64_t i = 0; i < kEach; ++i) reactor.complete(completion(i));
  });
  senders.emplace_back([&reactor] {
    for (uint64_t i = 0; i < kEach; ++i) {
      while (reactor.post_stream(stream_event(i)) == Posted::kFull) std::this_thread::yield();
    }
  });
  senders.emplace_back([&reactor] {
    for (uint64_t i = 0; i < kEach; ++i) {
      while (!reactor.post_request(request_event(i)).ok()) std::this_thread::yield();
    }
  });
  for (std::thread& sender : senders) sender.join();
  reactor.stop();
  runner.join();
  EXPECT_EQ(reactor.ledger().state().seen.size(), 3 * kEach);
}

TEST(reactor_thread, sleeps_until_a_deadline_and_ticks_then) {
  base::RealClock clock;
  RecordingPorts ports;
  Reactor reactor({}, clock, ports, ports, ports);
  base::Wake ticked;
  reactor.on_step([&ticked](const StepReport& step) {
    if (std::holds_alternative<ledger::Tick>(step.event)) ticked.ring();
  });
  std::thread runner([&reactor] { reactor.run(); });
  ASSERT_EQ(reactor.post_stream(ledger::Written{.position = 5}), Posted::kTaken);
  ticked.wait();
  reactor.stop();
  runner.join();
  const ledger::State& state = reactor.ledger().state();
  ASSERT_EQ(state.times.size(), 2u);
  EXPECT_GE(state.times[1] - state.times[0], Duration::from_milliseconds(5));
}

TEST(reactor_thread, a_full_lane_wakes_its_reader_from_another_thread) {
  base::RealClock clock;
  RecordingPorts ports;
  Reactor reactor({}, clock, ports, ports, ports);
  base::Wake room;
  reactor.on_stream_room([&room] { room.ring(); });
  std::thread runner([&reactor] { reactor.run(); });
  for (uint64_t i = 0; i < 4 * limits::kStreamLane; ++i) {
    while (reactor.post_stream(stream_event(i)) == Posted::kFull) room.wait();  // never hangs
  }
  reactor.stop();
  runner.join();
  EXPECT_EQ(reactor.ledger().state().seen.size(), 4 * limits::kStreamLane);
}

TEST(reactor_thread, an_inspection_is_answered_while_it_sleeps) {
  base::RealClock clock;
  RecordingPorts ports;
  Reactor reactor({}, clock, ports, ports, ports);
  std::thread runner([&reactor] { reactor.run(); });
  base::Wake looked;
  reactor.inspect([&looked](ledger::Ledger&) { looked.ring(); });
  looked.wait();
  reactor.stop();
  runner.join();
}

}  // namespace
}  // namespace memdecay::reactor
