// The C interface: pages, steps, tags, pauses, restores of one session. A thin skin: arguments
// become messages, statuses become codes.
// Thread: see memdecay.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/convert.h"
#include "client/lib/handles.h"
#include "client/lib/last_error.h"
#include "client/memdecay.h"
#include "proto/contract/text.h"

namespace memdecay::client {
namespace {

std::string about(std::string_view what, const Session& session) {
  return absl::StrCat(as_absl(what), " of session ", session.id.value);
}

memdecay_code ask(memdecay_session* session, std::string_view what, v1::StreamRequest message) {
  if (session == nullptr) return null_argument("a call without a session");
  Session& known = of(session);
  Client& client = known.client;
  return report(
      client.call(about(what, known), &known, std::move(message), client.deadline_in(0)).status());
}

void set_span(v1::Span* out, memdecay_span span) {
  out->set_begin(span.begin);
  out->set_end(span.end);
}

void write_result(const v1::RestoreReply& reply, memdecay_restore_result* result) {
  if (result == nullptr) return;
  result->resident = reply.resident();
  result->failed_count = static_cast<uint32_t>(reply.failed_size());
  const uint32_t room = result->failed == nullptr ? 0 : result->failed_capacity;
  for (uint32_t i = 0; i < std::min(room, result->failed_count); ++i) {
    const v1::FailedPage& failed = reply.failed(static_cast<int>(i));
    result->failed[i] = {failed.page(), static_cast<memdecay_code>(failed.code())};
  }
}

}  // namespace
}  // namespace memdecay::client

using namespace memdecay;          // NOLINT: definitions of C functions stand outside namespaces
using namespace memdecay::client;  // NOLINT

