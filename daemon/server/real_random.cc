// See real_random.h.
#include "daemon/server/real_random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "proto/contract/error.h"

namespace memdecay::server {

absl::StatusOr<Token> random_token() {
  Token token{};
  ssize_t got = -1;
  do {
    got = ::getrandom(token.data(), token.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(token.size())) return token;
  return make_error(ErrorCode::kUnavailable, "random bytes for a token", std::strerror(errno), "");
}

}  // namespace memdecay::server
