/* memdecay.h: an engine's way to KV pages that memdecayd owns. This C interface is the one stable
 * boundary of the project: functions are only added, structs only grow at their end.
 *
 * An engine connects, opens a session per sequence, extends it by pages, writes keys and values
 * straight into the pages (memdecay_page.write), seals whole pages, and reads all pages of the
 * session through memdecay_page.read. Between begin_step and end_step the page table stands still;
 * pages that the daemon asks for leave at the next boundary. A page that left is a hole (read is
 * NULL).
 * A sealed page is read-only in this process: writing to it is a fault, by mapping.
 *
 * Threads: a client may be used by many threads; one session is used by one thread at a time.
 * Blocking: every call that asks the daemon waits at most timeout_ms (0: the client's own). While
 * the daemon is away the table and the mappings stay usable and calls answer unavailable.
 * Errors: a call returns a code; memdecay_last_error() says, for this thread, what was asked, what
 * was there and what to do next. Structs with a `size` member: set it by the _INIT macro.
 * Not here: who may have what and what leaves (the daemon decides), tensors, kernels. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/memdecay_words.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MEMDECAY_API __attribute__((visibility("default")))
#define MEMDECAY_API_VERSION 1

typedef struct memdecay_client memdecay_client;
typedef struct memdecay_session memdecay_session;

/* ---- errors ---- */
typedef struct memdecay_error {
  memdecay_code code;
  const char* message; /* the sentences below as one line */
  const char* asked;
  const char* there;
  const char* todo;       /* what to do next */
  int64_t retry_after_ms; /* > 0: try again after about this long */
} memdecay_error;

/* Of the last call on this thread that failed; valid until this thread's next call. Never NULL. */
MEMDECAY_API const memdecay_error* memdecay_last_error(void);
MEMDECAY_API const char* memdecay_code_name(memdecay_code code); /* "resource_exhausted", … */
MEMDECAY_API const char* memdecay_version(void);

/* ---- connecting ---- */
/* What a further member process of a living engine needs to join it: send it to that process. */
typedef struct memdecay_identity {
  uint64_t engine;
  uint32_t epoch;
  uint32_t member; /* of this client; memdecay_fence.member */
  uint8_t token[16];
} memdecay_identity;

typedef struct memdecay_options {
  size_t size;
  const char* socket_dir;  /* NULL: $XDG_RUNTIME_DIR/memdecay if that exists, else /run/memdecay */
  const char* engine_name; /* for people: logs, `memdecayctl status` */
  memdecay_role role;      /* a worker maps slabs and has a timeline; it opens no sessions */
  const memdecay_identity* join; /* NULL: a new engine */
  uint64_t page_bytes;           /* of the layout it will open; 0: not known yet */
  uint32_t page_tokens;          /* 0: whatever the daemon has */
  uint32_t grants_ahead;         /* pages kept granted ahead of need; MEMDECAY_NO_GRANTS: none */
  uint32_t observe_every;        /* an observation is sent every so many steps; 0: 16 */
  int32_t timeout_ms;            /* of a call; 0: 5000 */
  uint8_t lockstep;              /* 1: end_step waits for the daemon's decisions about that step */
  uint8_t manual_ack;            /* 1: nothing is given up or mapped before memdecay_acknowledge */
  uint16_t protocol_major;       /* 0: this library's; other values are for tests of refusal */
  uint16_t protocol_minor;
} memdecay_options;
#define MEMDECAY_NO_GRANTS UINT32_MAX
#define MEMDECAY_OPTIONS_INIT \
  { sizeof(memdecay_options), 0, 0, MEMDECAY_SCHEDULER, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0 }

/* unavailable: no daemon there; permission, version_mismatch: refused. *client is NULL on error. */
MEMDECAY_API memdecay_code memdecay_connect(const memdecay_options* options,
                                            memdecay_client** client);
