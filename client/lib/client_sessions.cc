// Client: opening, closing and growing sessions, and waiting until one may compute.
// Thread: any; see client.h.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"
#include "client/lib/steady_clock.h"

namespace memdecay::client {

Session& Client::adopt(const v1::SessionReply& reply, const SessionShape& shape) {
  auto session = std::make_unique<Session>(*this, slabs_);
  session->id = SessionId{reply.session()};
  session->name = reply.name();
  session->shape = shape;
  session->budget_pages = shape.budget_pages;
  session->tokens.assign(reply.tokens().begin(), reply.tokens().end());
  for (const v1::TaggedSpan& tag : reply.regions()) {
    session->regions.push_back(
        {tag.span().begin(), tag.span().end(), tag.region(), tag.atomic() ? 1u : 0u});
  }
  session->sealed_tokens = session->written_tokens = reply.position();
  session->step = reply.step();
  session->mode = static_cast<memdecay_mode>(reply.mode());
  session->ready = reply.ready();
  session->table.assign(all_news(reply.pages()));
  auto& place = sessions_[session->id];
  place = std::move(session);
  return *place;
}

// Open, resume and fork: the answer makes the session, so that notices which follow find it. If the
// caller has gone by then, the session is closed again.
absl::StatusOr<Session*> Client::begin_session(const std::string& asked, const Session* parent,
                                               v1::StreamRequest message, SessionShape shape,
                                               Instant deadline) {
  absl::MutexLock lock(&mutex_);
  if (parent != nullptr) {
    if (absl::Status status = check_session(asked, *parent); !status.ok()) return status;
  }
  if (absl::Status status = check_callable(asked); !status.ok()) return status;
  const bool forget = message.has_open() || message.has_fork();
  const SessionId about = parent == nullptr ? SessionId{} : parent->id;
  const uint64_t ticket =
      post(about, std::move(message), Outbox::Wait::kCaller, [this, shape](const v1::Reply& reply) {
        mutex_.AssertHeld();
        if (!reply.has_error() && reply.has_session()) adopt(reply.session(), shape);
      });
  auto reply = await_reply(asked, ticket, deadline);
  if (!reply.ok()) {
    outbox_.replace_effect(ticket, [this, forget](const v1::Reply& late) {
      mutex_.AssertHeld();
      if (late.has_error() || !late.has_session()) return;
      v1::StreamRequest close;
      close.mutable_close()->set_forget(forget);
      post(SessionId{late.session().session()}, std::move(close), Outbox::Wait::kNobody, nullptr);
    });
    return reply.status();
  }
  Session* session = find(SessionId{reply->session().session()});
  if (session == nullptr) {
    return make_error(ErrorCode::kInternal, asked, "the daemon answered without a session",
                      "use a client and a daemon of the same version");
  }
  // Slabs come over the other socket and may be a moment behind; wait_ready waits for the rest.
  const auto mapped = [this, session] {
    mutex_.AssertReaderHeld();
    return session->table.resolved();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&mapped), left_until(deadline));
  return session;
}

absl::Status Client::close(Session& session, Keep keep) {
  absl::MutexLock lock(&mutex_);
  absl::Status status;
  if (session.orphaned) {
    std::erase_if(orphans_, [&session](const auto& owned) { return owned.get() == &session; });
    if (orphans_.empty()) slabs_.drop_retired();
    return status;
  }
  v1::StreamRequest message;
  message.mutable_close()->set_forget(keep == Keep::kForget);
  if (!passed(session.last_read))
    set_fence(message.mutable_close()->mutable_fence(), session.last_read);
  const SessionId id = session.id;
  const std::string asked = absl::StrCat("close session ", id.value);
  // While the daemon is away the close waits in the outbox.
  const uint64_t ticket = post(id, std::move(message), Outbox::Wait::kCaller, nullptr);
  if (link_state_ == Link::kUp) {
    status = await_reply(asked, ticket, now() + options_.timeout).status();
  } else {
    outbox_.abandon(ticket);
    status = check_callable(asked);
  }
  sessions_.erase(id);
  if (!leaving_slabs_.empty()) unmap_unused();
  return status;
}

