// One pass over the file, or two where `min` is asked for (see command.h).
#include "client/ctl/replay/command.h"

#include <sys/stat.h>
#include <time.h>

#include <charconv>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/json.h"
#include "client/ctl/replay/attend.h"
#include "client/ctl/replay/replay.h"
#include "client/ctl/replay/report.h"
#include "client/ctl/replay/trace.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr int kRefused = 2;
constexpr int kFailed = 1;
constexpr uint64_t kLookEvery = 64;  // requests between looks at the clock

Instant processor_time() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return {int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec};
}

int tell(const ReplayFlags& flags, const absl::Status& status, int code) {
  std::cerr << "memdecayctl: " << std::string(status.message()) << "\n";
  if (flags.print == ReplayFlags::Print::kJson) std::cout << to_json(status).dump() << "\n";
  return code;
}

// Every request of the trace to `take`, with progress; an error ends it.
template <typename Take>
absl::Status walk(TraceReader& trace, const char* what, const Interrupts& interrupts, Take take) {
  Progress progress(absl::StrCat("replay: ", what));
  for (uint64_t requests = 0;; ++requests) {
    const auto request = trace.next();
    if (!request.ok()) return request.status();
    if (*request == nullptr) return absl::OkStatus();
    if (absl::Status taken = take(**request); !taken.ok()) return taken;
    if (requests % kLookEvery != 0) continue;
    progress.at(requests, "requests", trace.lines());
    if (interrupts.came()) {
      return absl::CancelledError(absl::StrCat("interrupted after ", requests,
                                               " requests: the figures of this replay are lost, "
                                               "nothing was written; start it again"));
    }
  }
}

absl::StatusOr<Future> read_ahead(const std::string& path, const Interrupts& interrupts) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("trace ", path),
                      "min reads a trace twice, and this is no regular file",
                      "write it to a file first, or leave min out");
  }
  auto trace = TraceReader::open(path);
  if (!trace.ok()) return trace.status();
  Future future;
  absl::Status read =
      walk(*trace, "reading ahead for min,", interrupts, [&](const TraceRequest& request) {
        if (future.size() + request.blocks.size() > Future::kMost) {
          return make_error(ErrorCode::kInvalidArgument, absl::StrCat("trace ", path),
                            absl::StrCat("it has more than ", Future::kMost, " block references"),
                            "leave min out");
        }
        future.add(request.blocks, request.kind);
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  future.close();
  return future;
}

absl::StatusOr<ReplayPlan> plan_of(const ReplayFlags& flags) {
  ReplayPlan plan;
  plan.policies = flags.policies;
  plan.salts = flags.salts;
  for (const std::string& text : flags.capacities) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("capacity \"", text, "\""),
                        "that is no number of blocks", "write 1000 or 1000,5000");
    }
    plan.capacities.push_back(value);
  }
  return plan;
}

const char* kind_of(const TraceReader& trace) {
  if (trace.layout() == TraceReader::Layout::kBailian) return "Bailian";
  return trace.layout() == TraceReader::Layout::kMemdecay ? "memdecayd" : "Mooncake";
}

std::string summary(const TraceReader& trace, const ReplayResult& result) {
  std::string out = absl::StrCat(kind_of(trace), " trace, ", result.requests,
                                 " requests; fields ignored: ", trace.ignored_fields());
  uint64_t ignored = trace.ignored_fields();
  if (const Recorded* recorded = trace.recorded()) {
    absl::StrAppend(&out, ", events ignored: ", recorded->ignored_events());
    ignored += recorded->ignored_events();
  }
  if (ignored > 0) absl::StrAppend(&out, " (such as ", trace.an_ignored_name(), ")");
  if (const Recorded* recorded = trace.recorded()) {
    absl::StrAppend(&out, "; ", result.stores, " blocks stored that nobody had asked for, ",
                    recorded->peeks(), " look-ups that took nothing");
    if (recorded->lost() > 0) {
      absl::StrAppend(&out, "; the recorder lost ", recorded->lost(), " events");
    }
  }
  if (result.unique_estimated) out += "; distinct blocks are estimated (+-0.4 %)";
  return out;
}

absl::StatusOr<ReplayResult> replayed(const ReplayFlags& flags) {
  const auto plan = plan_of(flags);
  if (!plan.ok()) return plan.status();
  auto replay = Replay::make(*plan, processor_time);
  if (!replay.ok()) return replay.status();
  const Interrupts interrupts;
  if (Replay::needs_future(*plan)) {
    auto future = read_ahead(flags.file, interrupts);
    if (!future.ok()) return future.status();
    replay->set_future(*std::move(future));
  }
  auto trace = TraceReader::open(flags.file);
  if (!trace.ok()) return trace.status();
  absl::Status walked = walk(*trace, "at", interrupts,
                             [&](const TraceRequest& request) { return replay->add(request); });
  if (!walked.ok()) return walked;
  ReplayResult result = replay->finish();
  std::cerr << "replay: " << summary(*trace, result) << "\n";
  return result;
}

}  // namespace

int run_replay(const ReplayFlags& flags) {
  const auto result = replayed(flags);
  if (absl::IsCancelled(result.status())) return tell(flags, result.status(), kFailed);
  if (!result.ok()) return tell(flags, result.status(), kRefused);
  if (!flags.svg.empty()) {
    std::ofstream picture(flags.svg, std::ios::trunc);
    picture << replay_svg(*result);
    picture.close();
    if (!picture) {
      return tell(flags,
                  make_error(ErrorCode::kNotFound, absl::StrCat("picture ", flags.svg),
                             "it cannot be written", "name a file in a folder that can"),
                  kFailed);
    }
  }
  switch (flags.print) {
    case ReplayFlags::Print::kText:
      std::cout << replay_text(*result);
      break;
    case ReplayFlags::Print::kJson:
      std::cout << replay_json(*result);
      break;
    case ReplayFlags::Print::kCsv:
      std::cout << replay_csv(*result);
      break;
  }
  std::cout.flush();
  return std::cout ? 0 : kFailed;
}

}  // namespace memdecay::ctl