/* An orderly goodbye; sessions stay resumable. Frees the client and all its sessions. */
MEMDECAY_API void memdecay_disconnect(memdecay_client* client);
/* The sockets close and stay closed until reattach; the process keeps its mappings. */
MEMDECAY_API memdecay_code memdecay_detach(memdecay_client* client);
MEMDECAY_API memdecay_code memdecay_reattach(memdecay_client* client, int32_t timeout_ms);
MEMDECAY_API memdecay_identity memdecay_get_identity(const memdecay_client* client);
/* 1 while the stream stands. A client reconnects by itself, with back-off. */
MEMDECAY_API int memdecay_connected(const memdecay_client* client);

/* ---- layouts: every field is mandatory and resolved (proto/README.md, "Identity") ---- */
typedef struct memdecay_layout_group {
  uint32_t layers;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t page_tokens;
  const char* packing;
  uint32_t window;     /* sliding window in tokens; 0: full attention */
  uint64_t page_bytes; /* K, V and side data of one page of this group */
} memdecay_layout_group;

typedef struct memdecay_layout {
  size_t size;
  const char* model;
  const char* weights_fingerprint;
  const char* revision;
  const char* adapter; /* "none" */
  const char* tokenizer_fingerprint;
  const char* dtype;        /* "f16", … */
  const char* quantization; /* "none" or a scheme */
  const char* scales;       /* "none", "inline", "segment" */
  const memdecay_layout_group* groups;
  uint32_t group_count;
  uint32_t tensor_parallel;
  const char* rope_inv_freq_hash; /* SHA-256 of the float32 LE inverse frequencies, hexadecimal */
  const char* rope_kind;
  double rope_attention_factor;
  const char* rope_pairing; /* "interleaved", "half", "none" */
  uint32_t rope_n_rot;
  const char* producer;
} memdecay_layout;

/* ---- sessions ---- */
typedef struct memdecay_open_options {
  size_t size;
  const char* name; /* unique in the tenant; NULL: the daemon makes one */
  memdecay_mode mode;
  uint32_t budget_pages;      /* 0: none of its own */
  int32_t priority;           /* a higher one leaves later */
  const char* policy;         /* NULL: the configured one */
  int32_t default_region;     /* of untagged tokens; negative: user */
  const char* policy_options; /* "KEY=VALUE;KEY=VALUE", keys as in the configuration without
                                 "policy.", such as "preset=paper;regions.user.b=0.7"; or NULL */
} memdecay_open_options;
#define MEMDECAY_OPEN_INIT \
  { sizeof(memdecay_open_options), 0, MEMDECAY_MODE_DEFAULT, 0, 0, 0, -1, 0 }

typedef struct memdecay_span { /* token positions, half open */
  uint32_t begin;
  uint32_t end;
} memdecay_span;

typedef struct memdecay_tagged_span {
  uint32_t begin;
  uint32_t end;
  uint32_t region;
  uint32_t atomic; /* 1: kept or given up whole */
} memdecay_tagged_span;

/* Pointers are valid until the next call on the session. tokens, regions: as resumed or forked. */
typedef struct memdecay_session_info {
  uint64_t id;
  const char* name;
  uint32_t position; /* tokens in sealed pages */
  uint32_t token_count;
  const uint32_t* tokens;
  const memdecay_tagged_span* regions;
  uint32_t region_count;
  uint32_t page_tokens;
  uint64_t page_bytes;
  uint64_t step;
  uint32_t budget_pages;
  memdecay_mode mode;
  uint8_t ready;    /* 0: wait_ready before computing */
  uint8_t orphaned; /* 1: the daemon no longer knows it (restart); open or resume again */
} memdecay_session_info;

MEMDECAY_API memdecay_code memdecay_open(memdecay_client* client, const memdecay_layout* layout,
                                         const memdecay_open_options* options,
                                         memdecay_session** session);
/* By id, or by name when id is 0. busy: the old engine lives (steal = 1 takes it all the same). */
MEMDECAY_API memdecay_code memdecay_resume(memdecay_client* client, const memdecay_layout* layout,
                                           uint64_t id, const char* name, int steal,
                                           memdecay_session** session);
/* A second session over the same sealed pages. */
MEMDECAY_API memdecay_code memdecay_fork(memdecay_session* session, const char* name,
                                         memdecay_session** child);
