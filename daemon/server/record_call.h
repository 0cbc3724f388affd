// Admin.Record: a recording as a stream of whole lines, written by a thread of its own, so that
// neither the reactor nor gRPC formats anything. It ends at its limits, when the caller leaves, or
// when the daemon stops.
// Thread: made on gRPC's; the writer's thread does the rest. It deletes itself.
// Not here: the queue that the reactor fills (tape_queue.h), one at a time (recorder.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "daemon/base/clock.h"
#include "daemon/server/edge.h"
#include "daemon/server/recorder.h"
#include "daemon/server/services.h"
#include "memdecay/v1/admin.pb.h"

namespace memdecay::server {

using RecordReactor = grpc::ServerWriteReactor<v1::RecordResponse>;

RecordReactor* start_recording(const v1::RecordRequest& request, Edge& edge, Recorder& recorder,
                               const ServiceFacts& facts, const base::Clock& clock);
// A stream that is over at once.
RecordReactor* refuse_recording(Edge& edge, const absl::Status& status);

}  // namespace memdecay::server
