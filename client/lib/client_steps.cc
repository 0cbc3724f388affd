// Client: the page table, sealing, and the bracket of a step.
// Thread: the one that uses the session; see client.h.
#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"
#include "client/lib/steady_clock.h"
#include "cuda/checksum.h"

namespace memdecay::client {
namespace {

// Whether the page is one that the engine computed with something missing, as far as we can see.
Exactness exactness_of(const Session& session, const memdecay_seal_info& seal) {
  const bool holes =
      seal.had_holes > 0 || (seal.had_holes < 0 && session.table.has_holes_before(seal.first_page));
  return holes ? Exactness::kApproximate : Exactness::kExact;
}

v1::StreamRequest seal_message(const memdecay_seal_info& seal,
                               std::span<const Checksum> checksums) {
  v1::StreamRequest message;
  v1::SealRequest* out = message.mutable_seal();
  out->set_first_page(seal.first_page);
  out->set_pages(seal.pages);
  out->mutable_tokens()->Add(seal.tokens, seal.tokens + seal.token_count);
  for (const Checksum& checksum : checksums) {
    v1::Checksum* to = out->add_checksums();
    to->set_low(checksum.low);
    to->set_high(checksum.high);
  }
  for (uint32_t i = 0; i < seal.extra_count; ++i) {
    out->add_extras(seal.extras[i].data, seal.extras[i].size);
  }
  if (seal.fence.value != 0) set_fence(out->mutable_fence(), seal.fence);
  if (seal.had_holes >= 0) out->set_had_holes(seal.had_holes > 0);
  return message;
}

}  // namespace

const std::vector<memdecay_page>& Client::page_table(Session& session) {
  absl::MutexLock lock(&mutex_);
  session.table.refresh();
  return session.table.snapshot();
}

// What a seal's answer changes here.
Outbox::Effect Client::seal_effect(SessionId id, const memdecay_seal_info& seal, Protected pages) {
  return [this, id, first = seal.first_page, count = seal.pages, pages,
          silent = seal.no_wait != 0](const v1::Reply& reply) {
    mutex_.AssertHeld();
    Session* known = find(id);
    if (known == nullptr) return;
    if (!reply.has_error()) {
      const uint32_t end = (first + count) * known->shape.page_tokens;
      known->sealed_tokens = std::max(known->sealed_tokens, end);
      known->written_tokens = std::max(known->written_tokens, end);
      return;
    }
    if (pages == Protected::kYes) known->table.unseal(first, count);
    if (silent) report_refusal(id)(reply);
  };
}

absl::Status Client::seal(Session& session, const memdecay_seal_info& seal, Instant deadline) {
  const std::string asked =
      absl::StrCat("seal pages ", seal.first_page, " to ", seal.first_page + seal.pages,
                   " of session ", session.id.value);
  if (seal.tokens == nullptr ||
      uint64_t{seal.pages} * session.shape.page_tokens != seal.token_count) {
    return make_error(ErrorCode::kInvalidArgument, asked,
                      absl::StrCat(seal.token_count, " tokens were given"),
                      absl::StrCat("give ", session.shape.page_tokens, " tokens a page"));
  }
  std::vector<std::span<const std::byte>> bytes;
  bool writable = false;
  bool there = false;
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = check_session(asked, session); !status.ok()) return status;
    if (seal.no_wait == 0) {
      if (absl::Status status = check_callable(asked); !status.ok()) return status;
    }
    writable = session.table.writable(seal.first_page, seal.pages);
    there = passed(seal.fence);
    if (writable && there) bytes = session.table.bytes(seal.first_page, seal.pages);
  }
  // The pages are this thread's until they are sealed, so the mutex is not needed to read them.
  std::vector<Checksum> checksums;
  checksums.reserve(bytes.size());
  for (const auto& page : bytes) checksums.push_back(cuda::checksum_of(page));

  absl::MutexLock lock(&mutex_);
  if (writable) {
    session.table.seal(seal.first_page, seal.pages, exactness_of(session, seal),
                       there ? PageTable::Bytes::kThere : PageTable::Bytes::kBehindFence);
    if (!there) session.open_seals.push_back({seal.first_page, seal.pages, seal.fence});
  }
  v1::StreamRequest message = seal_message(seal, checksums);
  Outbox::Effect effect =
      seal_effect(session.id, seal, writable ? Protected::kYes : Protected::kNo);
  if (seal.no_wait != 0) {
    post(session.id, std::move(message), Outbox::Wait::kNobody, std::move(effect));
    return absl::OkStatus();
  }
  const uint64_t ticket =
      post(session.id, std::move(message), Outbox::Wait::kCaller, std::move(effect));
  return await_reply(asked, ticket, deadline).status();
}