memdecay_session_info Client::info(Session& session) {
  absl::MutexLock lock(&mutex_);
  memdecay_session_info out{};
  out.id = session.id.value;
  out.name = session.name.c_str();
  out.position = session.sealed_tokens;
  out.tokens = session.tokens.data();
  out.token_count = static_cast<uint32_t>(session.tokens.size());
  out.regions = session.regions.data();
  out.region_count = static_cast<uint32_t>(session.regions.size());
  out.page_tokens = session.shape.page_tokens;
  out.page_bytes = session.shape.page_bytes;
  out.step = session.step;
  out.budget_pages = session.budget_pages;
  out.mode = session.mode;
  out.ready = session.ready && !session.table.restoring() && session.table.resolved() ? 1 : 0;
  out.orphaned = session.orphaned ? 1 : 0;
  return out;
}

// A budget that is small must not be eaten by pages nobody writes yet.
uint32_t Client::grants_ahead(const Session& session) const {
  if (session.budget_pages == 0) return options_.grants_ahead;
  return std::min(options_.grants_ahead, session.budget_pages / 8);
}

void Client::want_refill(Session& session) {
  const uint32_t target = grants_ahead(session);
  if (target == 0 || session.table.granted_ahead() > target / 2) return;
  session.refill_wanted = true;
  wake_keeper();
}

uint64_t Client::post_extend(Session& session, uint32_t pages, Outbox::Wait wait) {
  v1::StreamRequest message;
  message.mutable_extend()->set_pages(pages);
  session.extend_in_flight = true;
  return post(session.id, std::move(message), wait,
              [this, id = session.id](const v1::Reply& reply) {
                mutex_.AssertHeld();
                Session* known = find(id);
                if (known == nullptr) return;
                known->extend_in_flight = false;
                if (reply.has_error()) return;
                known->table.add_granted(all_news(reply.grant().pages()));
                for (const v1::PageView& view : reply.grant().pages()) {
                  memdecay_event event{};
                  event.kind = MEMDECAY_EVENT_GRANT;
                  event.session = id.value;
                  event.page = view.page();
                  event.slab = view.slot().slab();
                  event.slot = view.slot().index();
                  event.generation = view.slot().generation();
                  push(event);
                }
              });
}

absl::Status Client::quiet_grants(Session& session, Instant deadline) {
  const auto quiet = [this, &session] {
    mutex_.AssertReaderHeld();
    return !session.extend_in_flight;
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&quiet), left_until(deadline))) {
    return absl::OkStatus();
  }
  return too_late("grants that are on their way");
}

absl::Status Client::extend(Session& session, uint32_t pages, Instant deadline) {
  const std::string asked = absl::StrCat(pages, " pages for session ", session.id.value);
  absl::MutexLock lock(&mutex_);
  while (session.table.ready_ahead() < pages) {
    if (absl::Status status = check_session(asked, session); !status.ok()) return status;
    if (absl::Status status = quiet_grants(session, deadline); !status.ok()) return status;
    const uint32_t granted = session.table.granted_ahead();
    if (granted < pages) {
      if (absl::Status status = check_callable(asked); !status.ok()) return status;
      const uint64_t ticket = post_extend(session, pages - granted, Outbox::Wait::kCaller);
      auto reply = await_reply(asked, ticket, deadline);
      if (!reply.ok()) return reply.status();
      if (session.table.granted_ahead() == granted) {
        return make_error(ErrorCode::kInternal, asked, "the daemon granted other pages",
                          "use a client and a daemon of the same version");
      }
      continue;
    }
    // Granted, but the slab's descriptor has not arrived.
    const auto there = [this, &session, pages] {
      mutex_.AssertReaderHeld();
      return session.table.ready_ahead() >= pages;
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&there), left_until(deadline))) {
      return make_error(ErrorCode::kDeadline, asked, "their slab has not arrived",
                        "ask again; see the daemon's log if it stays so");
    }
  }
  session.table.hand_out(pages);
  want_refill(session);
  return absl::OkStatus();
}

absl::Status Client::truncate(Session& session, uint32_t tokens, Instant deadline) {
  const std::string asked = absl::StrCat("truncate session ", session.id.value, " to ", tokens);
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = check_session(asked, session); !status.ok()) return status;
  if (absl::Status status = quiet_grants(session, deadline); !status.ok()) return status;
  v1::StreamRequest message;
  message.mutable_truncate()->set_tokens(tokens);
  return call_locked(asked, &session, std::move(message), deadline,
                     [this, id = session.id, tokens](const v1::Reply& reply) {
                       mutex_.AssertHeld();
                       Session* known = find(id);
                       if (known == nullptr || reply.has_error()) return;
                       const uint32_t page_tokens = std::max(1u, known->shape.page_tokens);
                       known->table.cut(tokens / page_tokens);
                       const uint32_t kept = tokens / page_tokens * page_tokens;
                       known->sealed_tokens = std::min(known->sealed_tokens, kept);
                       known->written_tokens = std::min(known->written_tokens, kept);
                       known->trouble.reset();
                     })
      .status();
}

