// What a recording hears: every kind of event of the trace format, from the calls that cause it, as
// the lines that a file would have.
#include "daemon/ledger/tape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/policy/trace/event.h"
#include "proto/contract/page_key.h"
#include "tests/unit/daemon/ledger/ledger_world.h"

namespace memdecay::ledger {
namespace {

constexpr base::HashKey kSalt = {17, 4};

class TapeTest : public ::testing::Test {
 protected:
  void record(TapeOptions options = {}) {
    options.salt = kSalt;
    world_.ledger().start_tape(world_.now(), std::move(options));
  }
  // Lines since the last call, keys as <n> for the n-th page key of `tokens_of`.
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    for (const trace::Event& event : world_.ledger().take_tape()) {
      out.push_back(trace::to_line(event));
    }
    return out;
  }
  // The key in a trace of a first page whose tokens are all `token`.
  static std::string key(TokenId token) {
    const std::vector<TokenId> tokens(16, token);
    const PageKey name = page_key(LedgerWorld::layout().name_space, {}, tokens, {});
    const trace::Event event{.what = trace::Looked{.keys = {base::keyed_hash(kSalt, name.bytes)}}};
    const std::string line = trace::to_line(event);
    return line.substr(line.find("\"k\":[\"") + 6, 16);
  }
  Acquire acquire(SessionId session, TokenId token, Tail tail) const {
    const std::vector<TokenId> tokens(16, token);
    return {.origin = engine_,
            .layout = LedgerWorld::layout(),
            .session = session,
            .keys = {page_key(LedgerWorld::layout().name_space, {}, tokens, {})},
            .tokens = tokens,
            .tail = tail};
  }
  void TearDown() override { EXPECT_EQ(world_.ledger().audit(), std::vector<std::string>{}); }

  LedgerWorld world_{small_pool(4, 8)};
  Origin engine_ = world_.attach();
};

using Lines = std::vector<std::string>;

TEST_F(TapeTest, without_a_recording_there_is_nothing) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  EXPECT_EQ(lines(), Lines{});
}

TEST_F(TapeTest, a_session_from_its_opening_to_its_end) {
  record();
  const SessionId session = world_.open(engine_, Mode::kLossy);
  EXPECT_EQ(lines(),
            Lines{R"({"t":0.000,"e":"open","s":1,"tenant":1,"mode":"lossy","policy":"lru"})"});
  world_.advance(Duration::from_milliseconds(1250));
  const std::string k = key(7);
  ASSERT_TRUE(world_.fill(engine_, session, 2, 7, 0).ok());
  const Lines sealed = lines();
  ASSERT_EQ(sealed.size(), 2u);
  EXPECT_EQ(sealed[0],
            R"({"t":1.250,"e":"seal","s":1,"p":0,"n":16,"r":[[2,16]],"k":")" + k + R"("})");
  EXPECT_EQ(sealed[1].find(k), std::string::npos) << "the key is of the whole prefix";

  world_.ask(Tag{.origin = engine_, .session = session, .spans = {{{8, 20}, 0}}});
  EXPECT_EQ(lines(), (Lines{R"({"t":1.250,"e":"tag","s":1,"p":0,"r":[[2,8],[0,8]]})",
                            R"({"t":1.250,"e":"tag","s":1,"p":1,"r":[[0,4],[2,12]]})"}));
  world_.ask(Observe{.origin = engine_,
                     .session = session,
                     .step = 3,
                     .queries = 2,
                     .sink = 0.25,
                     .tail = 0.25,
                     .masses = {{1, 0.5}}});
  world_.ask(Observe{.origin = engine_, .session = session, .step = 4});
  EXPECT_EQ(lines(), (Lines{R"({"t":1.250,"e":"obs","s":1,"step":3,"q":32,"nq":2,"sink":0.25,)"
                            R"("tail":0.25,"rest":0,"m":[[1,0.5]]})",
                            R"({"t":1.250,"e":"step","s":1,"step":4})"}));
  world_.ask(Pin{.origin = engine_, .session = session, .first_page = 0, .pages = 2});
  world_.ask(Unpin{.origin = engine_, .session = session, .first_page = 1, .pages = 1});
  EXPECT_EQ(lines(), (Lines{R"({"t":1.250,"e":"pin","s":1,"p":[0,1]})",
                            R"({"t":1.250,"e":"unpin","s":1,"p":[1]})"}));
  world_.ask(Truncate{.origin = engine_, .session = session, .tokens = 16});
  world_.ask(Park{.origin = engine_, .session = session, .state = SessionState::kWaitingTool});
  world_.ask(
      CloseSession{.origin = engine_, .session = session, .what = CloseSession::What::kForget});
  EXPECT_EQ(lines(),
            (Lines{R"({"t":1.250,"e":"cut","s":1,"p":1})",
                   R"({"t":1.250,"e":"state","s":1,"to":"waiting_tool"})",
                   R"({"t":1.250,"e":"unpin","s":1,"p":[0]})", R"({"t":1.250,"e":"end","s":1})"}));
}

