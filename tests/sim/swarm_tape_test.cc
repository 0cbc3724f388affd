// Recordings of swarm runs: they change no decision, and whoever reads one knows after every step
// which pages each session has and which of them it sees.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/ledger/state.h"
#include "daemon/ledger/transitions.h"
#include "daemon/policy/trace/parser.h"
#include "tests/sim/swarm.h"

namespace memdecay::sim {
namespace {

// What a reader of the lines knows of one session.
struct Known {
  std::vector<bool> seen;  // by page
};

class Reader {
 public:
  Reader() {
    const trace::Header header{.page_tokens = kSwarmPageTokens, .sinks = 4, .regions = {"one"}};
    EXPECT_TRUE(parser_.take(trace::to_line(header), ++line_).ok());
  }

  void take(const std::string& line) {
    const auto event = parser_.take(line, ++line_);
    ASSERT_TRUE(event.ok()) << event.status() << "\n" << line;
    ASSERT_NE(*event, nullptr) << line;
    ++kinds_[(*event)->what.index()];
    const trace::SessionNumber session = (*event)->session;
    std::visit([&](const auto& what) { apply(session, what); }, (*event)->what);
  }

  const std::map<trace::SessionNumber, Known>& sessions() const { return sessions_; }
  const std::map<size_t, uint64_t>& kinds() const { return kinds_; }

 private:
  using Number = trace::SessionNumber;

  void apply(Number session, const trace::Opened&) {
    EXPECT_TRUE(sessions_.try_emplace(session).second);
  }
  void apply(Number session, const trace::Forked& fork) {
    EXPECT_TRUE(sessions_.try_emplace(session, sessions_.at(fork.of)).second);
    sessions_.at(session).seen.assign(sessions_.at(session).seen.size(), true);
  }
  void apply(Number session, const trace::Sealed& sealed) {
    Known& known = sessions_.at(session);
    EXPECT_EQ(known.seen.size(), sealed.page) << "pages are sealed in order";
    known.seen.resize(sealed.page + 1, true);
  }
  void apply(Number session, const trace::Left& left) {
    for (const PageIndex page : left.pages) sessions_.at(session).seen.at(page) = false;
  }
  void apply(Number session, const trace::Returned& back) {
    for (const PageIndex page : back.pages) {
      EXPECT_FALSE(sessions_.at(session).seen.at(page));
      sessions_.at(session).seen.at(page) = true;
    }
  }
  void apply(Number session, const trace::Cut& cut) {
    EXPECT_LT(cut.page, sessions_.at(session).seen.size());
    sessions_.at(session).seen.resize(cut.page);
  }
  void apply(Number session, const trace::Ended&) { EXPECT_EQ(sessions_.erase(session), 1u); }
  void apply(Number session, const trace::Looked&) {
    EXPECT_TRUE(session == 0 || sessions_.contains(session));
  }
  template <typename Other>
  void apply(Number session, const Other&) {
    EXPECT_TRUE(sessions_.contains(session)) << "told of before it was introduced";
  }

  trace::Parser parser_{"swarm"};
  uint64_t line_ = 0;
  std::map<Number, Known> sessions_;
  std::map<size_t, uint64_t> kinds_;
};

void compare(const ledger::State& state, const Reader& reader) {
  for (const auto& [id, number] : state.tape->numbers) {
    const auto session = state.sessions.find(id);
    if (session == state.sessions.end()) continue;
    const Known& known = reader.sessions().at(number);
    ASSERT_EQ(known.seen.size(), session->second->sealed_pages) << "session " << id.value;
    for (PageIndex page = 0; page < known.seen.size(); ++page) {
      const PageState view = session->second->pages[page].state;
      const bool seen = ledger::is_mapped(view) || view == PageState::kSealing;
      EXPECT_EQ(known.seen[page], seen) << "session " << id.value << " page " << page;
    }
  }
}

TEST(swarm_tape, a_recording_changes_nothing_and_tells_all) {
  std::map<size_t, uint64_t> kinds;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Reader reader;
    SwarmOptions options{.seed = seed, .tape_from = seed % 2 == 0 ? 0 : 200};
    const SwarmResult alone = Swarm(options).run();
    options.tape = [&reader](const ledger::Ledger& ledger, const std::vector<trace::Event>& tape) {
      for (const trace::Event& event : tape) reader.take(trace::to_line(event));
      if (ledger.state().tape != nullptr) compare(ledger.state(), reader);
    };
    const SwarmResult recorded = Swarm(options).run();
    EXPECT_EQ(recorded.problems, alone.problems);
    EXPECT_EQ(recorded.trace_hash, alone.trace_hash);
    EXPECT_EQ(recorded.steps, alone.steps);
    for (const auto& [kind, count] : reader.kinds()) kinds[kind] += count;
  }
  const size_t steps = trace::What(trace::Stepped{}).index();  // the swarm observes at each step
  const size_t lost = trace::What(trace::Lost{}).index();      // the recorder's
  for (size_t kind = 0; kind < std::variant_size_v<trace::What>; ++kind) {
    if (kind == steps || kind == lost) continue;
    EXPECT_GT(kinds[kind], 0u) << "no event of kind " << kind;
  }
}

}  // namespace
}  // namespace memdecay::sim
