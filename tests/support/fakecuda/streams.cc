// Streams, events and the one worker that does what was enqueued: late, and between streams in an
// order of the seed's. Within a stream things happen in order, as on a GPU.
#include <cudaTypedefs.h>

#include <atomic>
#include <utility>

#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// How often a wait for a value looks.
constexpr microseconds kPoll{100};

Stream* find(CUstream stream) {
  const auto found = state().streams.find(reinterpret_cast<Stream*>(stream));
  return found == state().streams.end() ? nullptr : found->second.get();
}

bool can_run(const Stream& stream, steady_clock::time_point now) {
  if (stream.queue.empty()) return false;
  const Operation& head = stream.queue.front();
  if (stream.forced == 0 && now < head.ready_at) return false;
  return !head.runnable || head.runnable();
}

// One piece of one runnable stream's work. False: nothing can run now.
bool do_one(State& s) {
  std::vector<Stream*> able;
  const auto now = steady_clock::now();
  for (const auto& [address, stream] : s.streams) {
    if (can_run(*stream, now)) able.push_back(stream.get());
  }
  if (able.empty()) return false;
  Stream& chosen = *able[s.random() % able.size()];
  // Broken work ends at once: nothing of it reaches memory any more.
  if (s.sticky != CUDA_SUCCESS || chosen.queue.front().step()) {
    chosen.queue.pop_front();
    s.progress.notify_all();
  }
  return true;
}

void work() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  while (!s.stopping) {
    if (do_one(s)) {
      lock.unlock();  // let callers in between pieces
      lock.lock();
      continue;
    }
    bool idle = true;
    for (const auto& [address, stream] : s.streams) idle = idle && stream->queue.empty();
    if (idle) {
      s.work.wait(lock);
    } else {
      s.work.wait_for(lock, kPoll);
    }
  }
}

