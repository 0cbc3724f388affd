// Daemon, engines and requests of the real world. See real_world.h; operators' requests are in
// real_operate.cc, time, faults and reports in real_reports.cc.
#include "tests/scenario/real_world.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/configure.h"

namespace memdecay::scenario {
namespace {

constexpr uint32_t kFirstTenantUid = 60'000;
constexpr int kMostLooks = 2500;
constexpr auto kLook = std::chrono::milliseconds(2);

absl::Status not_there(const std::string& name, std::string there) {
  return make_error(ErrorCode::kUnavailable, absl::StrCat("engine ", name), std::move(there),
                    "attach it first");
}

std::vector<std::string> setting_words(const DaemonSpec& spec) {
  std::vector<std::string> words;
  for (const Settings& settings : {default_settings(), spec.settings}) {
    for (const auto& [key, value] : settings) {
      if ((key == "disk" || key == "remote") && value == "0") continue;
      words.push_back(absl::StrCat(key, "=", value));
    }
  }
  return words;
}

// A tenant is a user. The first one is the runner's own; the others are users that nobody has,
// which only root can be.
void give_uids(server::Config& config, std::map<std::string, uint32_t>& uids) {
  uids.clear();
  for (size_t i = 0; i < config.identities.size(); ++i) {
    if (config.identities.size() > 1 && !config.identities[i].uid) {
      config.identities[i].uid = i == 0 ? ::getuid() : kFirstTenantUid + static_cast<uint32_t>(i);
    }
    uids[config.ledger.tenants[i].name] = config.identities[i].uid.value_or(::getuid());
  }
}

// The engine's settings as words of its command line.
ChildProcess::Spec engine_command(const EngineSpec& spec, const LabDaemon& daemon,
                                  uint32_t page_tokens) {
  const Layout& layout = spec.layout;
  const LayoutGroup& group = layout.groups.front();
  ChildProcess::Spec out{.words = {program_path("memdecay-scenario-engine")},
                         .log_path = daemon.folder() + "/engines.log",
                         .uid = spec.uid,
                         .gid = spec.gid};
  const auto add = [&](const char* name, const auto& value) {
    out.words.push_back(absl::StrCat(name, "=", value));
  };
  add("dir", daemon.folder());
  add("name", spec.name);
  add("major", spec.protocol_major);
  add("minor", spec.protocol_minor);
  add("daemon_page_tokens", page_tokens);
  add("model", layout.model);
  add("weights", layout.weights_fingerprint);
  add("revision", layout.revision);
  add("adapter", layout.adapter);
  add("tokenizer", layout.tokenizer_fingerprint);
  add("dtype", layout.dtype);
  add("quantization", layout.quantization);
  add("scales", layout.scales);
  add("packing", group.packing);
  add("layers", group.layers);
  add("kv_heads", group.kv_heads);
  add("head_dim", group.head_dim);
  add("page_tokens", group.page_tokens);
  add("window", group.window);
  add("page_bytes", group.page_bytes);
  add("tp", layout.tensor_parallel);
  add("inv_freq", layout.rope.inv_freq_hash);
  add("rope", layout.rope.kind);
  add("pairing", layout.rope.pairing);
  add("n_rot", layout.rope.n_rot);
  add("attention_factor", layout.rope.attention_factor);
  add("producer", layout.producer);
  return out;
}

}  // namespace

RealWorld::RealWorld(Tracer trace) : trace_(std::move(trace)) {
  ::signal(SIGPIPE, SIG_IGN);  // an engine that has died is an answer, not our end
}

RealWorld::~RealWorld() {
  // Engines first: what they still wait for ends with them.
  engines_.clear();
  if (daemon_) daemon_->kill();
  for (auto& [ticket, asked] : asked_) {
    if (asked->thread.joinable()) asked->thread.join();
  }
}

absl::Status RealWorld::check_config(const DaemonSpec& spec) { return make_config(spec).status(); }

absl::Status RealWorld::start(const DaemonSpec& spec) {
  engines_.clear();
  admin_.reset();
  daemon_.reset();
  absl::StatusOr<server::Config> config = make_config(spec);
  if (!config.ok()) return config.status();
  give_uids(*config, tenant_uids_);
  silent_ = config->limits.silent;
  absl::StatusOr<std::unique_ptr<LabDaemon>> daemon = LabDaemon::start(*std::move(config));
  if (!daemon.ok()) return daemon.status();
  daemon_ = *std::move(daemon);
  absl::StatusOr<std::unique_ptr<RealAdmin>> admin = RealAdmin::connect(daemon_->folder());
  if (!admin.ok()) return admin.status();
  admin_ = *std::move(admin);
  changed();
  return stand();
}

absl::Status RealWorld::reload(const DaemonSpec& spec) {
  v1::ReloadRequest request;
  for (const std::string& word : setting_words(spec)) request.add_settings(word);
  v1::ReloadResponse response;
  changed();
  return admin_->call(request, response);
}

absl::Status RealWorld::daemon(DaemonDeed deed) {
  changed();
  if (deed == DaemonDeed::kKill) {
    daemon_->kill();
    return absl::OkStatus();
  }
  if (deed == DaemonDeed::kStop) return daemon_->stop();
  if (absl::Status started = daemon_->start_again(); !started.ok()) return started;
  absl::StatusOr<std::unique_ptr<RealAdmin>> admin = RealAdmin::connect(daemon_->folder());
  if (!admin.ok()) return admin.status();
  admin_ = *std::move(admin);
  return stand();
}

void RealWorld::changed() {
  moved_ = true;
  tables_.clear();
}

RealWorld::Engine* RealWorld::find(const std::string& name) {
  const auto found = engines_.find(name);
  return found == engines_.end() ? nullptr : &found->second;
}

absl::StatusOr<RealWorld::Engine*> RealWorld::speaking(const std::string& name) {
  Engine* engine = find(name);
  if (engine == nullptr) return not_there(name, "never attached");
  if (engine->life == Life::kGone) return not_there(name, "dead");
  if (engine->life == Life::kFrozen) return not_there(name, "frozen");
  return engine;
}

bool RealWorld::can_speak(const std::string& name) {
  const Engine* engine = find(name);
  return engine != nullptr && engine->life == Life::kAlive;
}

absl::StatusOr<WireWords> RealWorld::command(const std::string& name, const std::string& line) {
  const absl::StatusOr<Engine*> engine = speaking(name);
  if (!engine.ok()) return engine.status();
  if (trace_) trace_(absl::StrCat(name, " < ", line.substr(0, 160)));
  return (*engine)->process->ask(line, kCommand);
}

absl::Status RealWorld::attach(const EngineSpec& spec) {
  if (const Engine* before = find(spec.name); before != nullptr && before->life != Life::kGone) {
    return make_error(ErrorCode::kBusy, absl::StrCat("engine ", spec.name), "it is attached", "");
  }
  ChildProcess::Spec command = engine_command(spec, *daemon_, 0);
  if (!spec.tenant.empty()) {
    const auto uid = tenant_uids_.find(spec.tenant);
    if (uid == tenant_uids_.end()) {
      return make_error(ErrorCode::kPermission, absl::StrCat("tenant ", spec.tenant),
                        "no such tenant", "name one that `tenant` made");
    }
    if (!command.uid && uid->second != ::getuid()) {
      command.uid = uid->second;
      command.gid = kTenantGid;
    }
  }
  absl::StatusOr<std::unique_ptr<EngineProcess>> process = EngineProcess::start(command);
  if (!process.ok()) return process.status();
  std::vector<Heard> heard;
  if (Engine* before = find(spec.name)) heard = std::move(before->heard);
  const uint64_t id = (*process)->engine_id();
  engines_[spec.name] = {
      .spec = spec, .process = *std::move(process), .heard = std::move(heard), .id = id};
  changed();
  return wait_for_lives();
}

// How many engines the daemon must see in each state. The runner itself is an operator.
std::map<std::string, int> RealWorld::known_lives() const {
  std::map<std::string, int> lives = {{"here", 0}, {"disconnected", 0}, {"frozen", 0}};
  for (const auto& [name, engine] : engines_) {
    if (engine.life == Life::kDetached) {
      ++lives["disconnected"];
    } else if (engine.life != Life::kGone) {
      ++lives["here"];
      if (engine.life == Life::kFrozen) ++lives["frozen"];
    }
  }
  return lives;
}

// The daemon hears of a closed socket or a dead process a little later than the script.
absl::Status RealWorld::wait_for_lives() {
  if (!daemon_->running()) return absl::OkStatus();
  const std::map<std::string, int> wanted = known_lives();
  const int overdue = overdue_silences();
  std::string seen;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (int look = 0; look < kMostLooks; ++look) {
    const absl::StatusOr<ledger::StatusReport> report = status();
    if (!report.ok()) return report.status();
    const auto count = [&](EngineState state) {
      return static_cast<int>(report->engines[static_cast<size_t>(state)]);
    };
    const int here = count(EngineState::kAlive) + count(EngineState::kSilent);
    const int silent = count(EngineState::kSilent);
    if (here == wanted.at("here") && silent <= wanted.at("frozen") && silent >= overdue &&
        count(EngineState::kDisconnected) == wanted.at("disconnected")) {
      return absl::OkStatus();
    }
    seen = absl::StrCat(here, " connected, ", silent, " of them silent, ",
                        count(EngineState::kDisconnected), " disconnected");
    never.wait_for(lock, kLook);
  }
  return make_error(
      ErrorCode::kInternal, "the daemon's engines", seen,
      absl::StrCat("expected ", wanted.at("here"), " connected, ", overdue, " to ",
                   wanted.at("frozen"), " silent, ", wanted.at("disconnected"), " disconnected"));
}

absl::Status RealWorld::engine(const std::string& name, EngineDeed deed) {
  Engine* engine = find(name);
  if (engine == nullptr) return not_there(name, "never attached");
  changed();
  switch (deed) {
    case EngineDeed::kDetach:
    case EngineDeed::kReattach:
    case EngineDeed::kLeave: {
      const char* line = deed == EngineDeed::kDetach     ? "detach"
                         : deed == EngineDeed::kReattach ? "reattach"
                                                         : "leave";
      const absl::StatusOr<WireWords> done = command(name, line);
      if (!done.ok()) return done.status();
      engine->life = deed == EngineDeed::kDetach     ? Life::kDetached
                     : deed == EngineDeed::kReattach ? Life::kAlive
                                                     : Life::kGone;
      return wait_for_lives();
    }
    case EngineDeed::kKill:
      heard(name);
      engine->process->process().signal(SIGKILL);
      engine->process->process().wait();
      engine->life = Life::kGone;
      return wait_for_lives();
    case EngineDeed::kFreeze:
      heard(name);
      engine->process->process().signal(SIGSTOP);
      engine->life = Life::kFrozen;
      engine->frozen_at = passed_;
      return absl::OkStatus();
    case EngineDeed::kThaw:
      engine->process->process().signal(SIGCONT);
      engine->life = Life::kAlive;
      // An engine that goes on says something: the release of a lease that it does not have.
      command(name, "release lease=0").status().IgnoreError();
      return wait_for_lives();
    case EngineDeed::kAck:
      engine->acks = Engine::Acks::kAutomatic;
      return command(name, "ack manual=0").status();
    case EngineDeed::kNoAck:
      engine->acks = Engine::Acks::kManual;
      return command(name, "ack manual=1").status();
  }
  return absl::OkStatus();
}

absl::Status RealWorld::add_member(const std::string&, const std::string&) {
  return make_error(ErrorCode::kUnsupported, "members", "the engine process has one");
}

absl::Status RealWorld::kill_member(const std::string&, const std::string&) {
  return make_error(ErrorCode::kUnsupported, "members", "the engine process has one");
}

Ticket RealWorld::ask(const Caller& caller, ledger::Event event, Extras extras) {
  changed();
  const Ticket ticket{++last_ticket_};
  newest_ = ticket;
  const auto asked = std::make_shared<Asked>();
  asked_[ticket] = asked;
  if (const auto* unpark = std::get_if<ledger::Unpark>(&event)) asked->unparks = unpark->session;
  if (caller.engine.empty()) {
    ask_ours(asked, std::move(event), caller.tenant);
    return ticket;
  }
  asked->engine = caller.engine;
  const absl::StatusOr<Engine*> engine = speaking(caller.engine);
  const absl::StatusOr<WireCall> call = encode(event, extras);
  if (!engine.ok() || !call.ok()) {
    asked->done = true;
    asked->reply.status = engine.ok() ? call.status() : engine.status();
    return ticket;
  }
  if (trace_) trace_(absl::StrCat(caller.engine, " < ", call->line.substr(0, 160)));
  asked->process = (*engine)->process.get();
  asked->decode = call->decode;
  asked->request = asked->process->request(call->line);
  return ticket;
}

std::optional<ledger::Reply> RealWorld::take(Ticket ticket) {
  const auto found = asked_.extract(ticket);
  if (found.empty()) return std::nullopt;
  Asked& asked = *found.mapped();
  if (asked.thread.joinable()) asked.thread.join();  // it has nothing left to do
  return std::move(asked.reply);
}

std::optional<ledger::Reply> RealWorld::answer(Ticket ticket) {
  return wait_awake(ticket, Duration{});
}

std::optional<ledger::Reply> RealWorld::wait_awake(Ticket ticket, Duration patience) {
  const auto found = asked_.find(ticket);
  if (found == asked_.end()) return std::nullopt;
  Asked& asked = *found->second;
  if (asked.process != nullptr) {
    const std::optional<WireWords> words = asked.process->wait(asked.request, patience);
    if (!words) return std::nullopt;
    if (trace_) trace_(absl::StrCat(asked.engine, " > ", words->plain()[1], " ", words->message()));
    asked.reply.status = answered_status(*words);
    if (asked.reply.status.ok()) asked.reply.body = asked.decode(*words);
    changed();
    return take(ticket);
  }
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience.nanoseconds);
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_until(lock, until, [&] { return asked.done; })) return std::nullopt;
  lock.unlock();
  return take(ticket);
}

absl::Status RealWorld::cancel(const Caller& caller, Ticket restore) {
  changed();
  const auto asked = asked_.find(restore);
  if (asked == asked_.end() || asked->second->process == nullptr) {
    return make_error(ErrorCode::kNotFound, "cancel", "that restore is over", "");
  }
  return command(caller.engine, absl::StrCat("cancel of=", asked->second->request)).status();
}

}  // namespace memdecay::scenario
