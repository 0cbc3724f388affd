// memdecayctl's commands: ask the daemon, print, and say how it went as an exit code: 0 good, 1 the
// daemon refused or a check found a difference.
// Thread: one. Not here: flags and help (main.cc).
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/page_map.h"
#include "proto/contract/clock.h"

namespace memdecay::ctl {

enum class Format : uint8_t { kText, kJson };

struct Options {
  std::string directory;  // of the sockets; empty: the usual places
  Duration timeout = Duration::from_seconds(5);
  Format format = Format::kText;
  Colour colour = Colour::kNo;
  uint32_t columns = 80;
};

int run_status(const Options& options);
int run_sessions(const Options& options);
int run_pages(const Options& options, const std::string& session);
int run_explain(const Options& options, const std::string& target);
// The last decisions, newest first; of one session or (empty) of all.
int run_decisions(const Options& options, uint32_t last, const std::string& session);
int run_check(const Options& options);
// 0 healthy, 1 advice (or the daemon refused).
int run_doctor(const Options& options);
int run_pin(const Options& options, const std::string& session, const std::string& pages,
            const std::string& ttl);
int run_unpin(const Options& options, const std::string& session, const std::string& pages);
int run_evict(const Options& options, const std::string& session, const std::string& pages);
int run_restore(const Options& options, const std::string& session, const std::string& pages);
// An empty session: everything nobody references, in that tier or ("all") in each.
int run_drop(const Options& options, const std::string& session, const std::string& pages,
             const std::string& tier);
int run_config(const Options& options);
int run_size(const Options& options, const std::string& model, uint32_t page_tokens,
             const std::string& dtype);
// Status and sessions again and again until it is interrupted.
int run_top(const Options& options, Duration every);

}  // namespace memdecay::ctl
