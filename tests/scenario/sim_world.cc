// Daemon, engines and requests of the simulated world. See sim_world.h; time, faults and reports
// are in sim_inside.cc.
#include "tests/scenario/sim_world.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/server/config.h"
#include "proto/contract/error.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/page_key.h"
#include "tests/scenario/configure.h"

namespace memdecay::scenario {
namespace {

using Life = ScriptedEngine::Life;

absl::Status not_there(const std::string& name, std::string there) {
  return make_error(ErrorCode::kUnavailable, absl::StrCat("engine ", name), std::move(there),
                    "attach it first");
}

// As wire_keys.h does it for callers over the wire.
std::vector<PageKey> keys_of(const ledger::LayoutRef& layout, const std::vector<TokenId>& tokens,
                             const Extras& extras) {
  std::vector<ExtraKey> extra_keys;
  for (const std::string& extra : extras.values) {
    extra_keys.push_back({.kind = "extra", .value = extra});
  }
  std::vector<PageKey> keys;
  for (size_t at = 0; at + layout.page_tokens <= tokens.size(); at += layout.page_tokens) {
    const std::span<const TokenId> page(tokens.data() + at, layout.page_tokens);
    keys.push_back(page_key(layout.name_space,
                            keys.empty() ? std::nullopt : std::optional(keys.back()), page,
                            extra_keys));
  }
  return keys;
}

}  // namespace

absl::Status SimScenarioWorld::start(const DaemonSpec& spec) {
  absl::StatusOr<server::Config> config = make_config(spec);
  if (!config.ok()) return config.status();
  config_ = *std::move(config);
  engines_.clear();
  members_.clear();
  askers_.clear();
  abandoned_.clear();
  answers_.clear();
  holds_.clear();
  held_.clear();
  world_.reset();
  random_ = base::Random(spec.seed ^ 0x5ce7a710);
  reactor::Edge& edge = *this;
  world_ = std::make_unique<sim::SimWorld>(
      sim::SimOptions{.ledger = config_.ledger, .seed = spec.seed}, edge);
  if (trace_) world_->trace_to(trace_);
  world_->on_step([this](const reactor::StepReport&) { place_holds(); });
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::check_config(const DaemonSpec& spec) {
  return make_config(spec).status();
}

absl::Status SimScenarioWorld::reload(const DaemonSpec& spec) {
  absl::StatusOr<server::Config> config = make_config(spec, server::Occasion::kReload);
  if (!config.ok()) return config.status();
  absl::Status outcome = absl::OkStatus();
  world_->reactor().reconfigure(config->ledger, [&](absl::Status done) { outcome = done; });
  rest();
  if (outcome.ok()) config_ = *std::move(config);
  return outcome;
}

absl::Status SimScenarioWorld::daemon(DaemonDeed) {
  return make_error(ErrorCode::kUnsupported, "the daemon's death", "simulation has no process");
}

TenantId SimScenarioWorld::tenant_id(const std::string& name) const {
  const auto& tenants = config_.ledger.tenants;
  for (size_t i = 0; i < tenants.size(); ++i) {
    if (tenants[i].name == name) return TenantId{static_cast<uint32_t>(i + 1)};
  }
  return name.empty() ? TenantId{1} : TenantId{};
}

ScriptedEngine* SimScenarioWorld::find(const std::string& name) {
  for (auto engine = engines_.rbegin(); engine != engines_.rend(); ++engine) {
    if ((*engine)->spec().name == name) return engine->get();
  }
  return nullptr;
}

ScriptedEngine* SimScenarioWorld::find(EngineId id) {
  for (auto engine = engines_.rbegin(); engine != engines_.rend(); ++engine) {
    if ((*engine)->id() == id) return engine->get();
  }
  return nullptr;
}

absl::StatusOr<ScriptedEngine*> SimScenarioWorld::speaking(const std::string& name) {
  ScriptedEngine* engine = find(name);
  if (engine == nullptr) return not_there(name, "never attached");
  switch (engine->life()) {
    case Life::kAlive:
      return engine;
    case Life::kFrozen:
      return not_there(name, "frozen");
    case Life::kDetached:
      return not_there(name, "detached");
    case Life::kGone:
      return not_there(name, "dead");
  }
  return engine;
}

absl::StatusOr<ledger::LayoutRef> SimScenarioWorld::layout_ref(const Layout& layout) const {
  if (absl::Status valid = validate(layout, config_.ledger.page_tokens); !valid.ok()) return valid;
  const uint64_t bytes = page_bytes(layout);
  return ledger::LayoutRef{
      .name_space = namespace_id(layout), .page_tokens = page_tokens(layout), .page_bytes = bytes};
}

ledger::Reply SimScenarioWorld::demand(ledger::Event event) {
  const RequestId request = world_->reactor().next_request();
  std::visit(
      [&](auto& typed) {
        if constexpr (requires { typed.origin; }) typed.origin.request = request;
      },
      event);
  post(event, false);
  world_->run_until_idle();
  const auto found = answers_.extract(request);
  if (!found.empty()) return found.mapped();
  return {.request = request,
          .status = make_error(ErrorCode::kInternal, "an answer at once", "none came")};
}

absl::Status SimScenarioWorld::attach(const EngineSpec& spec) {
  const auto agreed = agree_version(spec.protocol_major, spec.protocol_minor);
  if (!agreed.ok()) return agreed.status();
  const TenantId tenant = tenant_id(spec.tenant);
  if (!tenant) {
    return make_error(ErrorCode::kPermission, absl::StrCat("tenant ", spec.tenant),
                      "no such tenant", "name one that `tenant` made");
  }
  if (ScriptedEngine* before = find(spec.name);
      before != nullptr && before->life() != Life::kGone) {
    return make_error(ErrorCode::kBusy, absl::StrCat("engine ", spec.name), "it is attached", "");
  }
  EngineSpec filled = spec;
  if (filled.blocks == 0) filled.blocks = config_.ledger.device_pages;
  auto engine = std::make_unique<ScriptedEngine>(filled, *world_, random_.next());
  const absl::StatusOr<ledger::LayoutRef> layout = layout_ref(filled.layout);
  if (!layout.ok()) return layout.status();
  const ledger::Reply reply =
      demand(ledger::Attach{.origin = {.tenant = tenant},
                            .name = spec.name,
                            .placement = spec.placement,
                            .blocks = spec.placement == Placement::kEngine ? filled.blocks : 0});
  if (!reply.status.ok()) return reply.status;
  const auto& attached = std::get<ledger::AttachReply>(reply.body);
  engine->attached(attached.engine, attached.epoch, tenant);
  engines_.push_back(std::move(engine));
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::engine(const std::string& name, EngineDeed deed) {
  ScriptedEngine* engine = find(name);
  if (engine == nullptr) return not_there(name, "never attached");
  reactor::Reactor& reactor = world_->reactor();
  switch (deed) {
    case EngineDeed::kDetach:
      engine->set_life(Life::kDetached);
      reactor.complete(ledger::Disconnected{engine->id()});
      break;
    case EngineDeed::kReattach: {
      const ledger::Reply reply =
          demand(ledger::Reattach{engine->origin({}, tenant_id(engine->spec().tenant))});
      if (!reply.status.ok()) return reply.status;
      const auto& attached = std::get<ledger::AttachReply>(reply.body);
      engine->attached(attached.engine, attached.epoch, tenant_id(engine->spec().tenant));
      engine->set_life(Life::kAlive);
      break;
    }
    case EngineDeed::kKill:
      members_.erase(name);
      for (const auto& [request, asker] : askers_) {
        if (asker != engine) continue;
        refuse(Ticket{request.value}, not_there(name, "killed meanwhile"));
        abandoned_.insert(request);
      }
      std::erase_if(askers_, [&](const auto& entry) { return entry.second == engine; });
      engine->set_life(Life::kGone);
      world_->fences().engine_gone(engine->id());
      reactor.complete(ledger::Disconnected{engine->id()});
      reactor.complete(ledger::EngineGone{engine->id()});
      break;
    case EngineDeed::kFreeze:
      engine->set_life(Life::kFrozen);
      break;
    case EngineDeed::kThaw:
      engine->set_life(Life::kAlive);
      if (engine->told_silent) {
        engine->told_silent = false;
        reactor.complete(ledger::Silence{engine->id(), ledger::Silence::Now::kSpeaking});
      }
      break;
    case EngineDeed::kLeave: {
      const ledger::Reply reply =
          demand(ledger::Leave{engine->origin({}, tenant_id(engine->spec().tenant))});
      if (!reply.status.ok()) return reply.status;
      engine->set_life(Life::kGone);
      world_->fences().engine_gone(engine->id());
      reactor.complete(ledger::EngineGone{engine->id()});
      break;
    }
    case EngineDeed::kAck:
      engine->set_acks(true);
      break;
    case EngineDeed::kNoAck:
      engine->set_acks(false);
      break;
  }
  rest();
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::add_member(const std::string& name, const std::string& member) {
  const absl::StatusOr<ScriptedEngine*> engine = speaking(name);
  if (!engine.ok()) return engine.status();
  if (!members_[name].insert(member).second) {
    return make_error(ErrorCode::kBusy, absl::StrCat("member ", member), "it is there already", "");
  }
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::kill_member(const std::string& name, const std::string& member) {
  if (members_[name].erase(member) == 0) return not_there(member, "no such member");
  return absl::OkStatus();
}

bool SimScenarioWorld::can_speak(const std::string& name) {
  const ScriptedEngine* engine = find(name);
  return engine != nullptr && engine->life() == Life::kAlive;
}

std::vector<Heard> SimScenarioWorld::heard(const std::string& name) {
  std::vector<Heard> all;
  for (const auto& engine : engines_) {
    if (engine->spec().name == name) {
      all.insert(all.end(), engine->heard().begin(), engine->heard().end());
    }
  }
  return all;
}

absl::Status SimScenarioWorld::fill_layout(const EngineSpec& spec, const Extras& extras,
                                           ledger::Event& event) {
  return std::visit(
      [&](auto& typed) -> absl::Status {
        if constexpr (requires { typed.layout; }) {
          const absl::StatusOr<ledger::LayoutRef> layout = layout_ref(spec.layout);
          if (!layout.ok()) return layout.status();
          typed.layout = *layout;
          if constexpr (requires { typed.keys; }) {
            typed.keys = keys_of(*layout, typed.tokens, extras);
          }
        }
        return absl::OkStatus();
      },
      event);
}

void SimScenarioWorld::refuse(Ticket ticket, absl::Status status) {
  const RequestId request{ticket.value};
  answers_[request] = {.request = request, .status = std::move(status)};
}

Ticket SimScenarioWorld::ask(const Caller& caller, ledger::Event event, Extras extras) {
  const RequestId request = world_->reactor().next_request();
  const Ticket ticket{request.value};
  ledger::Origin origin{.request = request, .tenant = tenant_id(caller.tenant)};
  ScriptedEngine* engine = nullptr;
  if (!caller.engine.empty()) {
    const absl::StatusOr<ScriptedEngine*> found = speaking(caller.engine);
    if (!found.ok()) {
      refuse(ticket, found.status());
      return ticket;
    }
    engine = *found;
    origin = engine->origin(request, tenant_id(engine->spec().tenant));
    if (caller.epoch) origin.epoch = Epoch{*caller.epoch};
  }
  std::visit(
      [&](auto& typed) {
        if constexpr (requires { typed.origin; }) typed.origin = origin;
      },
      event);
  if (engine != nullptr) {
    absl::Status ready = fill_layout(engine->spec(), extras, event);
    if (ready.ok() && !caller.epoch) ready = engine->prepare(event);
    if (!ready.ok()) {
      refuse(ticket, std::move(ready));
      return ticket;
    }
    askers_[request] = engine;
  }
  post(event, engine != nullptr && !std::holds_alternative<ledger::Lookup>(event));
  return ticket;
}

void SimScenarioWorld::post(const ledger::Event& event, bool from_engine) {
  if (!from_engine) {
    while (!world_->reactor().post_request(event).ok()) world_->run_until_idle();
    return;
  }
  while (world_->reactor().post_stream(event) == reactor::Posted::kFull) world_->run_until_idle();
}

std::optional<ledger::Reply> SimScenarioWorld::answer(Ticket ticket) {
  const auto found = answers_.extract(RequestId{ticket.value});
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

std::optional<ledger::Reply> SimScenarioWorld::answer_soon(Ticket ticket, Likely) {
  rest();
  return answer(ticket);
}

std::optional<ledger::Reply> SimScenarioWorld::wait(Ticket ticket, Duration patience) {
  rest();
  const Instant limit = world_->clock().now() + patience;
  while (!answers_.contains(RequestId{ticket.value}) && advance_to_next(limit)) {
  }
  return answer(ticket);
}

absl::Status SimScenarioWorld::cancel(const Caller& caller, Ticket restore) {
  ledger::CancelRestore event{.restore = RequestId{restore.value}};
  const Ticket ticket = ask(caller, event, {});
  rest();
  const std::optional<ledger::Reply> reply = answer(ticket);
  if (!reply) return make_error(ErrorCode::kInternal, "cancel", "no answer");
  return reply->status;
}

void SimScenarioWorld::reply(const ledger::Reply& reply) {
  const auto asker = askers_.find(reply.request);
  if (asker != askers_.end()) {
    asker->second->deliver(reply);
  } else if (abandoned_.erase(reply.request) == 0) {
    answers_[reply.request] = reply;
  }
}

void SimScenarioWorld::notify(const ledger::Notice& notice) {
  ScriptedEngine* engine = find(notice.engine);
  if (engine != nullptr && engine->life() != Life::kGone) engine->deliver(notice);
}

void SimScenarioWorld::share_slab(const ledger::ShareSlab& share) {
  ScriptedEngine* engine = find(share.engine);
  if (engine != nullptr && engine->life() != Life::kGone) engine->deliver(share);
}

}  // namespace memdecay::scenario