TEST_F(TapeTest, pages_leave_and_come_back) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 3, 7, 0).ok());
  record();
  const EvictPages evict{.origin = engine_, .session = session, .pages = {0, 1}};
  const Effects effects = world_.step(Event(evict));
  EXPECT_EQ(lines(), Lines{}) << "asked for, and still seen";
  const auto asked = LedgerWorld::notices<EvictNotice>(effects);
  ASSERT_EQ(asked.size(), 1u);
  world_.ask(GaveUp{
      .origin = engine_, .session = session, .decision = asked[0].decision, .pages = {0, 1}});
  const Lines gone = lines();
  ASSERT_EQ(gone.size(), 6u) << "the session is introduced by the first event about it";
  EXPECT_EQ(gone[0],
            R"({"t":0.000,"e":"open","s":1,"tenant":1,"mode":"lossy","policy":"lru","old":1})");
  EXPECT_EQ(gone[3].substr(0, 30), R"({"t":0.000,"e":"seal","s":1,"p)");
  EXPECT_EQ(gone[5], R"({"t":0.000,"e":"out","s":1,"p":[0,1],"why":"admin"})");
  world_.finish_copies();
  world_.ask(RestorePages{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  const auto pages = *report_pages(world_.ledger(), session);
  world_.ask(Resident{.origin = engine_,
                      .session = session,
                      .pages = {0},
                      .generations = {pages[0].view.slot.generation}});
  EXPECT_EQ(lines(), Lines{R"({"t":0.000,"e":"in","s":1,"p":[0]})"});
}

TEST_F(TapeTest, lookups_name_what_was_asked_for_and_what_was_found) {
  const SessionId first = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, first, 1, 7, 0).ok());
  record();
  const Acquire asked = acquire({}, 7, Tail::kPartial);
  world_.ask(Lookup{.origin = engine_,
                    .layout = asked.layout,
                    .keys = asked.keys,
                    .tokens = asked.tokens,
                    .tail = Tail::kPartial});
  EXPECT_EQ(lines(),
            Lines{R"({"t":0.000,"e":"look","k":[")" + key(7) + R"("],"hit":1,"tail":1,"peek":1})"});
  const SessionId second = world_.open(engine_, Mode::kExact);
  world_.ask(acquire(second, 7, Tail::kNone));
  const std::string seal = R"({"t":0.000,"e":"seal","s":1,"p":0,"n":16,"r":[[2,16]],"k":")";
  EXPECT_EQ(lines(),
            (Lines{R"({"t":0.000,"e":"open","s":1,"tenant":1,"mode":"exact","policy":"lru"})",
                   R"({"t":0.000,"e":"look","s":1,"k":[")" + key(7) + R"("],"hit":1,"tail":0})",
                   seal + key(7) + R"("})"}));
  const SessionId third = world_.open(engine_, Mode::kExact);
  world_.ask(acquire(third, 9, Tail::kNone));
  EXPECT_EQ(lines().back(),
            R"({"t":0.000,"e":"look","s":2,"k":[")" + key(9) + R"("],"hit":0,"tail":0})");
}

TEST_F(TapeTest, a_fork_begins_with_the_pages_of_its_parent) {
  record();
  const SessionId session = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  lines();
  world_.ask(ForkSession{.origin = engine_, .from = session, .name = "f"});
  EXPECT_EQ(lines(), Lines{R"({"t":0.000,"e":"fork","s":2,"of":1})"});
}

TEST_F(TapeTest, sessions_that_nobody_asked_for_are_left_out) {
  record({.sessions = {"wanted"}});
  const SessionId other = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, other, 1, 7, 0).ok());
  world_.ask(acquire({}, 7, Tail::kNone));
  EXPECT_EQ(lines(), Lines{});
  world_.ask(OpenSession{.origin = engine_, .name = "wanted", .layout = LedgerWorld::layout()});
  EXPECT_EQ(lines().size(), 1u);
}

}  // namespace
}  // namespace memdecay::ledger
