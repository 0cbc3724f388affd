// MEMDECAY_CHECK: an invariant of our own code. It is on in every build: a broken invariant stops
// the program before it can hand out wrong bytes. Never use it on input, drivers, peers or shared
// memory: those are errors, which are values (error.h).
// Thread: any.
#pragma once

namespace memdecay {

// Prints the condition, file and line to stderr and aborts. Never returns.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace memdecay

#define MEMDECAY_CHECK(condition)                               \
  do {                                                          \
    if (!(condition)) [[unlikely]] {                            \
      ::memdecay::check_failed(#condition, __FILE__, __LINE__); \
    }                                                           \
  } while (false)
