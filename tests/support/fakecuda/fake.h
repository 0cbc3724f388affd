// A libcuda.so.1 without a GPU, for tests alone: the state behind its calls. Stricter than the
// driver where the driver forgives, so that what passes here leans on no kindness.
//
// Device memory is a memfd; a "device address" is reserved address space that this process cannot
// touch (PROT_NONE), and only the fake's copies and kernels reach the bytes, through a second
// mapping. Asynchronous work is done late, in an order that the seed decides, by one thread.
//
// What it assumes of the real driver, and the check of tests/gpu that will say so or not:
//   [owner]      create, export, import, reserve, map, access need no context
//   [whole]      a mapping has offset 0 and the size of its allocation; unmap takes it whole
//   [fresh]      a new allocation holds anything (here: 0xa5), so its owner clears it
//   [alive]      memory lives until the last handle, mapping or descriptor anywhere is gone
//   [fd]         an exported descriptor may come without close-on-exec; import duplicates it
//   [readonly]   writing through a PROT_READ mapping is a sticky error
//   [procaddr]   asked for a newer version than it has, the driver answers with what it has: the
//                caller compares cuDriverGetVersion first
//   [batch]      copies of one cuMemcpyBatchAsync happen in any order; the NULL stream is refused
//   [waitvalue]  cuStreamWaitValue64 GEQ compares cyclically, on registered host memory
//   [pinned]     asynchronous copies touch registered host memory only (the driver would stage)
//   [sticky]     after an illegal address every call that needs a context fails with it
//   [uuid]       cuDeviceGetUuid asked as of 9.2 names the GPU, as of 11.4 the MIG instance
//   [modes]      a process in exclusive mode without MPS is refused when another has a context
// Thread: one mutex guards everything; the worker lets go of it between pieces of a copy.
// Not here: settings (options.h), what a test says to the fake (control.h).
#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fakecuda/options.h"

namespace fakecuda {

inline constexpr uint64_t kGranularity = uint64_t{2} << 20;
inline constexpr unsigned char kPoison = 0xa5;

// Device memory: a memfd whose last page says what it is, and the mapping that only we use.
struct Allocation {
  int fd = -1;
  std::byte* alias = nullptr;
  uint64_t bytes = 0;
  int device = 0;
  bool owned = false;  // made here, so it counts against this process's vram
  ~Allocation();
};

struct Mapped {
  uint64_t bytes = 0;
  std::shared_ptr<Allocation> allocation;
  bool readable = false;
  bool writable = false;
};

struct Operation {
  // Does a piece of the work; true: finished. Called with the mutex held.
  std::function<bool()> step;
  // Null: can run. Else asked each time (a wait for a value).
  std::function<bool()> runnable;
  std::chrono::steady_clock::time_point ready_at;
};

struct Stream {
  std::deque<Operation> queue;
  int forced = 0;  // somebody waits: nothing is late any more
};

struct Event {
  uint64_t recorded = 0;
  uint64_t passed = 0;
  Stream* stream = nullptr;
};

struct HostRange {
  uint64_t bytes = 0;
  bool allocated = false;  // by cuMemHostAlloc: ours to free
};

// Gone from this process but perhaps alive in another: [alive].
struct Limbo {
  int fd = -1;
  uint64_t bytes = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable work;      // for the worker
  std::condition_variable progress;  // for those who wait
  Options options;
  bool initialised = false;
  CUresult sticky = CUDA_SUCCESS;
  std::map<std::string, uint64_t> calls;
  std::vector<std::string> broken_rules;

  uint64_t next_handle = 0x1000;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Allocation>> handles;
  std::map<CUdeviceptr, uint64_t> reservations;
  std::map<CUdeviceptr, Mapped> mappings;
  std::vector<Limbo> limbo;
  uint64_t used_bytes = 0;
  std::map<std::byte*, HostRange> host_ranges;
  std::map<int, int> contexts;  // device → times its primary context is retained
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Event*, std::unique_ptr<Event>> events;
  std::mt19937_64 random{1};
  std::thread worker;
  bool stopping = false;
};

State& state();

// The worker that does asynchronous work; both with the mutex not held.
void stop_worker();

enum class Needs : uint8_t { kNothing, kInit, kContext };
// Begins every call: takes the mutex, counts, injects what was asked for, checks the order of
// calls. `result` other than success is to be returned at once.
class Call {
 public:
  Call(const char* name, Needs needs);
  CUresult result = CUDA_SUCCESS;
  std::unique_lock<std::mutex> lock;
};

// Whether the calling thread has a context that is alive. With the mutex held.
bool has_context();

// Device bytes behind an address, null if they may not be touched so. With the mutex held.
enum class Touch : uint8_t { kRead, kWrite };
std::byte* device_bytes(CUdeviceptr address, uint64_t bytes, Touch touch);
// The address itself, if it lies whole in memory that the driver was told of; else null.
std::byte* pinned_bytes(const void* address, uint64_t bytes);
bool is_reserved(CUdeviceptr address);

// Appends to a stream and starts the worker; 0 and strangers are refused.
CUresult enqueue(CUstream stream, Operation operation);
// An operation that copies in pieces, in an order of the seed's.
Operation copy_operation(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);
void broke_rule(std::string what);

// Symbol, version that brought it, address.
struct Symbol {
  const char* name;
  int since;
  void* function;
};
std::vector<Symbol> device_symbols();
std::vector<Symbol> memory_symbols();
std::vector<Symbol> host_symbols();
std::vector<Symbol> stream_symbols();
std::vector<Symbol> copy_symbols();

// The compiler compares the function with the type that the CUDA headers give it.
template <typename Signature>
Symbol symbol(const char* name, int since, Signature function) {
  return {name, since, reinterpret_cast<void*>(function)};
}

}  // namespace fakecuda
