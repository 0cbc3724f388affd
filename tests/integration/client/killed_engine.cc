// An engine that is there to be killed: seals two pages, is granted a third, says so on its
// standard output and waits for the end. Usage: killed_engine SOCKET_DIR
#include <unistd.h>

#include <cstdio>

#include "client/memdecay.hpp"
#include "tests/integration/client/engine_tools.h"

int main(int argc, char** argv) {
  using namespace memdecay::integration;
  if (argc != 2) return 2;
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = argv[1];
  options.grants_ahead = MEMDECAY_NO_GRANTS;
  const memdecay::engine::Client client = memdecay::engine::Client::connect(options);
  if (!client) return 1;
  memdecay_open_options open_options = MEMDECAY_OPEN_INIT;
  open_options.name = "killed";
  const memdecay::engine::Session session = client.open(layout(), open_options);
  if (!session || !grow(session, 2, 100) || session.extend(1) != MEMDECAY_OK) return 1;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) ::pause();
}
