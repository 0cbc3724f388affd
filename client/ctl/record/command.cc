// See command.h.
#include "client/ctl/record/command.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/admin.h"
#include "client/ctl/arguments.h"
#include "client/ctl/json.h"
#include "client/ctl/record/trace_file.h"
#include "client/ctl/render.h"
#include "client/ctl/replay/attend.h"
#include "client/lib/steady_clock.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr int kRefused = 2;
constexpr int kFailed = 1;
constexpr Duration kEvery = Duration::from_seconds(1);  // progress

int tell(const Options& options, const absl::Status& status, int code) {
  std::cerr << "memdecayctl: " << std::string(status.message()) << "\n";
  if (options.format == Format::kJson) std::cout << to_json(status).dump() << "\n";
  return code;
}

absl::StatusOr<v1::RecordRequest> request_of(const RecordFlags& flags) {
  v1::RecordRequest request;
  const absl::StatusOr<Duration> longest = duration(flags.longest);
  if (!longest.ok()) return longest.status();
  const absl::StatusOr<uint64_t> bytes = byte_count(flags.most_bytes);
  if (!bytes.ok()) return bytes.status();
  if (longest->nanoseconds == 0 || *bytes == 0) {
    return make_error(ErrorCode::kInvalidArgument, "a recording of nothing",
                      "--for or --max-bytes is 0", "give both more than 0");
  }
  request.set_longest_ms(longest->milliseconds());
  request.set_most_bytes(*bytes);
  for (const std::string& session : flags.sessions) request.add_sessions(session);
  return request;
}

// How far the recording is, and what of it was lost.
class Recording {
 public:
  explicit Recording(TraceFile file) : file_(std::move(file)), said_(client::now()) {}

  absl::Status take(const v1::RecordResponse& chunk) {
    if (absl::Status wrote = file_.write(chunk.lines()); !wrote.ok()) return wrote;
    last_ = chunk;
    last_.clear_lines();
    progress();
    return absl::OkStatus();
  }
  absl::Status close() {
    if (tty_ && said_any_) std::cerr << "\n";
    return file_.close();
  }
  const v1::RecordResponse& last() const { return last_; }

  std::string text() const {
    std::string text = absl::StrCat(last_.events(), " events, ", bytes_text(last_.bytes()));
    if (last_.lost_events() > 0) {
      absl::StrAppend(&text, ", ", last_.lost_events(), " events lost (they came too fast)");
    }
    return text;
  }

 private:
  void progress() {
    if (client::now() - said_ < kEvery) return;
    said_ = client::now();
    said_any_ = true;
    std::cerr << (tty_ ? "\r" : "") << "record: " << text()
              << absl::StrFormat(", %.0f s left", static_cast<double>(last_.left_ms()) / 1e3)
              << (tty_ ? "\x1b[K" : "\n") << std::flush;
  }

  TraceFile file_;
  v1::RecordResponse last_;
  Instant said_;
  const bool tty_ = ::isatty(STDERR_FILENO) == 1;
  bool said_any_ = false;
};

void print(const Options& options, const RecordFlags& flags, const Recording& recording,
           const std::string& ended) {
  std::cerr << "record: " << recording.text() << "; ended by " << ended << "\n";
  if (options.format != Format::kJson || flags.file == "-") return;
  const v1::RecordResponse& last = recording.last();
  std::cout << nlohmann::ordered_json{{"file", flags.file},
                                      {"events", last.events()},
                                      {"bytes", last.bytes()},
                                      {"lost_events", last.lost_events()},
                                      {"ended", ended}}
                   .dump()
            << "\n";
}

}  // namespace

int run_record(const Options& options, const RecordFlags& flags) {
  const auto request = request_of(flags);
  if (!request.ok()) return tell(options, request.status(), kRefused);
  const Interrupts interrupts;
  const auto admin = Admin::connect(options.directory, options.timeout);
  if (!admin.ok()) return tell(options, admin.status(), kFailed);
  absl::StatusOr<TraceFile> file = TraceFile::create(flags.file);
  if (!file.ok()) return tell(options, file.status(), kRefused);
  Recording recording(*std::move(file));
  bool interrupted = false;
  absl::Status wrote;
  absl::Status ended = (*admin)->record(*request, [&](const v1::RecordResponse& chunk) {
    wrote = recording.take(chunk);
    interrupted = interrupted || interrupts.came();
    return wrote.ok() && !interrupted ? Admin::Go::kOn : Admin::Go::kStop;
  });
  const absl::Status closed = recording.close();
  if (!wrote.ok()) return tell(options, wrote, kFailed);
  if (!closed.ok()) return tell(options, closed, kFailed);
  const std::string& why = recording.last().ended();
  if (ended.ok()) {
    print(options, flags, recording, interrupted ? "Ctrl-C" : why);
    return 0;
  }
  if (recording.last().bytes() == 0) {  // never begun
    if (flags.file != "-") ::unlink(flags.file.c_str());
    return tell(options, ended, kFailed);
  }
  std::cerr << "record: " << recording.text() << " are in " << flags.file
            << ", in whole lines; the daemon went away, and what came after them is lost\n";
  return tell(options, ended, kFailed);
}

}  // namespace memdecay::ctl
