// StreamLink: one gRPC connection: the bidirectional stream of an engine process, and Lookup. The
// only file pair of the library that knows gRPC (a translation unit with it takes ten seconds).
// Thread: send() any; listener calls come on gRPC's threads, one at a time, and must not block; the
// destructor cancels, waits for the last of them, and so must not run inside one.
// Not here: sequence numbers, replay, deadlines of calls (client_outbox.cc).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "memdecay/v1/memory.pb.h"
#include "proto/contract/clock.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"

namespace memdecay::client {

class StreamLink {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_message(const v1::StreamResponse& message) = 0;
    // Once, after the last message.
    virtual void on_down(absl::Status why) = 0;
  };

  // unavailable: nobody serves there within `timeout`. The listener outlives the link.
  static absl::StatusOr<std::unique_ptr<StreamLink>> open(const std::string& control_path,
                                                          EngineId engine, const Token& token,
                                                          Listener& listener, Duration timeout);
  virtual ~StreamLink() = default;

  // Queued and sent in order; dropped when the stream is down.
  virtual void send(v1::StreamRequest message) = 0;
  virtual absl::StatusOr<v1::LookupResponse> lookup(const v1::LookupRequest& request,
                                                    Duration timeout) = 0;
};

}  // namespace memdecay::client
