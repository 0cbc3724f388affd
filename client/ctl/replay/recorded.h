// Requests in a trace that memdecayd has recorded (proto/TRACE.md, "Requests in a trace"): a
// session that acquires a prefix, a session that goes on after it waited; and stores, the pages it
// has computed that nobody had asked for. Thread: one. Memory: the keys of the sessions that are
// open. Not here: what a line looks like (daemon/policy/trace), files (lines.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/replay/lines.h"
#include "client/ctl/replay/request.h"
#include "daemon/policy/trace/parser.h"

namespace memdecay::ctl {

class Recorded {
 public:
  explicit Recorded(const std::string& path) : path_(path), parser_(path) {}

  // Whether the line made a request; then `request` is it. invalid_argument as trace::Parser says.
  enum class Made : uint8_t { kNothing, kRequest };
  absl::StatusOr<Made> take(const Lines::Line& line, TraceRequest& request);

  uint64_t ignored_fields() const { return parser_.ignored_fields(); }
  uint64_t ignored_events() const { return parser_.ignored_events(); }
  const std::string& an_ignored_name() const { return parser_.an_ignored_name(); }
  uint64_t peeks() const { return peeks_; }
  uint64_t lost() const { return lost_; }

 private:
  struct Session {
    std::vector<std::optional<uint64_t>> pages;  // their keys
    std::vector<uint64_t> asked;                 // the last look-up's keys
    std::vector<uint64_t> turn;                  // references since the last seal
    bool waits = false;
  };

  Made apply(Session* session, const trace::Event& event, TraceRequest& request);
  Made looked(Session* session, const trace::Looked& look, TraceRequest& request);
  static Made sealed(Session& session, const trace::Sealed& seal, TraceRequest& request);
  static Made became(Session& session, const std::string& state, TraceRequest& request);

  const std::string path_;
  trace::Parser parser_;
  std::map<trace::SessionNumber, Session> sessions_;
  uint64_t peeks_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace memdecay::ctl
