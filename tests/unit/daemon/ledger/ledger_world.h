// A ledger with nobody behind it: replies and notices are collected, copies complete when told.
// Thread: the test's.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/ledger/ledger.h"
#include "daemon/ledger/report.h"

namespace memdecay::ledger {

inline Options small_pool(uint32_t device_pages, uint32_t host_pages) {
  Options options;
  options.device_pages = device_pages;
  options.host_pages = host_pages;
  options.sinks = 0;
  options.recent = 0;
  options.policy.name = "lru";
  options.policy.sinks = 0;
  options.policy.recent = 0;
  return options;
}

class LedgerWorld {
 public:
  explicit LedgerWorld(Options options) : ledger_(std::move(options)) {}

  static LayoutRef layout() { return {.name_space = {}, .page_tokens = 16, .page_bytes = 256}; }

  Effects step(const Event& event) {
    Effects effects;
    ledger_.step(now_, event, effects);
    for (const Effect& effect : effects) {
      if (const auto* copy = std::get_if<StartCopy>(&effect)) copies_.push_back(*copy);
    }
    return effects;
  }

  // Steps a request and returns its reply; nullopt while it waits.
  template <typename Request>
  std::optional<Reply> ask(Request request) {
    request.origin.request = RequestId{++last_request_};
    const Effects effects = step(Event(request));
    return reply_in(effects, request.origin.request);
  }
  RequestId last_request() const { return RequestId{last_request_}; }
  static std::optional<Reply> reply_in(const Effects& effects, RequestId request) {
    for (const Effect& effect : effects) {
      const auto* reply = std::get_if<Reply>(&effect);
      if (reply != nullptr && reply->request == request) return *reply;
    }
    return std::nullopt;
  }
  template <typename Body>
  static std::vector<Body> notices(const Effects& effects) {
    std::vector<Body> found;
    for (const Effect& effect : effects) {
      const auto* notice = std::get_if<Notice>(&effect);
      if (notice == nullptr) continue;
      if (const auto* body = std::get_if<Body>(&notice->body)) found.push_back(*body);
    }
    return found;
  }

  Origin attach() {
    const Reply reply = *ask(Attach{.origin = {.tenant = TenantId{1}}, .name = "engine"});
    const auto& attached = std::get<AttachReply>(reply.body);
    return {.tenant = TenantId{1}, .engine = attached.engine, .epoch = attached.epoch};
  }
  SessionId open(const Origin& origin, Mode mode) {
    const Reply reply = *ask(OpenSession{.origin = origin, .layout = layout(), .mode = mode});
    return std::get<SessionReply>(reply.body).session;
  }
  // Grants and seals pages whose tokens are all `token`.
  absl::Status fill(const Origin& origin, SessionId session, uint32_t pages, TokenId token,
                    PageIndex first) {
    const auto granted = ask(Extend{.origin = origin, .session = session, .pages = pages});
    if (!granted.has_value() || !granted->status.ok()) {
      return granted.has_value() ? granted->status : absl::UnavailableError("waits");
    }
    return ask(Seal{.origin = origin,
                    .session = session,
                    .first_page = first,
                    .pages = pages,
                    .tokens = std::vector<TokenId>(pages * 16, token)})
        ->status;
  }
  // Completes every copy that was started.
  void finish_copies() {
    while (!copies_.empty()) {
      const std::vector<StartCopy> copies = std::exchange(copies_, {});
      for (const StartCopy& copy : copies) step(CopyDone{.copy = copy.copy});
    }
  }
  void advance(Duration by) {
    now_ = now_ + by;
    step(Tick{});
  }

  Ledger& ledger() { return ledger_; }
  Instant now() const { return now_; }
  const std::vector<StartCopy>& copies() const { return copies_; }

 private:
  Ledger ledger_;
  Instant now_{1'000'000'000};
  uint64_t last_request_ = 0;
  std::vector<StartCopy> copies_;
};

}  // namespace memdecay::ledger
