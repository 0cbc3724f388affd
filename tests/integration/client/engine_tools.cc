// An engine's small tools; see engine_tools.h.
// Thread: any.
#include "tests/integration/client/engine_tools.h"

#include <unistd.h>

#include <cerrno>

#include "tests/support/plain_layout.h"

namespace memdecay::integration {

memdecay_layout layout() {
  static const memdecay_layout_group group = {1, 1, 64, kTokens, "token.dim", 0, kPage};
  return test::plain_layout(group, "test");
}

std::vector<uint32_t> tokens(uint32_t first, uint32_t pages) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < pages * kTokens; ++i) out.push_back(first + i);
  return out;
}

void fill(const memdecay_page& page, uint32_t first_token) {
  auto* words = static_cast<uint32_t*>(page.write);
  for (uint32_t i = 0; i < kPage / 4; ++i) words[i] = first_token * 2654435761u + i;
}

bool holds(const memdecay_page& page, uint32_t first_token) {
  if (page.read == nullptr) return false;
  const auto* words = static_cast<const uint32_t*>(page.read);
  for (uint32_t i = 0; i < kPage / 4; ++i) {
    if (words[i] != first_token * 2654435761u + i) return false;
  }
  return true;
}

bool grow(const engine::Session& session, uint32_t pages, uint32_t first_token) {
  const auto first = static_cast<uint32_t>(session.pages().size());
  if (session.extend(pages) != MEMDECAY_OK) return false;
  const auto table = session.pages();
  for (uint32_t i = 0; i < pages; ++i) fill(table[first + i], first_token + i * kTokens);
  return session.seal(first, tokens(first_token, pages)) == MEMDECAY_OK;
}

bool can_write(const void* address) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const char byte = 'x';
  (void)!::write(ends[1], &byte, 1);
  const bool fault = ::read(ends[0], const_cast<void*>(address), 1) < 0 && errno == EFAULT;
  ::close(ends[0]);
  ::close(ends[1]);
  return !fault;
}

}  // namespace memdecay::integration
