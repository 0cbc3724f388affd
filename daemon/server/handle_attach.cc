// Members and engines of the handle server: attaching, joining, leaving, dying (see handle_loop.h).
#include <sys/epoll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/server/handle_loop.h"
#include "daemon/server/real_random.h"
#include "proto/contract/error.h"

namespace memdecay::server {

absl::Status HandleLoop::check_hello(const Hello& hello) const {
  const Config& config = options_.config;
  if (hello.page_tokens != 0 && hello.page_tokens != config.ledger.page_tokens) {
    return make_error(ErrorCode::kLayoutRejected,
                      absl::StrCat("pages of ", hello.page_tokens, " tokens"),
                      absl::StrCat("this daemon has pages of ", config.ledger.page_tokens),
                      "use its page size or change page_tokens of the daemon");
  }
  if (hello.page_bytes != 0 && config.page_bytes != 0 && hello.page_bytes != config.page_bytes) {
    return make_error(ErrorCode::kLayoutRejected,
                      absl::StrCat("pages of ", hello.page_bytes, " bytes"),
                      absl::StrCat("this daemon has pages of ", config.page_bytes),
                      "use another layout or change page_bytes of the daemon");
  }
  return absl::OkStatus();
}

void HandleLoop::on_hello(ConnectionId id, const Hello& hello) {
  Connection& connection = connections_.at(id);
  if (connection.stage != Connection::Stage::kHello) {
    return refuse_frame(
        id,
        make_error(ErrorCode::kInvalidArgument, "say Hello again", "this connection has said it",
                   "open another connection for another member"),
        Then::kKeep);
  }
  const absl::StatusOr<ProtocolVersion> version = agree_version(hello.major, hello.minor);
  if (!version.ok()) return refuse(id, version.status());
  const absl::StatusOr<TenantId> tenant =
      tenant_of(connection.peer, options_.config, options_.own_uid);
  if (!tenant.ok()) return refuse(id, tenant.status());
  if (absl::Status status = check_hello(hello); !status.ok()) return refuse(id, status);
  if (!listening_) {
    return refuse(id, make_error({.code = ErrorCode::kUnavailable,
                                  .asked = "attach",
                                  .there = "the daemon is stopping",
                                  .todo = "try again",
                                  .retry_after_ms = 1000}));
  }
  connection.stage = Connection::Stage::kAttaching;
  const Attaching attaching{.connection = id, .tenant = *tenant, .version = *version};
  hello.engine ? attach_known(attaching, hello) : attach_new(attaching, hello);
}

void HandleLoop::attach_new(const Attaching& attaching, const Hello& hello) {
  const absl::StatusOr<Token> token = random_token();
  if (!token.ok()) return refuse(attaching.connection, token.status());
  const uint32_t uid = connections_.at(attaching.connection).peer.uid;
  const RequestId request =
      edge_.expect([this, attaching, uid, secret = *token](const ledger::Reply& reply) {
        Attached attached{.status = reply.status};
        const auto* const body = std::get_if<ledger::AttachReply>(&reply.body);
        if (reply.status.ok() && body != nullptr) {
          const Caller caller{body->engine, body->epoch, attaching.tenant, uid};
          // Known before anything can be sent to it: effects that follow find the engine.
          edge_.engines().add(caller, secret);
          attached = gather(caller, secret);
        }
        post([this, attaching, attached = std::move(attached)]() mutable {
          finish_attach(attaching, std::move(attached));
        });
      });
  std::string name = hello.engine_name.empty() ? absl::StrCat("engine") : hello.engine_name;
  edge_.ask(request,
            ledger::Event(ledger::Attach{.origin = {.request = request, .tenant = attaching.tenant},
                                         .name = std::move(name),
                                         .purpose = hello.role == MemberRole::kOperator
                                                        ? ledger::Purpose::kOperate
                                                        : ledger::Purpose::kDecode}));
}

void HandleLoop::attach_known(const Attaching& attaching, const Hello& hello) {
  const absl::StatusOr<Caller> caller = edge_.engines().authenticate(hello.engine, hello.token);
  if (!caller.ok()) return refuse(attaching.connection, caller.status());
  const auto known = engines_.find(hello.engine);
  if (caller->tenant != attaching.tenant || known == engines_.end()) {
    return refuse(
        attaching.connection,
        make_error(ErrorCode::kPermission, absl::StrCat("join engine ", hello.engine.value),
                   "it belongs to another tenant or is gone", "attach as a new engine"));
  }
  if (caller->epoch != hello.epoch) {
    return refuse(attaching.connection,
                  make_error(ErrorCode::kStaleEpoch, absl::StrCat("epoch ", hello.epoch.value),
                             absl::StrCat("the engine is at epoch ", caller->epoch.value),
                             "attach as a new engine"));
  }
  if (known->second.members.size() >= base::limits::kMembersAnEngine) {
    return refuse(attaching.connection,
                  make_error(ErrorCode::kResourceExhausted, "one more member",
                             absl::StrCat("the engine has ", known->second.members.size()),
                             "attach as another engine"));
  }
  if (known->second.link == Engine::Link::kConnected) {
    return join(attaching, *caller, hello.token);
  }
  // It was disconnected: its sessions go on with the ledger's consent.
  const RequestId request = edge_.expect(
      [this, attaching, caller = *caller, token = hello.token](const ledger::Reply& reply) mutable {
        Attached attached{.status = reply.status};
        if (reply.status.ok()) {
          if (const auto* body = std::get_if<ledger::AttachReply>(&reply.body)) {
            caller.epoch = body->epoch;
          }
          edge_.engines().set_epoch(caller.engine, caller.epoch);
          attached = gather(caller, token);
        }
        post([this, attaching, attached = std::move(attached)]() mutable {
          finish_attach(attaching, std::move(attached));
        });
      });
  // Behind the Disconnected that may still be on its way.
  edge_.engines().take_back(caller->engine, ledger::Reattach{.origin = {.request = request,
                                                                        .tenant = caller->tenant,
                                                                        .engine = caller->engine,
                                                                        .epoch = caller->epoch}});
}

void HandleLoop::join(const Attaching& attaching, const Caller& caller, const Token& token) {
  edge_.reactor().inspect([this, attaching, caller, token](ledger::Ledger&) {
    post([this, attaching, attached = gather(caller, token)]() mutable {
      finish_attach(attaching, std::move(attached));
    });
  });
}

HandleLoop::Attached HandleLoop::gather(const Caller& caller, const Token& token) {
  Attached attached{.engine = caller.engine, .epoch = caller.epoch, .token = token};
  absl::StatusOr<ShadowHandle> shadow = memory_.export_shadow(caller.tenant);
  if (shadow.ok()) {
    attached.shadow = *std::move(shadow);
  } else {
    edge_.errors().count(shadow.status());
  }
  attached.slabs = edge_.slabs_for_member(caller.engine);
  return attached;
}

// A process that comes back gets its old number and timeline: fences that it has promised still
// mean the same words.
uint32_t HandleLoop::place_member(Engine& engine, Connection& connection, ConnectionId id) {
  for (auto& [number, member] : engine.members) {
    if (member.pid != connection.peer.pid || member.connection != 0) continue;
    member.connection = id;
    return number;
  }
  uint32_t number = 0;
  while (engine.members.contains(number)) ++number;
  Member& member = engine.members[number];
  member.pid = connection.peer.pid;
  member.death = connection.peer.death;
  member.pidfd = std::move(connection.peer.pidfd);
  member.connection = id;
  return number;
}

void HandleLoop::finish_attach(const Attaching& attaching, Attached attached) {
  const ConnectionId id = attaching.connection;
  const auto found = connections_.find(id);
  if (!attached.status.ok()) {
    if (found != connections_.end()) refuse(id, attached.status);
    return;
  }
  const auto [at, fresh] = engines_.try_emplace(attached.engine);
  Engine& engine = at->second;
  if (found == connections_.end() || found->second.stage != Connection::Stage::kAttaching) {
    // It hung up while the ledger decided.
    if (!fresh) engine.link = Engine::Link::kConnected;
    settle(attached.engine);
    return;
  }
  Connection& connection = found->second;
  const size_t members_before = engine.members.size();
  const uint32_t number = place_member(engine, connection, id);
  engine.link = Engine::Link::kConnected;
  connection.stage = Connection::Stage::kMember;
  connection.engine = attached.engine;
  connection.member = number;
  const Member& member = engine.members.at(number);
  if (engine.members.size() > members_before && member.pidfd) {
    watch(member.pidfd.get(), process_key(attached.engine, number), EPOLLIN, EPOLL_CTL_ADD);
  }
  absl::StatusOr<UniqueFd> timeline = memory_.timeline(attached.engine, number);
  if (!timeline.ok()) return refuse(id, timeline.status());
  log_.info("attached", {{"engine", absl::StrCat(attached.engine.value)},
                         {"member", absl::StrCat(number)},
                         {"pid", absl::StrCat(member.pid)},
                         {"tenant", absl::StrCat(attaching.tenant.value)}});

  send(id, Welcome{.engine = attached.engine,
                   .epoch = attached.epoch,
                   .token = attached.token,
                   .member = number,
                   .major = attaching.version.major,
                   .minor = attaching.version.minor,
                   .death_confirmation = member.death,
                   .control_path = options_.control_path});
  const auto send_one = [this, id](const Frame& frame, UniqueFd descriptor) {
    std::vector<UniqueFd> fds;
    fds.push_back(std::move(descriptor));
    send(id, frame, std::move(fds));
  };
  send_one(TimelineFd{.member = number}, *std::move(timeline));
  if (attached.shadow.has_value()) {
    send_one(attached.shadow->frame, std::move(attached.shadow->descriptor));
  }
  for (SlabHandle& slab : attached.slabs) send_one(slab.frame, std::move(slab.descriptor));
}

void HandleLoop::on_goodbye(ConnectionId id) {
  const Connection& connection = connections_.at(id);
  const auto found = engines_.find(connection.engine);
  if (found != engines_.end()) {
    size_t connected = 0;
    for (const auto& [number, member] : found->second.members) {
      if (member.connection != 0) ++connected;
    }
    const absl::StatusOr<Caller> caller = edge_.engines().find(connection.engine);
    if (connected == 1 && caller.ok()) {
      edge_.engines().post_behind(connection.engine,
                                  ledger::Leave{.origin = {.tenant = caller->tenant,
                                                           .engine = caller->engine,
                                                           .epoch = caller->epoch}});
      edge_.engines().leave(connection.engine);
    }
  }
  close(id);
}

void HandleLoop::on_closed(const Connection& connection) {
  const auto found = engines_.find(connection.engine);
  if (found == engines_.end()) return;
  const auto member = found->second.members.find(connection.member);
  if (member == found->second.members.end()) return;
  member->second.connection = 0;
  // Nothing else can tell that the process is gone.
  if (member->second.death == DeathConfirmation::kSocketOnly) {
    found->second.members.erase(member);
  }
  settle(connection.engine);
}

void HandleLoop::on_process_gone(EngineId engine, uint32_t member) {
  const auto found = engines_.find(engine);
  if (found == engines_.end()) return;
  const auto gone = found->second.members.find(member);
  if (gone == found->second.members.end()) return;
  const ConnectionId connection = gone->second.connection;
  found->second.members.erase(gone);  // closes the pidfd, which leaves epoll with it
  if (connection != 0) {
    // A child of it may hold the socket open; it is no member.
    connections_.erase(connection);
  }
  settle(engine);
}

// What an engine is after one of its members changed.
void HandleLoop::settle(EngineId engine) {
  const auto found = engines_.find(engine);
  if (found == engines_.end()) return;
  bool connected = false;
  for (const auto& [number, member] : found->second.members) {
    connected = connected || member.connection != 0;
  }
  if (connected) return;
  if (!found->second.members.empty()) {
    if (found->second.link == Engine::Link::kDisconnected) return;
    found->second.link = Engine::Link::kDisconnected;
    log_.info("disconnected", {{"engine", absl::StrCat(engine.value)}});
    edge_.engines().post_behind(engine, ledger::Disconnected{engine});
    return;
  }
  engines_.erase(found);
  log_.info("gone", {{"engine", absl::StrCat(engine.value)}});
  edge_.engines().bury(engine);
}

}  // namespace memdecay::server
