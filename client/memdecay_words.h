/* memdecay_words.h: the enumerations of the C interface, in step with memdecay/v1/common.proto.
 * Numbers never change; names are those of metrics, logs and scenarios. Included by memdecay.h;
 * nothing but words lives here. Thread: none. */
#pragma once

typedef enum memdecay_code {
  MEMDECAY_OK = 0,
  MEMDECAY_INVALID_ARGUMENT = 1,
  MEMDECAY_LAYOUT_REJECTED = 2,
  MEMDECAY_UNKNOWN_SESSION = 3,
  MEMDECAY_UNKNOWN_PAGE = 4,
  MEMDECAY_STALE_EPOCH = 5,
  MEMDECAY_NOT_SEALED = 6,
  MEMDECAY_OUT_OF_RANGE = 7,
  MEMDECAY_RESOURCE_EXHAUSTED = 8,
  MEMDECAY_BUDGET_TOO_SMALL = 9,
  MEMDECAY_PIN_BUDGET = 10,
  MEMDECAY_QUOTA = 11,
  MEMDECAY_LEASE_EXPIRED = 12,
  MEMDECAY_NOT_FOUND = 13,
  MEMDECAY_BUSY = 14,
  MEMDECAY_PERMISSION = 15,
  MEMDECAY_VERSION_MISMATCH = 16,
  MEMDECAY_DATA_LOSS = 17,
  MEMDECAY_UNAVAILABLE = 18,
  MEMDECAY_DEADLINE = 19,
  MEMDECAY_DEVICE_LOST = 20,
  MEMDECAY_UNSUPPORTED = 21,
  MEMDECAY_INTERNAL = 22
} memdecay_code;

typedef enum memdecay_region { /* others are user-defined */
                               MEMDECAY_SYSTEM = 0,
                               MEMDECAY_PLAN = 1,
                               MEMDECAY_USER = 2,
                               MEMDECAY_TOOL_IN = 3,
                               MEMDECAY_TOOL_OUT = 4,
                               MEMDECAY_RETRIEVAL = 5,
                               MEMDECAY_SCRATCHPAD = 6
} memdecay_region;

typedef enum memdecay_page_state {
  MEMDECAY_PAGE_GRANTED = 0, /* yours to write */
  MEMDECAY_PAGE_FILLING = 1,
  MEMDECAY_PAGE_SEALING = 2, /* sealed, its fence is open */
  MEMDECAY_PAGE_MAPPED = 3,
  MEMDECAY_PAGE_ASKED = 4, /* the daemon wants it back; readable until the boundary */
  MEMDECAY_PAGE_GIVEN_UP = 5,
  MEMDECAY_PAGE_HOLE = 6,
  MEMDECAY_PAGE_RESTORING = 7,
  MEMDECAY_PAGE_DROPPED = 8 /* its last bytes are gone */
} memdecay_page_state;

typedef enum memdecay_mode {
  MEMDECAY_MODE_DEFAULT = 0, /* the tenant's */
  MEMDECAY_EXACT = 1,
  MEMDECAY_LOSSY = 2
} memdecay_mode;

typedef enum memdecay_pause {
  MEMDECAY_WAITING_TOOL = 1,
  MEMDECAY_WAITING_USER = 2,
  MEMDECAY_PREEMPTED = 3,
  MEMDECAY_ENDED = 4
} memdecay_pause;

typedef enum memdecay_role { MEMDECAY_SCHEDULER = 1, MEMDECAY_WORKER = 2 } memdecay_role;

typedef enum memdecay_event_kind {
  MEMDECAY_EVENT_GRANT = 1,
  MEMDECAY_EVENT_EVICT = 2,
  MEMDECAY_EVENT_WITHDRAW = 3,
  MEMDECAY_EVENT_RELEASED = 4,
  MEMDECAY_EVENT_RESTORE = 5,
  MEMDECAY_EVENT_READY = 6,
  MEMDECAY_EVENT_FAILED = 7,
  MEMDECAY_EVENT_LOST = 8,
  MEMDECAY_EVENT_BUDGET = 9,
  MEMDECAY_EVENT_MODE = 10,
  MEMDECAY_EVENT_SHUTDOWN = 11,
  MEMDECAY_EVENT_UNMAP_SLAB = 12,
  MEMDECAY_EVENT_REFUSED = 13, /* a call that was not waited for; code */
  MEMDECAY_EVENT_DISCONNECTED = 14,
  MEMDECAY_EVENT_CONNECTED = 15, /* again; nothing was lost */
  MEMDECAY_EVENT_RESET = 16      /* connected to a daemon that does not know this engine */
} memdecay_event_kind;
