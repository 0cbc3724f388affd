// Tells ThreadSanitizer what absl::Mutex does; linked into every program of the tsan preset only.
//
// Why: Debian's abseil is not built for TSan, which therefore sees no order between two holders of
// a mutex and reports every guarded field. These definitions stand before the library's own at link
// time, call them, and announce each lock and unlock. Our code stays as it is.
// Thread: any, like the mutex. Invariant: between a pre_ and a post_ call TSan ignores this thread,
// which also covers conditions of other threads that an unlock evaluates.
// What is not here: reader locks and timed LockWhen, which we do not use; add them when we do.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/contract/check.h"

namespace {

// The library's function behind ours. The symbol names are those of Debian 12's abseil; another
// abseil is noticed at once by the check.
template <typename Function>
Function real(const char* symbol) {
  void* const address = dlsym(RTLD_NEXT, symbol);
  MEMDECAY_CHECK(address != nullptr);
  return reinterpret_cast<Function>(address);
}

constexpr char kLock[] = "_ZN4absl7debian35Mutex4LockEv";
constexpr char kTryLock[] = "_ZN4absl7debian35Mutex7TryLockEv";
constexpr char kLockWhen[] = "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE";
constexpr char kUnlock[] = "_ZN4absl7debian35Mutex6UnlockEv";
constexpr char kDestroy[] = "_ZN4absl7debian35MutexD1Ev";
constexpr char kAwait[] = "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE";
constexpr char kAwaitWithTimeout[] =
    "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE";
constexpr char kAwaitWithDeadline[] =
    "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE";
constexpr char kWait[] = "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE";
constexpr char kWaitWithTimeout[] =
    "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE";
constexpr char kWaitWithDeadline[] =
    "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE";

// True while the library's own function runs: what it calls in turn is not announced again.
thread_local bool inside = false;

// A wait gives the mutex up and takes it again: what `wait` does inside is not looked at.
template <typename Wait>
auto announce_wait(absl::Mutex* mutex, Wait wait) {
  if (inside) {
    return wait();
  }
  inside = true;
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  __tsan_mutex_pre_lock(mutex, 0);
  const auto result = wait();
  inside = false;
  __tsan_mutex_post_lock(mutex, 0, 0);
  return result;
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  static const auto next = real<void (*)(Mutex*)>(kDestroy);
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
  next(this);
}

void Mutex::Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static const auto next = real<void (*)(Mutex*)>(kLock);
  __tsan_mutex_pre_lock(this, 0);
  next(this);
  __tsan_mutex_post_lock(this, 0, 0);
}

void Mutex::LockWhen(const Condition& condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static const auto next = real<void (*)(Mutex*, const Condition&)>(kLockWhen);
  __tsan_mutex_pre_lock(this, 0);
  next(this, condition);
  __tsan_mutex_post_lock(this, 0, 0);
}

bool Mutex::TryLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static const auto next = real<bool (*)(Mutex*)>(kTryLock);
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
  const bool taken = next(this);
  const unsigned failed = taken ? 0U : __tsan_mutex_try_lock_failed;
  __tsan_mutex_post_lock(this, __tsan_mutex_try_lock | failed, 0);
  return taken;
}

void Mutex::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static const auto next = real<void (*)(Mutex*)>(kUnlock);
  __tsan_mutex_pre_unlock(this, 0);
  next(this);
  __tsan_mutex_post_unlock(this, 0);
}

void Mutex::Await(const Condition& condition) {
  static const auto next = real<void (*)(Mutex*, const Condition&)>(kAwait);
  announce_wait(this, [&] { return next(this, condition), true; });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto next = real<bool (*)(Mutex*, const Condition&, Duration)>(kAwaitWithTimeout);
  return announce_wait(this, [&] { return next(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto next = real<bool (*)(Mutex*, const Condition&, Time)>(kAwaitWithDeadline);
  return announce_wait(this, [&] { return next(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  static const auto next = real<void (*)(CondVar*, Mutex*)>(kWait);
  announce_wait(mutex, [&] { return next(this, mutex), true; });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto next = real<bool (*)(CondVar*, Mutex*, Duration)>(kWaitWithTimeout);
  return announce_wait(mutex, [&] { return next(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto next = real<bool (*)(CondVar*, Mutex*, Time)>(kWaitWithDeadline);
  return announce_wait(mutex, [&] { return next(this, mutex, deadline); });
}

ABSL_NAMESPACE_END
}  // namespace absl
