// EngineHost: one engine of a scenario in its own process: obeys lines (wire_words.h) by calling
// the C interface, and answers each. Whatever may wait has a thread of its own, so that a request
// that hangs does not keep the script from acknowledging, signalling or killing. Thread: serve() on
// main; commands on theirs. Invariant: every line is answered once. Not here: the protocol with the
// daemon (libmemdecay does all of it).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/memdecay.h"
#include "tests/scenario/wire_words.h"

namespace memdecay::scenario {

class EngineHost {
 public:
  // Reads requests from stdin until it ends; returns the exit code.
  int serve(const WireWords& settings);

 private:
  struct Answer {
    memdecay_code code = MEMDECAY_OK;
    std::string words;
    std::string message;
  };
  using Command = Answer (EngineHost::*)(const WireWords&);
  struct Working {
    std::atomic<bool> done = false;
    std::thread thread;
  };

  void obey(const std::string& line);
  void respond(const std::string& id, const Answer& answer);
  static Command find(const std::string& verb);
  static Answer failed(memdecay_code code);
  static Answer result(memdecay_code code) { return code == MEMDECAY_OK ? Answer{} : failed(code); }
  memdecay_session* session(const WireWords& words);
  // One call on a session that is known here.
  template <typename Call>
  Answer on_session(const WireWords& words, const Call& call) {
    memdecay_session* known = session(words);
    if (known == nullptr) {
      return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
    }
    return result(call(known));
  }
  std::string describe(memdecay_session* session);
  Answer keep(memdecay_code code, memdecay_session* session);

  // real_engine_session.cc
  Answer open(const WireWords& words);
  Answer resume(const WireWords& words);
  Answer fork(const WireWords& words);
  Answer close(const WireWords& words);
  Answer truncate(const WireWords& words);
  Answer park(const WireWords& words);
  Answer unpark(const WireWords& words);
  Answer repair(const WireWords& words);
  Answer budget(const WireWords& words);
  Answer mode(const WireWords& words);
  Answer tag(const WireWords& words);
  Answer untag(const WireWords& words);
  Answer endgroup(const WireWords& words);
  Answer hint(const WireWords& words);
  Answer supersede(const WireWords& words);
  Answer pin(const WireWords& words);
  Answer unpin(const WireWords& words);
  Answer observe(const WireWords& words);
  // real_engine_pages.cc
  Answer extend(const WireWords& words);
  Answer table(const WireWords& words);
  Answer read(const WireWords& words);
  Answer write(const WireWords& words);
  static Answer stray_write(const char* to, const std::string& bytes);
  Answer written(const WireWords& words);
  Answer seal(const WireWords& words);
  Answer readfence(const WireWords& words);
  Answer evict(const WireWords& words);
  Answer restore(const WireWords& words);
  Answer cancel(const WireWords& words);
  Answer lookup(const WireWords& words);
  Answer acquire(const WireWords& words);
  Answer release(const WireWords& words);
  Answer fence(const WireWords& words);
  Answer signal(const WireWords& words);
  Answer ack(const WireWords& words);
  Answer detach(const WireWords& words);
  Answer reattach(const WireWords& words);
  Answer leave(const WireWords& words);
  Answer events(const WireWords& words);
  Answer pass(const WireWords& words);
  std::string unmapped(const std::map<uint64_t, memdecay_session*>& sessions);

  memdecay_client* client_ = nullptr;
  memdecay_layout layout_{};
  memdecay_layout_group group_{};
  std::map<std::string, std::string> texts_;  // what layout_ points to
  uint32_t next_word_ = 0;
  std::mutex mutex_;  // sessions_, restores_, output
  std::map<uint64_t, memdecay_session*> sessions_;
  std::mutex reading_;  // page tables
  std::mutex closing_;  // held while sessions are closed, and while one is asked about by pass()
  std::set<uint64_t> not_ours_;  // sessions that the daemon refuses; pass() only
  std::map<std::string, std::pair<memdecay_session*, uint64_t>> restores_;  // by request line
  std::list<Working> working_;                                              // serve()'s
};

}  // namespace memdecay::scenario
