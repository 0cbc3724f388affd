// Signals and the progress line (see attend.h).
#include "client/ctl/replay/attend.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/lib/steady_clock.h"

namespace memdecay::ctl {
namespace {

constexpr Duration kEvery = Duration::from_seconds(1);

}  // namespace

Interrupts::Interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

Interrupts::~Interrupts() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool Interrupts::came() const {
  signalfd_siginfo info;
  return ::read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
}

Progress::Progress(std::string what)
    : what_(std::move(what)),
      start_(client::now()),
      said_(start_),
      tty_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (tty_ && said_any_) std::cerr << "\n";
}

void Progress::at(uint64_t count, const char* unit, const Lines& lines) {
  const Instant now = client::now();
  if (now - said_ < kEvery) return;
  said_ = now;
  said_any_ = true;
  std::string line = absl::StrCat(what_, " ", count, " ", unit);
  if (lines.file_bytes() > 0) {
    const double part =
        static_cast<double>(lines.read_bytes()) / static_cast<double>(lines.file_bytes());
    const double left = part > 0 ? (now - start_).seconds() * (1 - part) / part : 0;
    absl::StrAppendFormat(&line, ", %.0f %% of the file, about %.0f s left", part * 100, left);
  }
  std::cerr << (tty_ ? "\r" : "") << line << (tty_ ? "\x1b[K" : "\n") << std::flush;
}

}  // namespace memdecay::ctl
