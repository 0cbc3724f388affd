// A long pass over a file with a person before it: how far it is, and that it can be interrupted.
// Thread: main. Not here: the pass itself, and what is lost by an interruption (who passes knows).
#pragma once

#include <signal.h>

#include <string>

#include "client/ctl/replay/lines.h"
#include "proto/contract/clock.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::ctl {

// SIGINT and SIGTERM as something to look at between two lines. The mask is given back at the end.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  bool came() const;

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

// A line on stderr every second; none for what takes less.
class Progress {
 public:
  explicit Progress(std::string what);  // "replay: at"
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(uint64_t count, const char* unit, const Lines& lines);

 private:
  const std::string what_;
  const Instant start_;
  Instant said_;
  const bool tty_;
  bool said_any_ = false;
};

}  // namespace memdecay::ctl
