// What the host device promises beyond the port: sealed, present, unwritable for readers, not
// inherited by forks.
#include "cuda/host_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <utility>

#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

constexpr uint64_t kPage = 4096;

// The signal that ended a forked child which did this; 0 if it ended by itself.
int signal_of_child(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    // A sanitizer would turn the signal into a report and an exit code.
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

class HostDevice : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = *create_host_device({.limit_bytes = 64 * kPage});
};

TEST_F(HostDevice, a_slab_cannot_be_resized_or_sealed_by_its_users) {
  const Slab slab = *device_->create_slab(4 * kPage);
  const Fd fd = *device_->export_slab(slab, Access::kReadWrite);
  EXPECT_NE(ftruncate(fd.get(), kPage), 0);
  EXPECT_NE(ftruncate(fd.get(), 8 * kPage), 0);
  EXPECT_NE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST_F(HostDevice, a_slab_takes_its_memory_at_once) {
  const Slab slab = *device_->create_slab(16 * kPage);
  const Fd fd = *device_->export_slab(slab, Access::kReadOnly);
  struct stat info {};
  ASSERT_EQ(fstat(fd.get(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.st_blocks) * 512, 16 * kPage);
}

TEST_F(HostDevice, a_reader_cannot_write_by_any_way_its_descriptor_allows) {
  const Slab slab = *device_->create_slab(kPage);
  Fd fd = *device_->export_slab(slab, Access::kReadOnly);
  EXPECT_EQ(write(fd.get(), "x", 1), -1);
  EXPECT_EQ(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  const Mapping mapping = *device_->map(std::move(fd), kPage, Access::kReadOnly);
  EXPECT_NE(mprotect(mapping.address(), kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(signal_of_child([&] { *mapping.address() = std::byte{1}; }), SIGSEGV);
  EXPECT_EQ(*slab.address(), std::byte{0});
}

TEST_F(HostDevice, a_forked_child_has_no_slab) {
  const Slab slab = *device_->create_slab(kPage);
  const Mapping mapping =
      *device_->map(*device_->export_slab(slab, Access::kReadWrite), kPage, Access::kReadWrite);
  EXPECT_EQ(signal_of_child([&] { *slab.address() = std::byte{1}; }), SIGSEGV);
  EXPECT_EQ(signal_of_child([&] { *mapping.address() = std::byte{1}; }), SIGSEGV);
}

TEST_F(HostDevice, an_unsealed_memfd_is_refused) {
  Fd fd(memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), kPage), 0);
  EXPECT_EQ(error_code(device_->map(std::move(fd), kPage, Access::kReadOnly).status()),
            ErrorCode::kInvalidArgument);
}

// Runs in a child whose files may not grow beyond 1 MiB, so that no fault of ours can fill the
// machine.
ErrorCode create_in_a_small_process(uint64_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(255);
    const auto device = *create_host_device({.limit_bytes = uint64_t{1} << 62});
    const absl::Status status = device->create_slab(bytes).status();
    _exit(device->used_bytes() == 0 ? static_cast<int>(error_code(status)) : 254);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return static_cast<ErrorCode>(WEXITSTATUS(status));
}

TEST_F(HostDevice, memory_that_is_not_there_is_an_error) {
  EXPECT_EQ(create_in_a_small_process(2 << 20), ErrorCode::kResourceExhausted);
  EXPECT_EQ(create_in_a_small_process(uint64_t{1} << 61), ErrorCode::kResourceExhausted);
}

TEST_F(HostDevice, the_granularity_fits_the_machine) {
  EXPECT_EQ(error_code(create_host_device({.granularity_bytes = 1000}).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(device_->properties().granularity_bytes % kPage, 0u);
}

}  // namespace
}  // namespace memdecay::cuda