CUresult stream_create(CUstream* stream, unsigned int flags) {
  Call call("cuStreamCreate", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  // A blocking stream waits for the NULL stream of whoever else is in this process.
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<Stream>();
  Stream* at = made.get();
  state().streams[at] = std::move(made);
  *stream = reinterpret_cast<CUstream>(at);
  return CUDA_SUCCESS;
}

CUresult stream_destroy(CUstream stream) {
  Call call("cuStreamDestroy", Needs::kContext);
  if (call.result != CUDA_SUCCESS && call.result != state().sticky) return call.result;
  Stream* found = find(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!found->queue.empty() && state().sticky == CUDA_SUCCESS) {
    broke_rule("a stream was destroyed with work in it");
  }
  state().streams.erase(found);
  return call.result;
}

// Waits until `done`, with the stream's work no longer late.
CUresult await(const char* name, Call& call, Stream& stream, const std::function<bool()>& done) {
  State& s = state();
  if (s.options.skip.contains(name)) return CUDA_SUCCESS;
  ++stream.forced;
  s.work.notify_all();
  s.progress.wait(call.lock, [&] { return done() || s.sticky != CUDA_SUCCESS; });
  --stream.forced;
  return s.sticky;
}

CUresult stream_synchronize(CUstream stream) {
  Call call("cuStreamSynchronize", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  Stream* found = find(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return await("cuStreamSynchronize", call, *found, [found] { return found->queue.empty(); });
}

CUresult event_create(CUevent* event, unsigned int) {
  Call call("cuEventCreate", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  auto made = std::make_unique<Event>();
  Event* at = made.get();
  state().events[at] = std::move(made);
  *event = reinterpret_cast<CUevent>(at);
  return CUDA_SUCCESS;
}

Event* find(CUevent event) {
  const auto found = state().events.find(reinterpret_cast<Event*>(event));
  return found == state().events.end() ? nullptr : found->second.get();
}

CUresult event_destroy(CUevent event) {
  Call call("cuEventDestroy", Needs::kContext);
  if (call.result != CUDA_SUCCESS && call.result != state().sticky) return call.result;
  Event* found = find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  state().events.erase(found);
  return call.result;
}

CUresult event_record(CUevent event, CUstream stream) {
  Call call("cuEventRecord", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  Event* found = find(event);
  Stream* on = find(stream);
  if (found == nullptr || on == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  found->stream = on;
  const uint64_t number = ++found->recorded;
  Operation mark;
  mark.step = [found, number] {
    // The event may be gone; then nobody waits for it.
    if (state().events.contains(found)) found->passed = number;
    return true;
  };
  return enqueue(stream, std::move(mark));
}

CUresult event_synchronize(CUevent event) {
  Call call("cuEventSynchronize", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  Event* found = find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (found->stream == nullptr || !state().streams.contains(found->stream)) return CUDA_SUCCESS;
  const uint64_t wanted = found->recorded;
  return await("cuEventSynchronize", call, *found->stream,
               [found, wanted] { return found->passed >= wanted; });
}

std::atomic_ref<cuuint64_t> word_at(CUdeviceptr address) {
  return std::atomic_ref<cuuint64_t>(*reinterpret_cast<cuuint64_t*>(address));
}

bool word_is_pinned(CUdeviceptr address) {
  return address % 8 == 0 && pinned_bytes(reinterpret_cast<void*>(address), 8) != nullptr;
}

CUresult write_value(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  Call call("cuStreamWriteValue64", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || !word_is_pinned(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation write;
  write.step = [address, value] {
    if (!word_is_pinned(address)) {
      state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
      return true;
    }
    word_at(address).store(value, std::memory_order_release);
    return true;
  };
  return enqueue(stream, std::move(write));
}

// [waitvalue]
CUresult wait_value(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  Call call("cuStreamWaitValue64", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (flags != CU_STREAM_WAIT_VALUE_GEQ || !word_is_pinned(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation wait;
  wait.runnable = [address, value] {
    if (!word_is_pinned(address)) return true;
    const cuuint64_t now = word_at(address).load(std::memory_order_acquire);
    return static_cast<int64_t>(now - value) >= 0;
  };
  wait.step = [address] {
    if (!word_is_pinned(address)) state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return true;
  };
  return enqueue(stream, std::move(wait));
}

}  // namespace

CUresult enqueue(CUstream stream, Operation operation) {
  State& s = state();
  Stream* found = find(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t late = s.options.late_us == 0 ? 0 : s.random() % s.options.late_us;
  operation.ready_at = steady_clock::now() + microseconds(late);
  found->queue.push_back(std::move(operation));
  if (!s.worker.joinable()) {
    s.stopping = false;
    s.worker = std::thread(work);
  }
  s.work.notify_all();
  return CUDA_SUCCESS;
}

void stop_worker() {
  State& s = state();
  std::thread worker;
  {
    const std::lock_guard lock(s.mutex);
    s.stopping = true;
    worker = std::move(s.worker);
    s.work.notify_all();
  }
  if (worker.joinable()) worker.join();
}

std::vector<Symbol> stream_symbols() {
  return {
      symbol<PFN_cuStreamCreate_v2000>("cuStreamCreate", 2000, stream_create),
      symbol<PFN_cuStreamDestroy_v4000>("cuStreamDestroy", 4000, stream_destroy),
      symbol<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 2000, stream_synchronize),
      symbol<PFN_cuEventCreate_v2000>("cuEventCreate", 2000, event_create),
      symbol<PFN_cuEventDestroy_v4000>("cuEventDestroy", 4000, event_destroy),
      symbol<PFN_cuEventRecord_v2000>("cuEventRecord", 2000, event_record),
      symbol<PFN_cuEventSynchronize_v2000>("cuEventSynchronize", 2000, event_synchronize),
      symbol<PFN_cuStreamWriteValue64_v11070>("cuStreamWriteValue64", 11070, write_value),
      symbol<PFN_cuStreamWaitValue64_v11070>("cuStreamWaitValue64", 11070, wait_value),
  };
}

}  // namespace fakecuda