/* forget = 1 drops what nobody else references. Frees the session, also when it fails. */
MEMDECAY_API memdecay_code memdecay_close(memdecay_session* session, int forget);
MEMDECAY_API memdecay_session_info memdecay_info(memdecay_session* session);

/* ---- pages ---- */
typedef struct memdecay_page {
  const void* read; /* NULL: not readable now (a hole) */
  void* write;      /* NULL unless granted or filling by this session */
  uint32_t page;    /* index in the session: position / page_tokens; never renumbered */
  uint32_t slab;    /* 0: no slot */
  uint32_t slot;    /* the bytes lie at slot * page_bytes in the slab */
  uint32_t generation;
  uint8_t state;       /* memdecay_page_state */
  uint8_t approximate; /* 1: computed with something missing; private to its session */
  uint8_t reserved[6];
} memdecay_page;

/* The session's pages, one entry an index, holes included. Within a step only this thread's own
 * calls change it; outside a step it is brought up to date by this call. Valid until the next call
 * on the session. */
MEMDECAY_API memdecay_code memdecay_page_table(memdecay_session* session,
                                               const memdecay_page** pages, uint32_t* count);
/* `pages` more pages at the end, zeroed, contiguous. From the cache where that holds enough.
 * All or nothing. resource_exhausted carries retry_after_ms. Call it between steps: inside one the
 * session's own pages cannot make room. */
MEMDECAY_API memdecay_code memdecay_extend(memdecay_session* session, uint32_t pages,
                                           int32_t timeout_ms);
/* Where a slot lies in this process; for workers that are told slots by their scheduler. */
MEMDECAY_API memdecay_code memdecay_slot_address(memdecay_client* client, uint32_t slab,
                                                 uint32_t slot, const void** read, void** write);

/* ---- fences: words 0 … 255 of this member's timeline page are the engine's ---- */
typedef struct memdecay_fence {
  uint32_t member;
  uint32_t word;
  uint64_t value; /* 0: no fence */
} memdecay_fence;
#define MEMDECAY_NO_FENCE \
  { 0, 0, 0 }

/* The next value of a word; it has passed once signalled (or stored by a device stream). */
MEMDECAY_API memdecay_code memdecay_fence_next(memdecay_client* client, uint32_t word,
                                               memdecay_fence* fence);
MEMDECAY_API memdecay_code memdecay_fence_signal(memdecay_client* client, memdecay_fence fence);
MEMDECAY_API memdecay_code memdecay_fence_wait(memdecay_client* client, memdecay_fence fence,
                                               int32_t timeout_ms);
/* The mapped words, for device streams that store to them. */
MEMDECAY_API uint64_t* memdecay_timeline(memdecay_client* client);

/* ---- sealing ---- */
typedef struct memdecay_bytes {
  const void* data;
  size_t size;
} memdecay_bytes;

typedef struct memdecay_seal_info {
  size_t size;
  uint32_t first_page;
  uint32_t pages;
  const uint32_t* tokens; /* pages * page_tokens ids */
  uint32_t token_count;
  memdecay_fence fence; /* bytes are there once it has passed; no fence: they are there now */
  int32_t had_holes;    /* what the engine knows: 1 computed with holes, 0 not, negative unsaid */
  const memdecay_bytes* extras; /* extra keys: media identities, salts */
  uint32_t extra_count;
  uint8_t no_wait; /* 1: do not wait for the answer; a refusal comes as MEMDECAY_EVENT_REFUSED */
} memdecay_seal_info;
#define MEMDECAY_SEAL_INIT \
  { sizeof(memdecay_seal_info), 0, 0, 0, 0, MEMDECAY_NO_FENCE, -1, 0, 0, 0 }

/* Bytes of sealed pages never change again; this process maps them read-only from here on. With
 * no_wait it works while the daemon is away: the seal is sent when it is back. */
MEMDECAY_API memdecay_code memdecay_seal(memdecay_session* session, const memdecay_seal_info* seal);
/* Tokens written so far, not a whole page yet. Sent along; nothing is answered. */
MEMDECAY_API memdecay_code memdecay_written(memdecay_session* session, uint32_t position);
/* Keeps the first `tokens` positions, rounded down to a page. */
MEMDECAY_API memdecay_code memdecay_truncate(memdecay_session* session, uint32_t tokens);

