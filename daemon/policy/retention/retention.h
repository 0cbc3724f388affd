// Retention: which of the blocks that nobody references a tier keeps. Such a block (an entry of the
// host, disk or shared tier, a sealed page on the device that no engine maps) receives no
// attention; all that is known of it is when it was used and where it stands in its chain. One
// interface for the product's policy (`decay`) and what it is measured against (`lru`, `arc`,
// `s3_fifo`, `min`), so that a replay and a tier ask the same code.
//
// A policy orders, its caller acts: capacity is watched, bytes are moved and leases are known
// elsewhere. One use is
//     touch(use);  if (!holds(use.key) && admits(use)) { while full: evict(); insert(use); }
// which is what use_entry() does for callers without bytes.
// Thread: the owner's. Pure: no clock, no random numbers, no I/O. The same uses give the same
// decisions on every machine. Not here: the order of victims inside a session (../policy.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/contract/clock.h"

namespace memdecay::retention {

// Names what a block contains, wherever its bytes are and whether or not they are anywhere: a
// trace's block id, or 64 bits of a page key. Two blocks with one key share their history; no bytes
// are ever found by it.
using EntryKey = uint64_t;

// A block reference's number in a history that is known to its end; `min` only.
using Reference = uint64_t;
inline constexpr Reference kNever = std::numeric_limits<Reference>::max();

// Whether a block is worth its place whatever its uses.
enum class Body : uint8_t {
  kWhole,
  kPartialTail,  // unsealed: its tokens are not a page's
  kCannotPay,    // to restore it takes longer than to compute it again
};

// A look-up that led to use, a restore, or a store.
struct Use {
  EntryKey key = 0;
  Instant at;          // never before the use before it
  uint64_t chain = 0;  // one request or walk; its uses follow each other, the root first
  uint32_t depth = 0;  // blocks before it in its chain
  Body body = Body::kWhole;
  double log2_b = 0;        // worth of its region in bits; `decay` only
  Reference next = kNever;  // the next use of this key; `min` only
};

// False: something holds it (a lease, a copy), leave it for later.
using MayLeave = absl::FunctionRef<bool(EntryKey)>;

class Retention {
 public:
  virtual ~Retention() = default;

  virtual size_t size() const = 0;  // entries held
  virtual bool holds(EntryKey key) const = 0;
  // Whether it should come in at all. Only `decay` refuses: the others insert always.
  virtual bool admits(const Use&) const { return true; }
  // What every use tells, whether the entry is held or not.
  virtual void touch(const Use& use) = 0;
  // The first to leave of those that may; it is no longer held. Nothing: none may.
  virtual std::optional<EntryKey> evict(MayLeave may_leave) = 0;
  // The entry comes in. It is not held, and `use` is what touch() was just told.
  virtual void insert(const Use& use) = 0;
  // Its bytes went another way; no effect if it is not held.
  virtual void remove(EntryKey key) = 0;
  // Memory in use, about.
  virtual size_t bytes() const = 0;
};

// Defaults are the product's. All but the first two are for `decay`, see decay.cc.
struct RetentionOptions {
  std::string name = "decay";
  size_t capacity = 0;  // entries; > 0. ARC, S3-FIFO and the ghosts of `decay` adapt to it
  uint64_t salt = 0;    // chooses the sample of the ghosts
  Duration memory = Duration::from_seconds(1800);       // G, half-life of the number of uses
  Duration ghost_memory = Duration::from_seconds(300);  // half-life of the ghosts' hits
  double hysteresis = 0.02;                             // by how much another ghost must be better
  uint32_t sample = 4;                                  // S: the ghosts see one key in S
  size_t history = 0;  // keys whose uses are remembered; 0: max(8 x capacity, 65,536)
};

inline constexpr size_t kLeastHistory = 65'536;

// Names that make_retention knows, the product's first.
std::vector<std::string_view> retention_names();
// invalid_argument: unknown name (the known ones are listed), capacity 0, a constant out of range.
absl::StatusOr<std::unique_ptr<Retention>> make_retention(const RetentionOptions& options);

// One use of an entry in a tier of that many, from the look-up to the insertion. True: it was held.
bool use_entry(Retention& retention, const Use& use, size_t capacity);

}  // namespace memdecay::retention