absl::Status Client::unpark(Session& session, Instant deadline) {
  const std::string asked = absl::StrCat("unpark session ", session.id.value);
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = check_session(asked, session); !status.ok()) return status;
    if (absl::Status status = check_callable(asked); !status.ok()) return status;
    // Before the question: the Ready notice may overtake the answer.
    const bool was_ready = std::exchange(session.ready, false);
    session.trouble.reset();
    v1::StreamRequest message;
    message.mutable_unpark();
    auto reply = call_locked(asked, &session, std::move(message), deadline, nullptr);
    if (!reply.ok()) {
      // A late answer still comes, and the Ready notice after it.
      const bool refused = error_code(reply.status()) != ErrorCode::kDeadline;
      session.ready = session.ready || (refused && was_ready);
      return reply.status();
    }
  }
  return wait_ready(session, deadline);
}

absl::Status Client::wait_ready(Session& session, Instant deadline) {
  const std::string asked = absl::StrCat("session ", session.id.value, " to be ready");
  absl::MutexLock lock(&mutex_);
  const auto settled = [this, &session] {
    mutex_.AssertReaderHeld();
    const bool all_here = session.ready && !session.table.restoring() && session.table.resolved();
    const bool hopeless = session.trouble && !session.ready && session.mode == MEMDECAY_EXACT;
    return all_here || hopeless || session.orphaned;
  };
  const bool in_time = mutex_.AwaitWithTimeout(absl::Condition(&settled), left_until(deadline));
  if (absl::Status status = check_session(asked, session); !status.ok()) return status;
  if (session.trouble && !session.ready && session.mode == MEMDECAY_EXACT) {
    return make_error(
        session.trouble->code, asked,
        absl::StrCat("page ", session.trouble->page, " cannot come back"),
        absl::StrCat("truncate to token ", session.trouble->page * session.shape.page_tokens,
                     " and compute again from there"));
  }
  return in_time ? absl::OkStatus() : too_late(asked);
}

absl::StatusOr<memdecay_lease> Client::acquire(Session* session, v1::StreamRequest message,
                                               Instant deadline) {
  absl::MutexLock lock(&mutex_);
  if (session != nullptr) {
    if (absl::Status status = check_session("acquire", *session); !status.ok()) return status;
    if (absl::Status status = quiet_grants(*session, deadline); !status.ok()) return status;
    if (session->table.granted_ahead() > 0) {
      // Acquired pages follow the last page; grants nobody has taken would stand between.
      const PageIndex end = session->table.handed();
      v1::StreamRequest cut;
      cut.mutable_truncate()->set_tokens(end * session->shape.page_tokens);
      auto reply = call_locked("give back grants", session, std::move(cut), deadline, nullptr);
      if (!reply.ok()) return reply.status();
      session->table.cut(end);
    }
  }
  const SessionId id = session == nullptr ? SessionId{} : session->id;
  auto reply = call_locked(
      "acquire", session, std::move(message), deadline, [this, id](const v1::Reply& answer) {
        mutex_.AssertHeld();
        Session* known = find(id);
        if (known == nullptr || answer.has_error()) return;
        known->table.assign(all_news(answer.acquire().views()));
        // Pages from lower tiers are on their way: the Ready notice comes after this answer.
        for (const v1::PageView& view : answer.acquire().views()) {
          if (view.state() != v1::PAGE_STATE_MAPPED) known->ready = false;
        }
        const uint32_t tokens = known->table.handed() * known->shape.page_tokens;
        known->sealed_tokens = known->written_tokens = std::max(known->written_tokens, tokens);
      });
  if (!reply.ok()) return reply.status();
  const v1::AcquireReply& acquired = reply->acquire();
  return memdecay_lease{acquired.lease(), acquired.pages(), acquired.expires_in_ms()};
}

}  // namespace memdecay::client