/* ---- steps ---- */
typedef struct memdecay_mass {
  uint32_t page;
  double mass;
} memdecay_mass;

typedef struct memdecay_step {
  size_t size;
  uint64_t step;        /* accepted generated tokens so far */
  uint32_t position;    /* tokens written so far */
  uint32_t queries;     /* of the observation; 0: no masses */
  memdecay_fence fence; /* the step's last read; no fence: all reads are over */
  double sink;          /* sink + tail + rest + masses = 1 over the set visible in this step */
  double tail;          /* on tokens not sealed yet */
  double rest;
  const memdecay_mass* masses;
  uint32_t mass_count;
} memdecay_step;
#define MEMDECAY_STEP_INIT \
  { sizeof(memdecay_step), 0, 0, 0, MEMDECAY_NO_FENCE, 0, 0, 0, 0, 0 }

/* The page table stands still from here to end_step. */
MEMDECAY_API memdecay_code memdecay_begin_step(memdecay_session* session);
/* 1 if an observation is due: compute this step's masses then. Those of other steps (a prefill's,
 * say) are sent too, if end_step is given any. */
MEMDECAY_API int memdecay_wants_masses(const memdecay_session* session);
/* The boundary: pages asked for leave the table and are given up, restored ones come in. */
MEMDECAY_API memdecay_code memdecay_end_step(memdecay_session* session, const memdecay_step* step);
/* manual_ack: give up and map what is pending now, in all sessions. */
MEMDECAY_API memdecay_code memdecay_acknowledge(memdecay_client* client, memdecay_fence fence);
MEMDECAY_API memdecay_code memdecay_set_manual_ack(memdecay_client* client, int manual);
/* Pages are being read until the fence passes (outside of steps). */
MEMDECAY_API memdecay_code memdecay_read_fence(memdecay_session* session, const uint32_t* pages,
                                               uint32_t count, memdecay_fence fence);

/* ---- what the session's pages mean ---- */
MEMDECAY_API memdecay_code memdecay_tag(memdecay_session* session,
                                        const memdecay_tagged_span* spans, uint32_t count);
MEMDECAY_API memdecay_code memdecay_untag(memdecay_session* session, memdecay_span span);
/* An empty span: all scratchpad tokens so far. */
MEMDECAY_API memdecay_code memdecay_end_group(memdecay_session* session, memdecay_span span,
                                              int cut);
MEMDECAY_API memdecay_code memdecay_hint(memdecay_session* session, memdecay_span span,
                                         double relevance);
MEMDECAY_API memdecay_code memdecay_supersede(memdecay_session* session, memdecay_span span);
/* ttl_ms 0: until the session ends or its engine dies. */
MEMDECAY_API memdecay_code memdecay_pin(memdecay_session* session, uint32_t first_page,
                                        uint32_t pages, int64_t ttl_ms);
MEMDECAY_API memdecay_code memdecay_unpin(memdecay_session* session, uint32_t first_page,
                                          uint32_t pages);
MEMDECAY_API memdecay_code memdecay_set_budget(memdecay_session* session, uint32_t budget_pages);
MEMDECAY_API memdecay_code memdecay_set_mode(memdecay_session* session, memdecay_mode mode);

/* ---- pauses and returns ---- */
MEMDECAY_API memdecay_code memdecay_park(memdecay_session* session, memdecay_pause why);
/* Asks for the pages back and waits until the session may compute. data_loss: a page is gone; the
 * message names it (truncate to its start and recompute). deadline: not ready yet, wait_ready. */
MEMDECAY_API memdecay_code memdecay_unpark(memdecay_session* session, int32_t timeout_ms);
/* timeout_ms < 0: do not wait, only ask. */
MEMDECAY_API memdecay_code memdecay_wait_ready(memdecay_session* session, int32_t timeout_ms);

