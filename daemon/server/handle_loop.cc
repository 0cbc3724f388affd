// Sockets of the handle server: accepting, reading, writing, closing (see handle_loop.h).
#include "daemon/server/handle_loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

constexpr uint32_t kMaxRefusedFrames = 64;
constexpr int kTickMs = 100;
constexpr int kMaxReadsAVisit = 16;  // then the others get their turn

// epoll keys: the upper byte says what it is.
constexpr uint64_t kKindShift = 56;
constexpr uint64_t kListening = uint64_t{1} << kKindShift;
constexpr uint64_t kWake = uint64_t{2} << kKindShift;
constexpr uint64_t kConnection = uint64_t{3} << kKindShift;
constexpr uint64_t kProcess = uint64_t{4} << kKindShift;
constexpr uint64_t kKindMask = uint64_t{0xff} << kKindShift;
constexpr uint64_t kMemberBits = 16;
static_assert(base::limits::kMembersAnEngine <= (1u << kMemberBits));

absl::Status errno_status(const char* asked) {
  return make_error(ErrorCode::kUnavailable, asked, std::strerror(errno), "");
}

}  // namespace

uint64_t HandleLoop::process_key(EngineId engine, uint32_t member) {
  return kProcess | (engine.value << kMemberBits) | member;
}

absl::Status HandleLoop::prepare() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno_status("make an epoll descriptor");
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return errno_status("make an event descriptor");
  watch(wake_.get(), kWake, EPOLLIN, EPOLL_CTL_ADD);
  return absl::OkStatus();
}

void HandleLoop::open_door() { watch(listening_.get(), kListening, EPOLLIN, EPOLL_CTL_ADD); }

void HandleLoop::watch(int fd, uint64_t key, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  MEMDECAY_CHECK(::epoll_ctl(epoll_.get(), operation, fd, &event) == 0);
}

void HandleLoop::post(Task task) {
  {
    const absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void HandleLoop::stop() {
  {
    const absl::MutexLock lock(&mutex_);
    running_ = Run::kStopping;
  }
  post([] {});
}

void HandleLoop::run_tasks() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
  std::vector<Task> tasks;
  {
    const absl::MutexLock lock(&mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task();
}

void HandleLoop::run() {
  last_tick_ = clock_.now();
  std::array<epoll_event, 64> events{};
  while (true) {
    {
      const absl::MutexLock lock(&mutex_);
      if (running_ == Run::kStopping) break;
    }
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kTickMs);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      const uint64_t key = event.data.u64 & ~kKindMask;
      switch (event.data.u64 & kKindMask) {
        case kListening:
          accept_all();
          break;
        case kWake:
          run_tasks();
          break;
        case kConnection:
          on_ready(key, event.events);
          break;
        case kProcess:
          on_process_gone(EngineId{key >> kMemberBits},
                          static_cast<uint32_t>(key & ((1u << kMemberBits) - 1)));
          break;
        default:
          break;
      }
    }
    tick();
  }
  run_tasks();
  connections_.clear();
}

void HandleLoop::accept_all() {
  while (listening_) {
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;  // EAGAIN, or out of descriptors: the next round tries again
    absl::StatusOr<Peer> peer = peer_of(socket.get());
    if (!peer.ok()) continue;
    const ConnectionId id = ++last_connection_;
    Connection& connection = connections_[id];
    connection.socket = std::move(socket);
    connection.peer = *std::move(peer);
    connection.since = clock_.now();
    watch(connection.socket.get(), kConnection | id, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
    if (connections_.size() > options_.config.limits.connections) {
      refuse(id, make_error({.code = ErrorCode::kUnavailable,
                             .asked = "one more handle connection",
                             .there = absl::StrCat(options_.config.limits.connections,
                                                   " are open (limits.connections)"),
                             .todo = "try again later",
                             .retry_after_ms = 1000}));
    }
  }
}

void HandleLoop::on_ready(ConnectionId id, uint32_t events) {
  if (!connections_.contains(id)) return;
  if ((events & EPOLLOUT) != 0) flush(id);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) read_from(id);
}

void HandleLoop::read_from(ConnectionId id) {
  for (int reads = 0; reads < kMaxReadsAVisit; ++reads) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const auto progress = connection.reader.read_some(connection.socket.get());
    if (connection.stage == Connection::Stage::kClosing) {
      if (progress.ok() && *progress == FrameReader::Progress::kGotBytes) continue;
      return progress.ok() && *progress == FrameReader::Progress::kWouldBlock ? void() : close(id);
    }
    if (!progress.ok()) {
      // A reset says nothing about the peer's manners; bad descriptors do.
      if (error_code(progress.status()) == ErrorCode::kUnavailable) return close(id);
      return refuse_frame(id, progress.status(), Then::kClose);
    }
    if (*progress == FrameReader::Progress::kWouldBlock) return;
    if (*progress == FrameReader::Progress::kEndOfFile) {
      if (connection.reader.pending_bytes() > 0) {
        edge_.errors().count(make_error(ErrorCode::kInvalidArgument, "frame", "truncated", ""));
      }
      return close(id);
    }
    while (connections_.contains(id) && connection.stage != Connection::Stage::kClosing) {
      absl::StatusOr<std::optional<ReceivedFrame>> frame = connection.reader.next();
      if (!frame.ok()) {
        const Then then = connection.reader.broken() ? Then::kClose : Then::kKeep;
        refuse_frame(id, frame.status(), then);
        continue;
      }
      if (!frame->has_value()) break;
      on_frame(id, **std::move(frame));
    }
  }
}

