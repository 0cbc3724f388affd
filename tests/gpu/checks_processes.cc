// Memory shared by two processes, one of which is killed: who keeps it alive, and when it is free.
// The other process is this program started anew (CUDA does not outlive a fork), with a socket.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "cuda/blocking_mover.h"
#include "cuda/driver/context.h"
#include "tests/gpu/checks.h"

namespace memdecay::gpu {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kSlabBytes = uint64_t{256} << 20;
constexpr unsigned char kMark = 0x77;
constexpr std::chrono::seconds kPatience{20};

// One byte with room for one descriptor beside it. Stays where it was made: it points into itself.
struct DescriptorMessage {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  DescriptorMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

bool send_descriptor(int socket, int descriptor) {
  DescriptorMessage out;
  cmsghdr* header = CMSG_FIRSTHDR(&out.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &out.message, 0) == 1;
}

cuda::Fd receive_descriptor(int socket) {
  DescriptorMessage in;
  if (::recvmsg(socket, &in.message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&in.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return cuda::Fd(descriptor);
}

cuda::BlockingMover::Make movers_of(cuda::Device& device) {
  return [&device](cuda::MoverOptions options, cuda::MoverCallback completed) {
    return device.create_mover(options, std::move(completed));
  };
}

}  // namespace

int import_and_stay(const Target& target, int socket) {
  char answer = 'e';
  cuda::Fd descriptor = receive_descriptor(socket);
  const auto device = target.device(0);
  if (device.ok() && descriptor) {
    const auto mapping = (*device)->map(std::move(descriptor), kSlabBytes, cuda::Access::kReadOnly);
    std::byte seen{};
    cuda::BlockingMover mover(movers_of(**device));
    if (mapping.ok() &&
        mover.run({.from = mapping->address() + kSlabBytes - 1, .to = &seen, .bytes = 1})
            .status.ok()) {
      answer = seen == std::byte{kMark} ? 'y' : 'n';
    }
    (void)!::write(socket, &answer, 1);
    while (true) ::pause();
  }
  (void)!::write(socket, &answer, 1);
  return 1;
}

namespace {

std::optional<uint64_t> free_bytes(const cuda::Gpu& gpu) {
  cuda::Context context(gpu);
  size_t free_now = 0;
  size_t total = 0;
  if (!context.begin().ok()) return std::nullopt;
  if (!gpu.call(gpu.api().mem_get_info, &free_now, &total).ok()) return std::nullopt;
  return free_now;
}

// Seconds until at least `wanted` bytes are free; negative: not within the patience.
double wait_for_free(const cuda::Gpu& gpu, uint64_t wanted) {
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < kPatience) {
    const std::optional<uint64_t> now = free_bytes(gpu);
    if (now && *now >= wanted) {
      return std::chrono::duration<double>(steady_clock::now() - begin).count();
    }
  }
  return -1;
}

absl::Status owner_and_importer(const Target& target, int socket, pid_t child, Json& report) {
  const auto gpu = target.open();
  const auto device = target.device(kSlabBytes);
  if (!gpu.ok()) return gpu.status();
  if (!device.ok()) return device.status();
  const std::byte mark{kMark};
  std::optional<cuda::BlockingMover> mover(std::in_place, movers_of(**device));
  auto slab = (*device)->create_slab(kSlabBytes);
  if (!slab.ok()) return slab.status();
  const std::optional<uint64_t> with_slab = free_bytes(**gpu);
  if (!with_slab) return absl::InternalError("cuMemGetInfo does not answer");
  std::byte* const last = slab->address() + kSlabBytes - 1;
  if (auto done = mover->run({.from = &mark, .to = last, .bytes = 1}); !done.status.ok()) {
    return done.status;
  }
  auto descriptor = (*device)->export_slab(*slab, cuda::Access::kReadOnly);
  if (!descriptor.ok()) return descriptor.status();
  send_descriptor(socket, descriptor->get());
  descriptor->reset();
  char answer = '?';
  if (::read(socket, &answer, 1) != 1) answer = '?';
  report["importer_saw_the_bytes"] = std::string(1, answer);
  const uint64_t before = free_bytes(**gpu).value_or(0);
  slab->reset();
  report["freed_at_once_by_owner_alone"] =
      static_cast<int64_t>(free_bytes(**gpu).value_or(0)) - static_cast<int64_t>(before);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  report["seconds_until_free_after_kill"] = wait_for_free(**gpu, before + kSlabBytes);
  return absl::OkStatus();
}

absl::Status alive(const Target& target, Json& report) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return absl::InternalError("socketpair");
  const std::string number = std::to_string(pair[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pair[0]);
    ::execl("/proc/self/exe", "memdecay-gpu-check", "--importer", number.c_str(), "--library",
            target.library.c_str(), static_cast<char*>(nullptr));
    ::_exit(1);
  }
  ::close(pair[1]);
  const absl::Status made = owner_and_importer(target, pair[0], child, report);
  ::close(pair[0]);
  if (!made.ok()) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return made;
}

}  // namespace

std::vector<Check> process_checks() {
  return {{"alive", "who keeps shared memory alive, and when it is free after kill -9", alive}};
}

}  // namespace memdecay::gpu
