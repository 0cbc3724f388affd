/* A whole engine in one page: copy it. `engine [SOCKET_DIR]` writes two pages, reads them back where
 * the daemon keeps them, pauses, and goes on. The "model" writes each token's number as its KV. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/memdecay.h"

#define TOKENS 16    /* of a page: must be the daemon's page_tokens */
#define PAGE 65536   /* bytes */

static void check(memdecay_code code) {
  if (code == MEMDECAY_OK) return;
  fprintf(stderr, "%s\n", memdecay_last_error()->message);
  exit(1);
}

int main(int argc, char** argv) {
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = argc > 1 ? argv[1] : NULL;
  options.engine_name = "example";
  memdecay_client* client;
  check(memdecay_connect(&options, &client));

  memdecay_layout_group group = {1, 8, 64, TOKENS, "token.head.dim", 0, PAGE};
  memdecay_layout layout = {sizeof layout, "example", "sha256:0", "1", "none", "bytes", "f16",
                            "none", "none", &group, 1, 1, "none", "none", 1.0, "none", 0, "example"};
  memdecay_session* session;
  check(memdecay_open(client, &layout, NULL, &session));
  check(memdecay_tag(session, &(memdecay_tagged_span){0, TOKENS, MEMDECAY_SYSTEM, 0}, 1));

  uint32_t tokens[2 * TOKENS];
  for (uint32_t i = 0; i < 2 * TOKENS; ++i) tokens[i] = i;
  check(memdecay_extend(session, 2, 0)); /* from here on memory is the daemon's */
  const memdecay_page* pages;
  uint32_t count;
  for (uint32_t page = 0; page < 2; ++page) {
    check(memdecay_page_table(session, &pages, &count));
    for (uint32_t i = 0; i < TOKENS; ++i) /* "compute" */
      memset((char*)pages[page].write + i * (PAGE / TOKENS), (int)tokens[page * TOKENS + i], 64);
    memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
    seal.first_page = page, seal.pages = 1, seal.had_holes = 0;
    seal.tokens = tokens + page * TOKENS, seal.token_count = TOKENS;
    check(memdecay_seal(session, &seal)); /* pages[page].write is gone: sealed bytes never change */
  }
  for (uint64_t step = 1; step <= 3; ++step) { /* decode: the table stands still in a step */
    check(memdecay_begin_step(session));
    check(memdecay_page_table(session, &pages, &count));
    for (uint32_t i = 0; i < count; ++i) /* read NULL: a hole, attend to the others */
      if (pages[i].read) printf("step %d page %u: %d\n", (int)step, i, *(const char*)pages[i].read);
    memdecay_step done = MEMDECAY_STEP_INIT;
    done.step = step, done.position = 2 * TOKENS;
    check(memdecay_end_step(session, &done));
  }
  check(memdecay_park(session, MEMDECAY_WAITING_TOOL)); /* the daemon may take everything */
  check(memdecay_unpark(session, 10000));               /* … and brings it back */
  check(memdecay_close(session, 1));
  memdecay_disconnect(client);
  return puts("done") < 0;
}