typedef struct memdecay_repair_info {
  uint32_t needed;     /* 0: nothing is approximate */
  uint32_t first_page; /* truncate to its first token and recompute */
  uint32_t tokens;     /* what that costs */
} memdecay_repair_info;
MEMDECAY_API memdecay_code memdecay_repair(memdecay_session* session, memdecay_repair_info* repair,
                                           int32_t timeout_ms);

MEMDECAY_API memdecay_code memdecay_evict(memdecay_session* session, const uint32_t* pages,
                                          uint32_t count);

typedef struct memdecay_failed_page {
  uint32_t page;
  memdecay_code code;
} memdecay_failed_page;
typedef struct memdecay_restore_result {
  uint32_t resident;
  uint32_t failed_count;        /* all of them; at most failed_capacity are written */
  memdecay_failed_page* failed; /* the caller's array or NULL */
  uint32_t failed_capacity;
} memdecay_restore_result;
/* Waits until every page has its answer; result may be NULL. */
MEMDECAY_API memdecay_code memdecay_restore(memdecay_session* session, const uint32_t* pages,
                                            uint32_t count, int32_t timeout_ms,
                                            memdecay_restore_result* result);
/* The same in two parts. A request that was waited for, or not within the deadline, is over. */
MEMDECAY_API memdecay_code memdecay_restore_start(memdecay_session* session, const uint32_t* pages,
                                                  uint32_t count, uint64_t* request);
MEMDECAY_API memdecay_code memdecay_restore_wait(memdecay_session* session, uint64_t request,
                                                 int32_t timeout_ms,
                                                 memdecay_restore_result* result);
/* What has not come back stays; the restore ends with what has. not_found: it is over. */
MEMDECAY_API memdecay_code memdecay_restore_cancel(memdecay_session* session, uint64_t request);

/* ---- sharing ---- */
typedef struct memdecay_lookup_result {
  uint32_t pages; /* longest usable exact prefix */
  uint32_t device_pages;
  uint32_t host_pages;
  uint32_t first_missing;
  uint32_t pending; /* 1: the next page is being written; ask again */
} memdecay_lookup_result;
/* No side effect. tokens: whole pages count, a rest is ignored. */
MEMDECAY_API memdecay_code memdecay_lookup(memdecay_client* client, const memdecay_layout* layout,
                                           const uint32_t* tokens, uint32_t token_count,
                                           const memdecay_bytes* extras, uint32_t extra_count,
                                           memdecay_lookup_result* result);
typedef struct memdecay_lease {
  uint64_t id;
  uint32_t pages;
  int64_t expires_in_ms;
} memdecay_lease;
/* Into a session (from its end on; wait_ready until restored ones are there), or with a layout and
 * session NULL a lease only. */
MEMDECAY_API memdecay_code memdecay_acquire(memdecay_client* client, const memdecay_layout* layout,
                                            memdecay_session* session, const uint32_t* tokens,
                                            uint32_t token_count, const memdecay_bytes* extras,
                                            uint32_t extra_count, memdecay_lease* lease);
MEMDECAY_API memdecay_code memdecay_release(memdecay_client* client, uint64_t lease);

/* ---- events: everything is handled by the library; this tells what happened ---- */
typedef struct memdecay_event {
  memdecay_event_kind kind;
  uint64_t session; /* 0: about the engine */
  uint64_t decision;
  uint32_t page;
  uint32_t slab;
  uint32_t slot;
  uint32_t generation;
  uint32_t reason;      /* evict: memdecay.v1.Reason */
  memdecay_code code;   /* failed, refused */
  uint32_t value;       /* budget, mode */
  uint32_t lost_events; /* older events that were dropped because nobody took them */
} memdecay_event;
/* refused: memdecay_last_error() then has the daemon's words, though this call did not fail.
 * One event a page. deadline: none came. At most 4096 wait; the oldest go first. */
MEMDECAY_API memdecay_code memdecay_next_event(memdecay_client* client, int32_t timeout_ms,
                                               memdecay_event* event);
MEMDECAY_API const char* memdecay_event_name(memdecay_event_kind kind);
MEMDECAY_API const char* memdecay_reason_name(uint32_t reason);

#ifdef __cplusplus
}
#endif
