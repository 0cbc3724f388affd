// The one way in which a broken invariant ends the program (see check.h).
#include "proto/contract/check.h"

#include <cstdio>
#include <cstdlib>

namespace memdecay {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "memdecay: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace memdecay