absl::Status Client::written(Session& session, uint32_t position) {
  {
    absl::MutexLock lock(&mutex_);
    session.written_tokens = position;
    session.table.fill_to(position, session.shape.page_tokens);
  }
  v1::StreamRequest message;
  message.mutable_written()->set_position(position);
  return tell("say what is written", session, std::move(message));
}

void Client::close_passed_seals(Session& session) {
  std::erase_if(session.open_seals, [this, &session](const OpenSeal& open) {
    mutex_.AssertHeld();
    if (!passed(open.fence)) return false;
    session.table.close_sealed(open.first, open.pages);
    return true;
  });
}

absl::Status Client::begin_step(Session& session) {
  absl::MutexLock lock(&mutex_);
  if (acks_ == ClientOptions::Acks::kAutomatic) apply_pending(session, session.last_read);
  session.in_step = true;
  session.observe_now = session.steps_unobserved + 1 >= options_.observe_every;
  session.table.refresh();
  return absl::OkStatus();
}

bool Client::wants_masses(const Session& session) const {
  absl::MutexLock lock(&mutex_);
  return session.observe_now;
}

v1::StreamRequest Client::observation(const memdecay_step& step) {
  v1::StreamRequest message;
  v1::ObserveRequest* out = message.mutable_observe();
  out->set_step(step.step);
  out->set_position(step.position);
  if (step.queries == 0) return message;
  out->set_queries(step.queries);
  out->set_sink(step.sink);
  out->set_tail(step.tail);
  out->set_rest(step.rest);
  for (uint32_t i = 0; i < step.mass_count; ++i) {
    v1::PageMass* mass = out->add_masses();
    mass->set_page(step.masses[i].page);
    mass->set_mass(step.masses[i].mass);
  }
  return message;
}

// Observe goes out before the acknowledgements of this boundary: masses are those of the set that
// was visible in the step.
absl::Status Client::end_step(Session& session, const memdecay_step& step, Instant deadline) {
  const std::string asked =
      absl::StrCat("the observation of step ", step.step, " of session ", session.id.value);
  absl::MutexLock lock(&mutex_);
  session.in_step = false;
  session.step = step.step;
  session.written_tokens = std::max(session.written_tokens, step.position);
  session.table.fill_to(step.position, session.shape.page_tokens);
  session.last_read = passed(step.fence) ? memdecay_fence MEMDECAY_NO_FENCE : step.fence;
  ++session.steps_unobserved;
  if (session.orphaned) return check_session(asked, session);
  const bool lockstep = options_.lockstep == ClientOptions::Lockstep::kYes;
  std::optional<uint64_t> observed;
  const bool observe = session.observe_now || step.queries > 0;
  if (observe || lockstep) {
    const auto wait = lockstep ? Outbox::Wait::kCaller : Outbox::Wait::kNobody;
    observed =
        post(session.id, observation(step), wait, lockstep ? nullptr : report_refusal(session.id));
    if (observe) session.steps_unobserved = 0;
  }
  session.observe_now = false;
  if (acks_ == ClientOptions::Acks::kAutomatic) apply_pending(session, session.last_read);
  if (!lockstep) return absl::OkStatus();

  // Decisions of the step stand in the stream before the answer to a second, empty observation; the
  // reading thread applies them as they come, because the session is between steps.
  v1::StreamRequest barrier;
  barrier.mutable_observe()->set_step(step.step);
  barrier.mutable_observe()->set_position(step.position);
  const uint64_t second = post(session.id, std::move(barrier), Outbox::Wait::kCaller, nullptr);
  const absl::Status first_answer = await_reply(asked, *observed, deadline).status();
  const absl::Status second_answer = await_reply(asked, second, deadline).status();
  return first_answer.ok() ? second_answer : first_answer;
}

void Client::acknowledge(const memdecay_fence& fence) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, session] : sessions_) {
    if (!session->in_step) apply_pending(*session, fence.value != 0 ? fence : session->last_read);
  }
}

void Client::set_acks(ClientOptions::Acks acks) {
  absl::MutexLock lock(&mutex_);
  acks_ = acks;
  for (auto& [id, session] : sessions_) settle(*session);
}

}  // namespace memdecay::client
