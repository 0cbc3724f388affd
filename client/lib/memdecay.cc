// The C interface: connecting, sessions, sharing, fences, events. A thin skin: arguments become
// messages, statuses become codes.
// Thread: see memdecay.h.
#include "client/memdecay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/convert.h"
#include "client/lib/handles.h"
#include "client/lib/last_error.h"
#include "client/lib/limits.h"
#include "client/lib/steady_clock.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

ClientOptions options_of(const memdecay_options& from) {
  ClientOptions out;
  out.socket_path = handle_socket_path(text_of(from.socket_dir));
  Hello& hello = out.hello;
  if (from.protocol_major != 0) hello.major = from.protocol_major;
  if (from.protocol_minor != 0) hello.minor = from.protocol_minor;
  hello.role = from.role == MEMDECAY_WORKER ? MemberRole::kWorker : MemberRole::kScheduler;
  hello.engine_name = text_of(from.engine_name);
  hello.page_tokens = from.page_tokens;
  hello.page_bytes = from.page_bytes;
  if (from.join != nullptr) {
    hello.engine = EngineId{from.join->engine};
    hello.epoch = Epoch{from.join->epoch};
    std::copy(std::begin(from.join->token), std::end(from.join->token), hello.token.begin());
  }
  const bool lockstep = from.lockstep != 0;
  // Grants that come at their own time would make decisions depend on it.
  const bool no_grants = lockstep || from.grants_ahead == MEMDECAY_NO_GRANTS;
  out.grants_ahead = no_grants ? 0 : from.grants_ahead;
  out.observe_every = from.observe_every == 0 ? kDefaultObserveEvery : from.observe_every;
  out.timeout =
      from.timeout_ms <= 0 ? kDefaultTimeout : Duration::from_milliseconds(from.timeout_ms);
  out.lockstep = lockstep ? ClientOptions::Lockstep::kYes : ClientOptions::Lockstep::kNo;
  out.acks = from.manual_ack != 0 ? ClientOptions::Acks::kManual : ClientOptions::Acks::kAutomatic;
  return out;
}

SessionShape shape_of(const memdecay_layout& layout, uint32_t budget_pages) {
  SessionShape shape;
  shape.page_tokens = layout.groups[0].page_tokens;
  for (uint32_t i = 0; i < layout.group_count; ++i) shape.page_bytes += layout.groups[i].page_bytes;
  shape.budget_pages = budget_pages;
  return shape;
}

memdecay_code give(absl::StatusOr<Session*> opened, memdecay_session** session) {
  if (!opened.ok()) return report(opened.status());
  *session = handle(*opened);
  return MEMDECAY_OK;
}

template <typename Request>
void add_content(Request& to, const uint32_t* tokens, uint32_t count, const memdecay_bytes* extras,
                 uint32_t extra_count) {
  to.mutable_tokens()->Add(tokens, tokens + count);
  for (uint32_t i = 0; i < extra_count; ++i) to.add_extras(extras[i].data, extras[i].size);
}

// "KEY=VALUE;KEY=VALUE"
absl::Status set_options(v1::OpenRequest& open, const std::string& words) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(';', at), words.size());
    const std::string word = words.substr(at, end - at);
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return make_error(ErrorCode::kInvalidArgument, "policy_options",
                        "\"" + word + "\" has no =", "write KEY=VALUE;KEY=VALUE");
    }
    (*open.mutable_policy_options())[word.substr(0, equals)] = word.substr(equals + 1);
    at = end + 1;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace memdecay::client

using namespace memdecay;          // NOLINT: definitions of C functions stand outside namespaces
using namespace memdecay::client;  // NOLINT