extern "C" {

memdecay_code memdecay_page_table(memdecay_session* session, const memdecay_page** pages,
                                  uint32_t* count) {
  if (session == nullptr || pages == nullptr || count == nullptr) {
    return null_argument("memdecay_page_table");
  }
  const auto& table = of(session).client.page_table(of(session));
  *pages = table.data();
  *count = static_cast<uint32_t>(table.size());
  return MEMDECAY_OK;
}

memdecay_code memdecay_extend(memdecay_session* session, uint32_t pages, int32_t timeout_ms) {
  if (session == nullptr) return null_argument("memdecay_extend");
  Client& client = of(session).client;
  return report(client.extend(of(session), pages, client.deadline_in(timeout_ms)));
}

memdecay_code memdecay_seal(memdecay_session* session, const memdecay_seal_info* seal) {
  if (session == nullptr || seal == nullptr || seal->size == 0) {
    return null_argument("memdecay_seal");
  }
  memdecay_seal_info known = MEMDECAY_SEAL_INIT;
  std::copy_n(reinterpret_cast<const char*>(seal), std::min(seal->size, sizeof known),
              reinterpret_cast<char*>(&known));
  Client& client = of(session).client;
  return report(client.seal(of(session), known, client.deadline_in(0)));
}

memdecay_code memdecay_written(memdecay_session* session, uint32_t position) {
  if (session == nullptr) return null_argument("memdecay_written");
  return report(of(session).client.written(of(session), position));
}

memdecay_code memdecay_truncate(memdecay_session* session, uint32_t tokens) {
  if (session == nullptr) return null_argument("memdecay_truncate");
  Client& client = of(session).client;
  return report(client.truncate(of(session), tokens, client.deadline_in(0)));
}

memdecay_code memdecay_begin_step(memdecay_session* session) {
  if (session == nullptr) return null_argument("memdecay_begin_step");
  return report(of(session).client.begin_step(of(session)));
}

int memdecay_wants_masses(const memdecay_session* session) {
  return session != nullptr && of(session).client.wants_masses(of(session)) ? 1 : 0;
}

memdecay_code memdecay_end_step(memdecay_session* session, const memdecay_step* step) {
  if (session == nullptr || step == nullptr || step->size == 0) {
    return null_argument("memdecay_end_step");
  }
  memdecay_step known = MEMDECAY_STEP_INIT;
  std::copy_n(reinterpret_cast<const char*>(step), std::min(step->size, sizeof known),
              reinterpret_cast<char*>(&known));
  Client& client = of(session).client;
  return report(client.end_step(of(session), known, client.deadline_in(0)));
}

memdecay_code memdecay_read_fence(memdecay_session* session, const uint32_t* pages, uint32_t count,
                                  memdecay_fence fence) {
  v1::StreamRequest message;
  message.mutable_read_fence()->mutable_pages()->Add(pages, pages + count);
  set_fence(message.mutable_read_fence()->mutable_fence(), fence);
  return ask(session, "a read fence", std::move(message));
}

memdecay_code memdecay_tag(memdecay_session* session, const memdecay_tagged_span* spans,
                           uint32_t count) {
  v1::StreamRequest message;
  message.mutable_tag();
  for (uint32_t i = 0; i < count; ++i) *message.mutable_tag()->add_spans() = span_of(spans[i]);
  return ask(session, "tag spans", std::move(message));
}

memdecay_code memdecay_untag(memdecay_session* session, memdecay_span span) {
  v1::StreamRequest message;
  set_span(message.mutable_untag()->mutable_span(), span);
  return ask(session, "untag a span", std::move(message));
}

memdecay_code memdecay_end_group(memdecay_session* session, memdecay_span span, int cut) {
  v1::StreamRequest message;
  message.mutable_end_group()->set_cut(cut != 0);
  if (span.begin != span.end) set_span(message.mutable_end_group()->mutable_span(), span);
  return ask(session, "end a group", std::move(message));
}

memdecay_code memdecay_hint(memdecay_session* session, memdecay_span span, double relevance) {
  v1::StreamRequest message;
  set_span(message.mutable_hint()->mutable_span(), span);
  message.mutable_hint()->set_relevance(relevance);
  return ask(session, "a hint", std::move(message));
}

memdecay_code memdecay_supersede(memdecay_session* session, memdecay_span span) {
  v1::StreamRequest message;
  set_span(message.mutable_supersede()->mutable_span(), span);
  return ask(session, "supersede a span", std::move(message));
}

memdecay_code memdecay_pin(memdecay_session* session, uint32_t first_page, uint32_t pages,
                           int64_t ttl_ms) {
  v1::StreamRequest message;
  message.mutable_pin()->set_first_page(first_page);
  message.mutable_pin()->set_pages(pages);
  message.mutable_pin()->set_ttl_ms(ttl_ms);
  return ask(session, "pin pages", std::move(message));
}

memdecay_code memdecay_unpin(memdecay_session* session, uint32_t first_page, uint32_t pages) {
  v1::StreamRequest message;
  message.mutable_unpin()->set_first_page(first_page);
  message.mutable_unpin()->set_pages(pages);
  return ask(session, "unpin pages", std::move(message));
}

memdecay_code memdecay_set_budget(memdecay_session* session, uint32_t budget_pages) {
  v1::StreamRequest message;
  message.mutable_set_budget()->set_budget_pages(budget_pages);
  return ask(session, "set the budget", std::move(message));
}

memdecay_code memdecay_set_mode(memdecay_session* session, memdecay_mode mode) {
  v1::StreamRequest message;
  message.mutable_set_mode()->set_mode(static_cast<v1::Mode>(mode));
  return ask(session, "set the mode", std::move(message));
}

memdecay_code memdecay_park(memdecay_session* session, memdecay_pause why) {
  v1::StreamRequest message;
  message.mutable_park()->set_state(static_cast<v1::SessionState>(why));
  return ask(session, "park", std::move(message));
}

memdecay_code memdecay_unpark(memdecay_session* session, int32_t timeout_ms) {
  if (session == nullptr) return null_argument("memdecay_unpark");
  Client& client = of(session).client;
  return report(client.unpark(of(session), client.deadline_in(timeout_ms)));
}

memdecay_code memdecay_wait_ready(memdecay_session* session, int32_t timeout_ms) {
  if (session == nullptr) return null_argument("memdecay_wait_ready");
  Client& client = of(session).client;
  return report(client.wait_ready(of(session), client.deadline_in(timeout_ms)));
}

memdecay_code memdecay_repair(memdecay_session* session, memdecay_repair_info* repair,
                              int32_t timeout_ms) {
  if (session == nullptr || repair == nullptr) return null_argument("memdecay_repair");
  Client& client = of(session).client;
  v1::StreamRequest message;
  message.mutable_repair();
  auto reply = client.call(about("repair", of(session)), &of(session), std::move(message),
                           client.deadline_in(timeout_ms));
  if (!reply.ok()) return report(reply.status());
  *repair = {reply->repair().needed() ? 1u : 0u, reply->repair().first_page(),
             reply->repair().tokens()};
  return MEMDECAY_OK;
}

memdecay_code memdecay_evict(memdecay_session* session, const uint32_t* pages, uint32_t count) {
  v1::StreamRequest message;
  message.mutable_evict()->mutable_pages()->Add(pages, pages + count);
  return ask(session, "evict pages", std::move(message));
}

memdecay_code memdecay_restore(memdecay_session* session, const uint32_t* pages, uint32_t count,
                               int32_t timeout_ms, memdecay_restore_result* result) {
  uint64_t request = 0;
  const memdecay_code code = memdecay_restore_start(session, pages, count, &request);
  if (code != MEMDECAY_OK) return code;
  return memdecay_restore_wait(session, request, timeout_ms, result);
}

memdecay_code memdecay_restore_start(memdecay_session* session, const uint32_t* pages,
                                     uint32_t count, uint64_t* request) {
  if (session == nullptr || request == nullptr) return null_argument("memdecay_restore");
  v1::StreamRequest message;
  message.mutable_restore()->mutable_pages()->Add(pages, pages + count);
  auto ticket = of(session).client.start(about("restore pages", of(session)), of(session),
                                         std::move(message));
  if (!ticket.ok()) return report(ticket.status());
  *request = *ticket;
  return MEMDECAY_OK;
}

memdecay_code memdecay_restore_cancel(memdecay_session* session, uint64_t request) {
  if (session == nullptr) return null_argument("memdecay_restore_cancel");
  Client& client = of(session).client;
  return report(client.cancel_restore(of(session), request, client.deadline_in(0)));
}

memdecay_code memdecay_restore_wait(memdecay_session* session, uint64_t request, int32_t timeout_ms,
                                    memdecay_restore_result* result) {
  if (session == nullptr) return null_argument("memdecay_restore_wait");
  Client& client = of(session).client;
  auto reply =
      client.finish(about("restore pages", of(session)), request, client.deadline_in(timeout_ms));
  if (!reply.ok()) return report(reply.status());
  write_result(reply->restore(), result);
  return MEMDECAY_OK;
}

}  // extern "C"
