// Clock, mailbox, wake, thread role, log and seeded numbers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/keyed_hash.h"
#include "daemon/base/limits.h"
#include "daemon/base/log.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/random.h"
#include "daemon/base/real_clock.h"
#include "daemon/base/thread_role.h"

namespace memdecay::base {
namespace {

using Box = Mailbox<int>;

TEST(mailbox, gives_items_in_the_order_they_came) {
  Wake wake;
  Box box(8, wake);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(box.put(i), Box::Put::kTaken);
  EXPECT_EQ(box.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(box.take(), i);
  EXPECT_EQ(box.take(), std::nullopt);
}

TEST(mailbox, full_keeps_nothing_and_says_so) {
  Wake wake;
  Box box(2, wake);
  EXPECT_EQ(box.put(1), Box::Put::kTaken);
  EXPECT_EQ(box.put(2), Box::Put::kTaken);
  EXPECT_EQ(box.put(3), Box::Put::kFull);
  EXPECT_EQ(box.take(), 1);
  EXPECT_EQ(box.put(4), Box::Put::kTaken);
  EXPECT_EQ(box.take(), 2);
  EXPECT_EQ(box.take(), 4);
}

TEST(mailbox, put_always_goes_beyond_the_capacity) {
  Wake wake;
  Box box(1, wake);
  box.put_always(1);
  box.put_always(2);
  EXPECT_EQ(box.put(3), Box::Put::kFull);
  EXPECT_EQ(box.size(), 2u);
}

TEST(mailbox, loses_nothing_from_many_threads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  Wake wake;
  Box box(64, wake);
  std::vector<std::thread> senders;
  for (int t = 0; t < kThreads; ++t) {
    senders.emplace_back([&box, t] {
      for (int i = 0; i < kEach; ++i) {
        while (box.put(t * kEach + i) == Box::Put::kFull) std::this_thread::yield();
      }
    });
  }
  std::vector<int> last(kThreads, -1);
  for (int taken = 0; taken < kThreads * kEach;) {
    const std::optional<int> item = box.take();
    if (!item) {
      wake.wait(Duration::from_milliseconds(100));
      continue;
    }
    EXPECT_GT(*item % kEach, last[static_cast<size_t>(*item / kEach)]);
    last[static_cast<size_t>(*item / kEach)] = *item % kEach;
    ++taken;
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(box.take(), std::nullopt);
}

TEST(wake, a_ring_before_the_wait_is_not_lost) {
  Wake wake;
  wake.ring();
  wake.wait();  // would hang
  const RealClock clock;
  const Instant before = clock.now();
  wake.wait(Duration::from_milliseconds(2));  // the ring is used up: waits its time
  EXPECT_GE(clock.now() - before, Duration::from_milliseconds(2));
}

TEST(clock, never_runs_back_and_the_shifted_one_adds) {
  const RealClock real;
  ShiftedClock shifted;
  const Instant first = real.now();
  EXPECT_LE(first, shifted.now());
  shifted.advance(Duration::from_seconds(100));
  EXPECT_GE(shifted.now() - first, Duration::from_seconds(100));
  EXPECT_LT(real.now() - first, Duration::from_seconds(100));
}

TEST(clock, shifted_one_that_stands_moves_by_what_is_added_alone) {
  const RealClock real;
  ShiftedClock shifted;
  shifted.stand();
  const Instant stood = shifted.now();
  const Instant before = real.now();
  while (real.now() == before) continue;
  EXPECT_EQ(shifted.now(), stood);
  shifted.advance(Duration::from_seconds(3));
  EXPECT_EQ(shifted.now() - stood, Duration::from_seconds(3));
}

TEST(thread_role, is_held_by_one_thread_at_a_time) {
  ThreadRole role;
  EXPECT_FALSE(role.held_by_caller());
  {
    const InRole in_role(role);
    EXPECT_TRUE(role.held_by_caller());
    std::thread other([&role] { EXPECT_FALSE(role.held_by_caller()); });
    other.join();
  }
  EXPECT_FALSE(role.held_by_caller());
}

TEST(thread_role_death, taking_a_taken_role_stops_the_process) {
  ThreadRole role;
  const InRole in_role(role);
  // Clang would refuse to compile this: it has to be hidden from it.
  const auto take_again = [&role]() MEMDECAY_NO_ROLE_CHECK { role.take(); };
  EXPECT_DEATH(take_again(), "compare_exchange");
}

TEST(random, the_same_seed_gives_the_same_numbers) {
  Random a(7), b(7), c(8);
  const uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
  // Known value: SplitMix64 of seed 0.
  EXPECT_EQ(Random(0).next(), 0xe220a8397b1dcdafu);
}

TEST(random, stays_in_range) {
  Random random(1);
  EXPECT_EQ(random.below(0), 0u);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(random.below(5));
    const double unit = random.unit();
    EXPECT_TRUE(unit >= 0 && unit < 1);
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(*seen.rbegin(), 4u);
}

class LogFile : public testing::Test {
 protected:
  LogFile() {
    std::string name = (std::filesystem::temp_directory_path() / "memdecay-log-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~LogFile() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/log"; }
  const std::string& folder() const { return folder_; }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(path()).rdbuf();
    return all.str();
  }

 private:
  std::string folder_;
};

TEST_F(LogFile, writes_message_and_fields_above_its_level) {
  {
    absl::StatusOr<Log> log = Log::to_file(path(), LogLevel::kInfo, LogForm::kText);
    ASSERT_TRUE(log.ok());
    log->debug("not this");
    log->info("engine attached", {{"engine", "7"}, {"name", "two words"}});
  }
  EXPECT_NE(text().find("I engine attached engine=7 name=\"two words\"\n"), std::string::npos)
      << text();
  EXPECT_EQ(text().find("not this"), std::string::npos);
}

TEST_F(LogFile, a_peers_text_stays_on_its_line_and_is_no_format) {
  {
    absl::StatusOr<Log> log = Log::to_file(path(), LogLevel::kInfo, LogForm::kJson);
    ASSERT_TRUE(log.ok());
    log->error("bad {} name", {{"name", "a\"b\n{fake}"}});
  }
  EXPECT_NE(text().find(R"("message":"bad {} name","name":"a\"b\u000a{fake}"})"), std::string::npos)
      << text();
}

TEST_F(LogFile, a_file_that_cannot_be_opened_is_an_error_value) {
  EXPECT_FALSE(Log::to_file(folder(), LogLevel::kInfo, LogForm::kText).ok());
}

TEST(log, silent_by_default) {
  const Log log;
  log.error("nobody hears this");
}

// Key 00 01 .. 0f over 00 01 .. (n - 1): the vectors of the SipHash paper's appendix and code.
TEST(keyed_hash, is_siphash_2_4) {
  const HashKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::array<uint8_t, 15> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(keyed_hash(key, bytes), 0xa129ca6149be45e5u);
  EXPECT_EQ(keyed_hash(key, {}), 0x726fdb47dd0e0e31u);
  EXPECT_NE(keyed_hash({1, 2}, bytes), keyed_hash({1, 3}, bytes));
}

TEST(log, level_names) {
  EXPECT_EQ(log_level_from_name("warning"), LogLevel::kWarning);
  EXPECT_EQ(log_level_from_name("loud"), std::nullopt);
}

}  // namespace
}  // namespace memdecay::base