extern "C" {

memdecay_code memdecay_connect(const memdecay_options* options, memdecay_client** client) {
  if (options == nullptr || client == nullptr || options->size == 0) {
    return null_argument("memdecay_connect");
  }
  *client = nullptr;
  memdecay_options known = MEMDECAY_OPTIONS_INIT;
  std::copy_n(reinterpret_cast<const char*>(options), std::min(options->size, sizeof known),
              reinterpret_cast<char*>(&known));
  auto connected = Client::connect(options_of(known));
  if (!connected.ok()) return report(connected.status());
  *client = handle(connected->release());
  return MEMDECAY_OK;
}

void memdecay_disconnect(memdecay_client* client) {
  if (client == nullptr) return;
  of(client).leave();
  delete &of(client);
}

memdecay_code memdecay_detach(memdecay_client* client) { return report(of(client).detach()); }

memdecay_code memdecay_reattach(memdecay_client* client, int32_t timeout_ms) {
  return report(of(client).reattach(of(client).deadline_in(timeout_ms)));
}

memdecay_identity memdecay_get_identity(const memdecay_client* client) {
  return of(client).identity();
}

int memdecay_connected(const memdecay_client* client) { return of(client).connected() ? 1 : 0; }

memdecay_code memdecay_open(memdecay_client* client, const memdecay_layout* layout,
                            const memdecay_open_options* options, memdecay_session** session) {
  if (client == nullptr || session == nullptr) return null_argument("memdecay_open");
  *session = nullptr;
  auto wire = layout_of(layout);
  if (!wire.ok()) return report(wire.status());
  memdecay_open_options known = MEMDECAY_OPEN_INIT;
  if (options != nullptr) {
    std::copy_n(reinterpret_cast<const char*>(options), std::min(options->size, sizeof known),
                reinterpret_cast<char*>(&known));
  }
  v1::StreamRequest message;
  v1::OpenRequest* open = message.mutable_open();
  open->set_name(text_of(known.name));
  *open->mutable_layout() = *std::move(wire);
  open->set_mode(static_cast<v1::Mode>(known.mode));
  open->set_budget_pages(known.budget_pages);
  open->set_priority(known.priority);
  open->set_policy(text_of(known.policy));
  if (absl::Status status = set_options(*open, text_of(known.policy_options)); !status.ok()) {
    return report(status);
  }
  if (known.default_region >= 0) {
    open->set_default_region(static_cast<uint32_t>(known.default_region));
  }
  return give(
      of(client).begin_session("open a session", nullptr, std::move(message),
                               shape_of(*layout, known.budget_pages), of(client).deadline_in(0)),
      session);
}

memdecay_code memdecay_resume(memdecay_client* client, const memdecay_layout* layout, uint64_t id,
                              const char* name, int steal, memdecay_session** session) {
  if (client == nullptr || session == nullptr) return null_argument("memdecay_resume");
  *session = nullptr;
  auto wire = layout_of(layout);
  if (!wire.ok()) return report(wire.status());
  v1::StreamRequest message;
  message.mutable_resume()->set_session(id);
  message.mutable_resume()->set_name(id == 0 ? text_of(name) : std::string());
  *message.mutable_resume()->mutable_layout() = *std::move(wire);
  message.mutable_resume()->set_steal(steal != 0);
  const std::string asked = absl::StrCat("resume session ", id);
  return give(of(client).begin_session(asked, nullptr, std::move(message), shape_of(*layout, 0),
                                       of(client).deadline_in(0)),
              session);
}

memdecay_code memdecay_fork(memdecay_session* session, const char* name, memdecay_session** child) {
  if (session == nullptr || child == nullptr) return null_argument("memdecay_fork");
  *child = nullptr;
  Client& client = of(session).client;
  v1::StreamRequest message;
  message.mutable_fork()->set_name(text_of(name));
  return give(client.begin_session("fork a session", &of(session), std::move(message),
                                   of(session).shape, client.deadline_in(0)),
              child);
}

memdecay_code memdecay_close(memdecay_session* session, int forget) {
  if (session == nullptr) return null_argument("memdecay_close");
  return report(of(session).client.close(of(session), forget != 0 ? Keep::kForget : Keep::kKeep));
}

memdecay_session_info memdecay_info(memdecay_session* session) {
  return of(session).client.info(of(session));
}

memdecay_code memdecay_slot_address(memdecay_client* client, uint32_t slab, uint32_t slot,
                                    const void** read, void** write) {
  if (client == nullptr || read == nullptr) return null_argument("memdecay_slot_address");
  const auto address = of(client).slabs().find(SlabId{slab}, slot);
  if (!address) {
    return report(make_error(ErrorCode::kNotFound, absl::StrCat("slot ", slot, " of slab ", slab),
                             "this process has no such slab", "wait for it or check the numbers"));
  }
  *read = address->read;
  if (write != nullptr) *write = address->write;
  return MEMDECAY_OK;
}

memdecay_code memdecay_fence_next(memdecay_client* client, uint32_t word, memdecay_fence* fence) {
  if (client == nullptr || fence == nullptr) return null_argument("memdecay_fence_next");
  auto next = of(client).next_fence(word);
  if (!next.ok()) return report(next.status());
  *fence = *next;
  return MEMDECAY_OK;
}

memdecay_code memdecay_fence_signal(memdecay_client* client, memdecay_fence fence) {
  return report(of(client).signal(fence));
}

memdecay_code memdecay_fence_wait(memdecay_client* client, memdecay_fence fence,
                                  int32_t timeout_ms) {
  return report(of(client).wait_fence(fence, of(client).deadline_in(timeout_ms)));
}

uint64_t* memdecay_timeline(memdecay_client* client) { return of(client).timeline_words(); }

memdecay_code memdecay_lookup(memdecay_client* client, const memdecay_layout* layout,
                              const uint32_t* tokens, uint32_t token_count,
                              const memdecay_bytes* extras, uint32_t extra_count,
                              memdecay_lookup_result* result) {
  if (client == nullptr || result == nullptr) return null_argument("memdecay_lookup");
  auto wire = layout_of(layout);
  if (!wire.ok()) return report(wire.status());
  v1::LookupRequest request;
  *request.mutable_layout() = *std::move(wire);
  add_content(request, tokens, token_count, extras, extra_count);
  auto found = of(client).lookup(request, of(client).deadline_in(0));
  if (!found.ok()) return report(found.status());
  *result = {found->pages(), found->device_pages(), found->host_pages(), found->first_missing(),
             found->pending() ? 1u : 0u};
  return MEMDECAY_OK;
}

memdecay_code memdecay_acquire(memdecay_client* client, const memdecay_layout* layout,
                               memdecay_session* session, const uint32_t* tokens,
                               uint32_t token_count, const memdecay_bytes* extras,
                               uint32_t extra_count, memdecay_lease* lease) {
  if (client == nullptr || lease == nullptr) return null_argument("memdecay_acquire");
  auto wire = layout_of(layout);
  if (!wire.ok()) return report(wire.status());
  v1::StreamRequest message;
  *message.mutable_acquire()->mutable_layout() = *std::move(wire);
  add_content(*message.mutable_acquire(), tokens, token_count, extras, extra_count);
  auto acquired = of(client).acquire(session == nullptr ? nullptr : &of(session),
                                     std::move(message), of(client).deadline_in(0));
  if (!acquired.ok()) return report(acquired.status());
  *lease = *acquired;
  return MEMDECAY_OK;
}

memdecay_code memdecay_release(memdecay_client* client, uint64_t lease) {
  if (client == nullptr) return null_argument("memdecay_release");
  v1::StreamRequest message;
  message.mutable_release()->set_lease(lease);
  const std::string asked = absl::StrCat("release lease ", lease);
  const Instant deadline = of(client).deadline_in(0);
  return report(of(client).call(asked, nullptr, std::move(message), deadline).status());
}

memdecay_code memdecay_acknowledge(memdecay_client* client, memdecay_fence fence) {
  of(client).acknowledge(fence);
  return MEMDECAY_OK;
}

memdecay_code memdecay_set_manual_ack(memdecay_client* client, int manual) {
  of(client).set_acks(manual != 0 ? ClientOptions::Acks::kManual : ClientOptions::Acks::kAutomatic);
  return MEMDECAY_OK;
}

memdecay_code memdecay_next_event(memdecay_client* client, int32_t timeout_ms,
                                  memdecay_event* event) {
  if (client == nullptr || event == nullptr) return null_argument("memdecay_next_event");
  auto next = of(client).next_event(of(client).deadline_in(timeout_ms));
  if (!next.ok()) return report(next.status());
  *event = next->event;
  if (!next->why.ok()) report(next->why);
  return MEMDECAY_OK;
}

const char* memdecay_event_name(memdecay_event_kind kind) {
  switch (kind) {
    case MEMDECAY_EVENT_GRANT:
      return "grant";
    case MEMDECAY_EVENT_EVICT:
      return "evict";
    case MEMDECAY_EVENT_WITHDRAW:
      return "withdraw";
    case MEMDECAY_EVENT_RELEASED:
      return "released";
    case MEMDECAY_EVENT_RESTORE:
      return "restore";
    case MEMDECAY_EVENT_READY:
      return "ready";
    case MEMDECAY_EVENT_FAILED:
      return "failed";
    case MEMDECAY_EVENT_LOST:
      return "lost";
    case MEMDECAY_EVENT_BUDGET:
      return "budget";
    case MEMDECAY_EVENT_MODE:
      return "mode";
    case MEMDECAY_EVENT_SHUTDOWN:
      return "shutdown";
    case MEMDECAY_EVENT_UNMAP_SLAB:
      return "unmap_slab";
    case MEMDECAY_EVENT_REFUSED:
      return "refused";
    case MEMDECAY_EVENT_DISCONNECTED:
      return "disconnected";
    case MEMDECAY_EVENT_CONNECTED:
      return "connected";
    case MEMDECAY_EVENT_RESET:
      return "reset";
  }
  return "unknown";
}

}  // extern "C"
