// The one State of the process, the beginning of every call, and what is said at exit.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/support/fakecuda/control.h"
#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

thread_local std::string answer;

std::string count_of(const char* what, size_t count) {
  return count == 0 ? std::string() : std::to_string(count) + " " + what + "; ";
}

// With the mutex held.
std::string leaks_of(const State& s) {
  std::string text;
  text += count_of("allocation handles", s.handles.size());
  text += count_of("mappings", s.mappings.size());
  text += count_of("address reservations", s.reservations.size());
  text += count_of("host ranges", s.host_ranges.size());
  text += count_of("contexts", s.contexts.size());
  text += count_of("streams", s.streams.size());
  text += count_of("events", s.events.size());
  for (const std::string& rule : s.broken_rules) text += "broken: " + rule + "; ";
  return text;
}

std::string table_of(const State& s) {
  std::string text;
  for (const auto& [name, count] : s.calls) text += name + " " + std::to_string(count) + "\n";
  return text;
}

void report_at_exit() {
  stop_worker();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.options.report.empty()) return;
  std::FILE* file = std::fopen(s.options.report.c_str(), "a");
  if (file == nullptr) return;
  std::string calls;
  for (const auto& [name, count] : s.calls) {
    calls += (calls.empty() ? "\"" : ", \"") + name + "\": " + std::to_string(count);
  }
  std::fprintf(file, "{\"leaks\": \"%s\", \"calls\": {%s}}\n", leaks_of(s).c_str(), calls.c_str());
  std::fclose(file);
}

}  // namespace

State& state() {
  static State* const only = [] {
    auto* made = new State;  // lives as long as the process: threads may outlast main
    if (const char* words = std::getenv("FAKECUDA")) {
      const std::string wrong = parse_options(words, made->options);
      if (!wrong.empty()) {
        std::fprintf(stderr, "%s\n", wrong.c_str());
        std::abort();
      }
    }
    made->random.seed(made->options.seed);
    return made;
  }();
  return *only;
}

void broke_rule(std::string what) { state().broken_rules.push_back(std::move(what)); }

Call::Call(const char* name, Needs needs) : lock(state().mutex) {
  State& s = state();
  const uint64_t number = ++s.calls[name];
  if (s.options.sticky.contains({name, number})) s.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  const auto failure = s.options.failures.find({name, number});
  if (failure != s.options.failures.end()) {
    result = static_cast<CUresult>(failure->second);
  } else if (needs != Needs::kNothing && !s.initialised) {
    result = CUDA_ERROR_NOT_INITIALIZED;
  } else if (needs == Needs::kContext) {
    result = has_context() ? s.sticky : CUDA_ERROR_INVALID_CONTEXT;
  }
}

}  // namespace fakecuda

extern "C" {

const char* fakecuda_path(void) {
  static const std::string path = [] {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<const void*>(&fakecuda_path), &info) != 0 ? info.dli_fname
                                                                               : "";
  }();
  return path.c_str();
}

const char* fakecuda_configure(const char* words) {
  fakecuda::stop_worker();
  fakecuda::State& s = fakecuda::state();
  const std::lock_guard lock(s.mutex);
  fakecuda::answer = fakecuda::leaks_of(s);
  fakecuda::Options options;
  if (fakecuda::answer.empty()) fakecuda::answer = fakecuda::parse_options(words, options);
  if (!fakecuda::answer.empty()) return fakecuda::answer.c_str();
  s.options = std::move(options);
  s.random.seed(s.options.seed);
  s.initialised = false;
  s.sticky = CUDA_SUCCESS;
  s.calls.clear();
  return nullptr;
}

const char* fakecuda_leaks(void) {
  fakecuda::State& s = fakecuda::state();
  const std::lock_guard lock(s.mutex);
  fakecuda::answer = fakecuda::leaks_of(s);
  return fakecuda::answer.c_str();
}

void fakecuda_forget(void) {
  fakecuda::stop_worker();
  fakecuda::State& s = fakecuda::state();
  const std::lock_guard lock(s.mutex);
  s.streams.clear();
  s.events.clear();
  s.contexts.clear();
  s.mappings.clear();
  s.handles.clear();
  for (const auto& [address, bytes] : s.reservations) {
    ::munmap(reinterpret_cast<void*>(address), bytes);
  }
  s.reservations.clear();
  for (const auto& [address, range] : s.host_ranges) {
    if (range.allocated) ::munmap(address, range.bytes);
  }
  s.host_ranges.clear();
  s.broken_rules.clear();
}

uint64_t fakecuda_calls(const char* name) {
  fakecuda::State& s = fakecuda::state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.calls.find(name);
  return found == s.calls.end() ? 0 : found->second;
}

const char* fakecuda_call_table(void) {
  fakecuda::State& s = fakecuda::state();
  const std::lock_guard lock(s.mutex);
  fakecuda::answer = fakecuda::table_of(s);
  return fakecuda::answer.c_str();
}

__attribute__((destructor)) static void fakecuda_at_exit(void) { fakecuda::report_at_exit(); }

}  // extern "C"
