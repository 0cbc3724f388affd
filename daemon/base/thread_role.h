// A thread role: what one thread owns, said in types. Members that belong to a thread are
// MEMDECAY_GUARDED_BY(role_); the thread takes the role when it starts, and functions that only it
// may call say MEMDECAY_REQUIRES(role_). Clang proves it at compile time (-Wthread-safety);
// entering a role that another thread has stops the process, in every build. Thread: take() and
// give_up() on the thread that owns the role. No waiting, no lock.
#pragma once

#include <atomic>
#include <thread>

#include "proto/contract/check.h"

#if defined(__clang__)
#define MEMDECAY_ATTRIBUTE(x) __attribute__((x))
#else
#define MEMDECAY_ATTRIBUTE(x)
#endif

#define MEMDECAY_ROLE MEMDECAY_ATTRIBUTE(capability("role"))
#define MEMDECAY_GUARDED_BY(role) MEMDECAY_ATTRIBUTE(guarded_by(role))
#define MEMDECAY_REQUIRES(role) MEMDECAY_ATTRIBUTE(requires_capability(role))
#define MEMDECAY_TAKES(...) MEMDECAY_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define MEMDECAY_GIVES_UP(...) MEMDECAY_ATTRIBUTE(release_capability(__VA_ARGS__))
#define MEMDECAY_ASSERTS(...) MEMDECAY_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define MEMDECAY_NO_ROLE_CHECK MEMDECAY_ATTRIBUTE(no_thread_safety_analysis)
#define MEMDECAY_SCOPED_ROLE MEMDECAY_ATTRIBUTE(scoped_lockable)

namespace memdecay::base {

class MEMDECAY_ROLE ThreadRole {
 public:
  // Checked: no thread has it, not even the caller.
  void take() MEMDECAY_TAKES() {
    std::thread::id nobody{};
    MEMDECAY_CHECK(owner_.compare_exchange_strong(nobody, std::this_thread::get_id()));
  }
  void give_up() MEMDECAY_GIVES_UP() { owner_.store(std::thread::id{}); }
  // For callbacks that run on the owner's thread where the compiler cannot see it.
  void assert_held() const MEMDECAY_ASSERTS() {
    MEMDECAY_CHECK(owner_.load() == std::this_thread::get_id());
  }
  bool held_by_caller() const { return owner_.load() == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> owner_{};
};

// Holds a role for a scope.
class MEMDECAY_SCOPED_ROLE InRole {
 public:
  explicit InRole(ThreadRole& role) MEMDECAY_TAKES(role) : role_(role) { role_.take(); }
  ~InRole() MEMDECAY_GIVES_UP() { role_.give_up(); }
  InRole(const InRole&) = delete;
  InRole& operator=(const InRole&) = delete;

 private:
  ThreadRole& role_;
};

}  // namespace memdecay::base