void HandleLoop::on_frame(ConnectionId id, ReceivedFrame frame) {
  Connection& connection = connections_.at(id);
  if (connection.engine) edge_.engines().heard(connection.engine);
  if (const auto* hello = std::get_if<Hello>(&frame.frame)) return on_hello(id, *hello);
  if (std::holds_alternative<Goodbye>(frame.frame)) return on_goodbye(id);
  if (std::holds_alternative<HandBack>(frame.frame)) {
    return refuse_frame(id,
                        make_error(ErrorCode::kUnsupported, "hand a slab back",
                                   "not in this build yet", "close the descriptor"),
                        Then::kKeep);
  }
  refuse_frame(id,
               make_error(ErrorCode::kInvalidArgument,
                          absl::StrCat("frame of type ", static_cast<int>(frame_type(frame.frame))),
                          "only the daemon sends these", "see proto/README.md, Handle socket"),
               Then::kKeep);
}

void HandleLoop::send(ConnectionId id, const Frame& frame, std::vector<UniqueFd> fds) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.stage == Connection::Stage::kClosing) return;
  const absl::Status queued = found->second.writer.queue(frame, std::move(fds));
  if (!queued.ok()) {
    edge_.errors().count(queued);
    log_.warning("a member does not read its handle socket",
                 {{"engine", absl::StrCat(found->second.engine.value)}});
    return close(id);
  }
  flush(id);
}

void HandleLoop::flush(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const auto progress = connection.writer.flush(connection.socket.get());
  if (!progress.ok()) return close(id);
  const bool all = *progress == FrameWriter::Progress::kAllSent;
  if (all && connection.stage == Connection::Stage::kClosing) return close(id);
  const auto wants = all ? Connection::Wants::kRead : Connection::Wants::kReadWrite;
  if (wants == connection.wants) return;
  connection.wants = wants;
  const uint32_t events = EPOLLIN | EPOLLRDHUP | (all ? 0u : static_cast<uint32_t>(EPOLLOUT));
  watch(connection.socket.get(), kConnection | id, events, EPOLL_CTL_MOD);
}

void HandleLoop::refuse(ConnectionId id, const absl::Status& status) {
  edge_.errors().count(status);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  std::string text(status.message());
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (text.size() > kMaxFrameTextBytes) text.resize(kMaxFrameTextBytes);
  log_.info("refused at the handle socket", {{"uid", absl::StrCat(found->second.peer.uid)},
                                             {"pid", absl::StrCat(found->second.peer.pid)},
                                             {"why", text}});
  send(id, Refused{.code = error_code(status), .text = std::move(text)});
  const auto still = connections_.find(id);
  if (still == connections_.end()) return;
  still->second.stage = Connection::Stage::kClosing;
  still->second.since = clock_.now();
  flush(id);
}

void HandleLoop::refuse_frame(ConnectionId id, const absl::Status& status, Then then) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (then == Then::kClose || ++found->second.refused_frames > kMaxRefusedFrames) {
    return refuse(id, status);
  }
  edge_.errors().count(status);
  std::string text(status.message());
  if (text.size() > kMaxFrameTextBytes) text.resize(kMaxFrameTextBytes);
  send(id, Refused{.code = error_code(status), .text = std::move(text)});
}

void HandleLoop::close(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection connection = std::move(found->second);
  connections_.erase(found);
  on_closed(connection);
}

void HandleLoop::tick() {
  const Instant now = clock_.now();
  if (now - last_tick_ < Duration::from_milliseconds(kTickMs)) return;
  last_tick_ = now;
  std::vector<ConnectionId> late;
  for (const auto& [id, connection] : connections_) {
    const bool waits = connection.stage == Connection::Stage::kHello ||
                       connection.stage == Connection::Stage::kClosing;
    if (waits && now - connection.since > options_.config.limits.hello) late.push_back(id);
  }
  for (const ConnectionId id : late) {
    edge_.errors().count(make_error(ErrorCode::kDeadline, "hello", "none came", ""));
    close(id);
  }
  EngineTable& table = edge_.engines();
  for (const auto& [engine, quiet] : table.quiet()) {
    bool silent = quiet == EngineTable::Quiet::kOwesAnswer;
    const auto known = engines_.find(engine);
    if (known == engines_.end() || known->second.link == Engine::Link::kDisconnected) continue;
    for (const auto& [number, member] : known->second.members) {
      silent = silent || process_state(member.pid) == ProcessState::kStopped;
    }
    if (silent) table.flag_silent(engine);
  }
  table.close_buried();
}

void HandleLoop::send_slab(EngineId engine, SlabHandle slab) {
  const auto found = engines_.find(engine);
  if (found == engines_.end()) return;
  std::vector<ConnectionId> members;
  for (const auto& [number, member] : found->second.members) {
    if (member.connection != 0) members.push_back(member.connection);
  }
  for (const ConnectionId id : members) {
    UniqueFd copy(::fcntl(slab.descriptor.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) {
      edge_.errors().count(errno_status("copy a slab's descriptor"));
      continue;
    }
    std::vector<UniqueFd> fds;
    fds.push_back(std::move(copy));
    send(id, slab.frame, std::move(fds));
  }
}

void HandleLoop::cut(EngineId engine) {
  const auto found = engines_.find(engine);
  if (found == engines_.end()) return;
  std::vector<ConnectionId> members;
  for (const auto& [number, member] : found->second.members) {
    if (member.connection != 0) members.push_back(member.connection);
  }
  const absl::Status why =
      make_error(ErrorCode::kUnavailable, "keep the engine attached", "it does not read its stream",
                 "read without pause; attach again");
  for (const ConnectionId id : members) refuse(id, why);
}

}  // namespace memdecay::server
