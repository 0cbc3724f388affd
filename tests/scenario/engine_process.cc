// See engine_process.h.
#include "tests/scenario/engine_process.h"

#include <signal.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/real_codec.h"

namespace memdecay::scenario {

absl::StatusOr<std::unique_ptr<EngineProcess>> EngineProcess::start(
    const ChildProcess::Spec& spec) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::spawn(spec);
  if (!process.ok()) return process.status();
  std::unique_ptr<EngineProcess> engine(new EngineProcess(*std::move(process)));
  const std::optional<WireWords> hello = engine->wait(0, Duration::from_seconds(20));
  if (!hello) return make_error(ErrorCode::kUnavailable, "an engine process", "it says nothing");
  if (absl::Status attached = answered_status(*hello); !attached.ok()) return attached;
  engine->engine_id_ = hello->number("engine");
  return engine;
}

EngineProcess::EngineProcess(std::unique_ptr<ChildProcess> process)
    : process_(std::move(process)), reader_([this] { read_answers(); }) {}

EngineProcess::~EngineProcess() {
  process_->signal(SIGKILL);
  process_->wait();
  reader_.join();
}

void EngineProcess::read_answers() {
  while (const std::optional<std::string> line = process_->read_line()) {
    WireWords words(*line);
    if (words.plain().empty()) continue;
    const std::lock_guard lock(mutex_);
    answers_[std::strtoull(words.plain()[0].c_str(), nullptr, 10)] = std::move(words);
    arrived_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  arrived_.notify_all();
}

uint64_t EngineProcess::request(const std::string& line) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_request_;
  }
  process_->write_line(absl::StrCat(id, " ", line, " ticket=", id));
  return id;
}

std::optional<WireWords> EngineProcess::answer(uint64_t request) {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.extract(request);
  if (!found.empty()) return std::move(found.mapped());
  if (ended_) return WireWords("0 unavailable | the engine process has ended");
  return std::nullopt;
}

bool EngineProcess::has_answer(uint64_t request) {
  const std::lock_guard lock(mutex_);
  return ended_ || answers_.contains(request);
}

std::optional<WireWords> EngineProcess::wait(uint64_t request, Duration patience) {
  {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::nanoseconds(patience.nanoseconds),
                      [&] { return ended_ || answers_.contains(request); });
  }
  return answer(request);
}

absl::StatusOr<WireWords> EngineProcess::ask(const std::string& line, Duration patience) {
  const std::optional<WireWords> words = wait(request(line), patience);
  if (!words) return make_error(ErrorCode::kDeadline, line, "the engine process does not answer");
  if (absl::Status status = answered_status(*words); !status.ok()) return status;
  return *words;
}

}  // namespace memdecay::scenario
