// Faults and reports of the real world. See real_world.h; time is in real_rest.cc.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/vocabulary.h"
#include "tests/scenario/real_world.h"

namespace memdecay::scenario {
namespace {

ledger::SessionReport session_from(const v1::SessionInfo& in) {
  using Ready = ledger::SessionReport::Ready;
  return {.session = SessionId{in.session()},
          .name = in.name(),
          .tenant = in.tenant(),
          .engine = EngineId{in.engine()},
          .state = static_cast<SessionState>(in.state()),
          .mode = in.mode() == v1::MODE_LOSSY ? Mode::kLossy : Mode::kExact,
          .policy = in.policy(),
          .priority = in.priority(),
          .budget_pages = in.budget_pages(),
          .pages = in.pages(),
          .resident_pages = in.resident_pages(),
          .hole_pages = in.hole_pages(),
          .dropped_pages = in.dropped_pages(),
          .approximate_pages = in.approximate_pages(),
          .position = in.position(),
          .step = in.step(),
          .ready = in.ready() ? Ready::kYes : Ready::kNo};
}

SlotRef slot_from(const v1::SlotRef& in) {
  return {SlabId{in.slab()}, in.index(), in.generation()};
}

ledger::PageReport page_from(const v1::PageInfo& in) {
  using Exactness = ledger::PageView::Exactness;
  ledger::PageReport out;
  out.view = {.page = in.view().page(),
              .state = static_cast<PageState>(in.view().state()),
              .slot = slot_from(in.view().slot()),
              .exactness = in.view().approximate() ? Exactness::kApproximate : Exactness::kExact};
  out.where = {.device = in.on_device(),
               .host = in.on_host(),
               .clean = in.on_device() && in.on_host(),
               .quarantined = in.quarantined()};
  out.score = in.score();
  out.key_hex = in.key();
  for (const int reason : in.spared()) out.spared.push_back(static_cast<Reason>(reason));
  return out;
}

constexpr int64_t kDescriptorsAnEngine = 8;

template <size_t kCount, typename State>
void read_counts(const google::protobuf::RepeatedPtrField<v1::Count>& counts,
                 std::array<uint32_t, kCount>& out, std::string_view (*name)(State)) {
  for (const v1::Count& count : counts) {
    for (size_t i = 0; i < kCount; ++i) {
      if (count.name() == name(static_cast<State>(i)))
        out[i] = static_cast<uint32_t>(count.value());
    }
  }
}

}  // namespace

absl::Status RealWorld::hold(Direction direction, SessionId session, PageIndex page) {
  v1::HoldRequest request;
  v1::HoldResponse response;
  request.mutable_session()->set_session(session.value);
  request.add_pages(page);
  request.set_direction(direction == Direction::kEvict     ? "evict"
                        : direction == Direction::kRestore ? "restore"
                                                           : "store");
  const absl::Status held = admin_->call(request, response);
  if (error_code(held) != ErrorCode::kNotSealed) return held;
  unsealed_holds_.emplace_back(direction, session, page);  // as soon as it is sealed
  return absl::OkStatus();
}

absl::Status RealWorld::end_copy(SessionId session, PageIndex page, Ending ending) {
  v1::FinishRequest request;
  v1::FinishResponse response;
  request.mutable_session()->set_session(session.value);
  request.add_pages(page);
  request.set_fail(ending == Ending::kFail);
  changed();
  return admin_->call(request, response);
}

absl::Status RealWorld::lever(const std::string& what, SessionId session,
                              std::vector<PageIndex> pages, double value) {
  v1::FaultRequest request;
  v1::FaultResponse response;
  request.set_what(what);
  request.mutable_session()->set_session(session.value);
  for (const PageIndex page : pages) request.add_pages(page);
  request.set_value(value);
  changed();
  return admin_->call(request, response);
}

absl::Status RealWorld::reorder(SessionId session, PageIndex first, SessionId other_session,
                                PageIndex second) {
  if (session != other_session) {
    return make_error(ErrorCode::kUnsupported, "reorder", "over two sessions", "");
  }
  if (absl::Status ordered = lever("reorder", session, {first, second}, 0); !ordered.ok()) {
    return ordered;
  }
  for (const PageIndex page : {second, first}) {
    if (absl::Status ended = end_copy(session, page, Ending::kFinish); !ended.ok()) return ended;
  }
  return absl::OkStatus();
}

absl::Status RealWorld::lose_completions(double probability) {
  return lever("completion_lost", {}, {}, probability);
}
absl::Status RealWorld::hash_bits(int bits) { return lever("hash_bits", {}, {}, bits); }

absl::Status RealWorld::damage(Damage what, SessionId session, PageIndex page) {
  const char* name = what == Damage::kFlip ? "flip" : what == Damage::kZero ? "zero" : "unlink";
  return lever(name, session, {page}, 0);
}

const std::vector<RealWorld::TableRow>& RealWorld::table(const std::string& engine,
                                                         SessionId session) {
  const auto key = std::pair(engine, session);
  if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
  std::vector<TableRow>& rows = tables_[key];
  const absl::StatusOr<WireWords> words =
      command(engine, absl::StrCat("table session=", session.value));
  if (!words.ok()) return rows;
  // page:slab:slot:generation:state:approximate:readable
  for (const std::string& item : words->list("table")) {
    std::vector<uint32_t> numbers;
    for (const std::string& part : WireWords::split(item, ':')) {
      numbers.push_back(static_cast<uint32_t>(std::stoul(part)));
    }
    if (numbers.size() != 7) continue;
    rows.push_back(
        {.slot = {SlabId{numbers[1]}, numbers[2], numbers[3]}, .readable = numbers[6] != 0});
  }
  return rows;
}

std::optional<SlotRef> RealWorld::mapped(const std::string& engine, SessionId session,
                                         PageIndex page) {
  const std::vector<TableRow>& rows = table(engine, session);
  if (page >= rows.size() || !rows[page].readable) return std::nullopt;
  return rows[page].slot;
}

absl::Status RealWorld::write(const std::string& engine, SessionId session, PageIndex page,
                              uint64_t offset, const std::string& bytes) {
  return command(engine, absl::StrCat("write session=", session.value, " page=", page,
                                      " offset=", offset, " bytes=", WireWords::hex(bytes)))
      .status();
}

absl::StatusOr<std::string> RealWorld::read(const std::string& engine, SessionId session,
                                            PageIndex page) {
  const absl::StatusOr<WireWords> words =
      command(engine, absl::StrCat("read session=", session.value, " page=", page));
  if (!words.ok()) return words.status();
  return WireWords::bytes(words->text("bytes"));
}

absl::StatusOr<Fence> RealWorld::make_fence(const std::string& engine) {
  const absl::StatusOr<WireWords> words = command(engine, "fence");
  if (!words.ok()) return words.status();
  return fence_from(words->text("fence"));
}

absl::Status RealWorld::signal(const std::string& engine, const Fence& fence) {
  changed();
  const absl::StatusOr<WireWords> done =
      command(engine, absl::StrCat("signal fence=", fence_word(fence)));
  if (!done.ok()) return done.status();
  uint64_t& value = engines_.at(engine).signalled[{fence.member, fence.word}];
  value = std::max(value, fence.value);
  return absl::OkStatus();
}

std::vector<Heard> RealWorld::heard(const std::string& name) {
  Engine* engine = find(name);
  if (engine == nullptr) return {};
  const absl::StatusOr<WireWords> words = command(name, "events");
  if (words.ok()) {
    for (const std::string& item : words->list("events")) {
      const auto parts = WireWords::split(item, ':');
      if (parts.size() != 4) continue;
      engine->heard.push_back({.kind = parts[0],
                               .session = SessionId{std::stoull(parts[1])},
                               .page = static_cast<PageIndex>(std::stoul(parts[2])),
                               .code = error_from_name(parts[3])});
    }
  }
  return engine->heard;
}

absl::StatusOr<std::string> RealWorld::engine_state(const std::string& name) {
  const Engine* engine = find(name);
  if (engine == nullptr) return make_error(ErrorCode::kNotFound, name, "never attached");
  if (absl::Status waited = wait_for_lives(); !waited.ok()) return waited;
  if (engine->life == Life::kGone) return std::string("dead");
  if (engine->life == Life::kDetached) return std::string("disconnected");
  if (engine->life == Life::kAlive) return std::string("alive");
  // Frozen: whether it was noticed is the daemon's to say. It says only how many are.
  const absl::StatusOr<ledger::StatusReport> report = status();
  if (!report.ok()) return report.status();
  const auto frozen = std::count_if(engines_.begin(), engines_.end(), [](const auto& entry) {
    return entry.second.life == Life::kFrozen;
  });
  const uint32_t silent = report->engines[static_cast<size_t>(EngineState::kSilent)];
  return std::string(silent == static_cast<uint32_t>(frozen) ? "silent" : "alive");
}

absl::StatusOr<ledger::StatusReport> RealWorld::status() {
  v1::GetStatusRequest request;
  v1::GetStatusResponse response;
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  ledger::StatusReport report{.sessions = response.sessions(),
                              .entries = response.entries(),
                              .leases = response.leases(),
                              .pinned_pages = response.pinned_pages(),
                              .copies_in_flight = response.copies_in_flight(),
                              .waiting_requests = response.waiting_requests()};
  read_counts(response.slots(), report.slots, slot_state_name);
  read_counts(response.engines(), report.engines, engine_state_name);
  return report;
}

absl::StatusOr<std::vector<ledger::SessionReport>> RealWorld::sessions() {
  v1::ListSessionsRequest request;
  v1::ListSessionsResponse response;
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  std::vector<ledger::SessionReport> out;
  for (const v1::SessionInfo& session : response.sessions()) out.push_back(session_from(session));
  return out;
}

absl::StatusOr<ledger::SessionReport> RealWorld::session(SessionId session) {
  v1::ListPagesRequest request;
  v1::ListPagesResponse response;
  request.mutable_session()->set_session(session.value);
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  return session_from(response.session());
}

absl::StatusOr<std::vector<ledger::PageReport>> RealWorld::pages(SessionId session) {
  v1::ListPagesRequest request;
  v1::ListPagesResponse response;
  request.mutable_session()->set_session(session.value);
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  std::vector<ledger::PageReport> out;
  for (const v1::PageInfo& page : response.pages()) out.push_back(page_from(page));
  return out;
}

absl::StatusOr<std::vector<ledger::DecisionReport>> RealWorld::decisions(
    SessionId session, std::optional<PageIndex> page) {
  std::vector<ledger::DecisionReport> out;
  if (!page) return out;
  v1::ExplainRequest request;
  v1::ExplainResponse response;
  request.mutable_page()->mutable_session()->set_session(session.value);
  request.mutable_page()->set_page(*page);
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  for (const v1::Decision& decision : response.decisions()) {
    out.push_back({.decision = DecisionId{decision.decision()},
                   .kind = decision.kind(),
                   .session = SessionId{decision.session()},
                   .page = decision.page(),
                   .reason = static_cast<Reason>(decision.reason()),
                   .score = decision.score(),
                   .pressure = decision.pressure(),
                   .first_spared = decision.first_spared(),
                   .saved_by = decision.saved_by()});
  }
  return out;
}

absl::StatusOr<std::vector<PageIndex>> RealWorld::victims(SessionId session, uint32_t count) {
  v1::VictimsRequest request;
  v1::VictimsResponse response;
  request.mutable_session()->set_session(session.value);
  request.set_count(count);
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  return std::vector<PageIndex>(response.pages().begin(), response.pages().end());
}

absl::StatusOr<std::vector<ledger::Sample>> RealWorld::samples() {
  v1::SamplesRequest request;
  v1::SamplesResponse response;
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  std::vector<ledger::Sample> out;
  for (const v1::Sample& sample : response.samples()) {
    out.push_back({.name = sample.name(), .value = sample.value()});
    for (const v1::Label& label : sample.labels()) {
      out.back().labels.emplace_back(label.name(), label.value());
    }
  }
  return out;
}

absl::StatusOr<std::string> RealWorld::replica(SessionId session, PageIndex page) {
  v1::ReplicaRequest request;
  v1::ReplicaResponse response;
  request.mutable_session()->set_session(session.value);
  request.set_page(page);
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  return response.content();
}

std::vector<std::string> RealWorld::audit() {
  v1::CheckRequest request;
  v1::CheckResponse response;
  if (absl::Status called = admin_->call(request, response); !called.ok()) {
    return {std::string(called.message())};
  }
  return {response.differences().begin(), response.differences().end()};
}

absl::StatusOr<World::Footprint> RealWorld::footprint() {
  v1::FootprintRequest request;
  v1::FootprintResponse response;
  if (absl::Status called = admin_->call(request, response); !called.ok()) return called;
  // Sockets, pidfd, timeline and shadow table of an engine that is here are no leak.
  const auto here = std::count_if(engines_.begin(), engines_.end(), [](const auto& entry) {
    return entry.second.life == Life::kAlive || entry.second.life == Life::kFrozen;
  });
  return Footprint{.rss_bytes = response.rss_bytes(),
                   .descriptors = response.descriptors() - kDescriptorsAnEngine * here};
}

}  // namespace memdecay::scenario
