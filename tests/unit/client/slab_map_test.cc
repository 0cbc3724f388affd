// Slabs in the client's address space: who can write where is decided by mappings.
#include "client/lib/slab_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/client/slabs_for_test.h"

namespace memdecay::client {
namespace {

// Writing by way of the kernel: EFAULT instead of a signal.
bool can_write(const std::byte* address) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return false;
  const char byte = 'x';
  (void)!::write(pipe_ends[1], &byte, 1);
  const ssize_t got = ::read(pipe_ends[0], const_cast<std::byte*>(address), 1);
  const bool fault = got < 0 && errno == EFAULT;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  return !fault;
}

TEST(SlabMap, only_open_slots_can_be_written_and_never_through_the_readers_view) {
  auto map = empty_slab_map();
  SlabsForTest slabs(8192);
  const SlabId slab = slabs.send(*map, 3, SlabAccess::kWritable);
  const auto closed = map->find(slab, 0);
  EXPECT_FALSE(can_write(closed->write));
  const auto open = map->open_slot(slab, 1);
  EXPECT_TRUE(can_write(open->write));
  EXPECT_TRUE(can_write(open->write + 8191));
  EXPECT_FALSE(can_write(open->read));
  EXPECT_FALSE(can_write(closed->write));
  EXPECT_FALSE(can_write(map->find(slab, 2)->write));
  map->close_slot(slab, 1);
  EXPECT_FALSE(can_write(open->write));
}

TEST(SlabMap, opened_slot_is_zero_and_both_views_show_the_same_bytes) {
  auto map = empty_slab_map();
  SlabsForTest slabs(4096);
  const SlabId slab = slabs.send(*map, 2, SlabAccess::kWritable);
  std::memset(slabs.bytes(slab), 0xee, 8192);
  const auto open = map->open_slot(slab, 0);
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(open->read[i], std::byte{0});
  open->write[5] = std::byte{7};
  EXPECT_EQ(open->read[5], std::byte{7});
  EXPECT_EQ(slabs.bytes(slab)[5], std::byte{7});
  EXPECT_EQ(slabs.bytes(slab)[4096], std::byte{0xee});
}

TEST(SlabMap, slab_of_another_writer_has_no_writable_view) {
  auto map = empty_slab_map();
  SlabsForTest slabs(4096);
  const SlabId slab = slabs.send(*map, 1, SlabAccess::kReadOnly);
  EXPECT_EQ(map->find(slab, 0)->write, nullptr);
  EXPECT_FALSE(map->open_slot(slab, 0).has_value());
}

TEST(SlabMap, slab_sent_again_writable_keeps_its_addresses) {
  auto map = empty_slab_map();
  SlabsForTest slabs(4096);
  const SlabId slab = slabs.send(*map, 1, SlabAccess::kReadOnly);
  const std::byte* before = map->find(slab, 0)->read;
  slabs.send_again(*map, slab, 1, SlabAccess::kWritable);
  EXPECT_EQ(map->find(slab, 0)->read, before);
  EXPECT_TRUE(map->open_slot(slab, 0).has_value());
}

TEST(SlabMap, slots_that_share_a_machine_page_close_one_by_one) {
  auto map = empty_slab_map();
  SlabsForTest slabs(256);
  const SlabId slab = slabs.send(*map, 16, SlabAccess::kWritable);
  const auto first = map->open_slot(slab, 0);
  map->open_slot(slab, 1);
  map->close_slot(slab, 0);
  EXPECT_TRUE(can_write(first->write + 256));
  map->close_slot(slab, 1);
  EXPECT_FALSE(can_write(first->write));
}

TEST(SlabMap, contradicting_sizes_are_refused_and_unknown_slots_are_nothing) {
  auto map = empty_slab_map();
  SlabsForTest slabs(4096);
  const SlabId slab = slabs.send(*map, 1, SlabAccess::kReadOnly);
  EXPECT_FALSE(map->find(slab, 1).has_value());
  EXPECT_FALSE(map->find(SlabId{99}, 0).has_value());
  const absl::Status status = map->add(
      {.slab = SlabId{9}, .bytes = 4096, .page_bytes = 4096, .slots = 2}, UniqueFd(::dup(0)));
  EXPECT_EQ(error_code(status), ErrorCode::kInvalidArgument);
}

TEST(SlabMap, retired_slabs_keep_their_bytes_and_give_their_number_away) {
  auto map = empty_slab_map();
  SlabsForTest old_daemon(4096);
  const SlabId slab = old_daemon.send(*map, 1, SlabAccess::kReadOnly);
  old_daemon.bytes(slab)[0] = std::byte{1};
  const std::byte* old_address = map->find(slab, 0)->read;
  map->retire_all();
  SlabsForTest new_daemon(4096);
  EXPECT_EQ(new_daemon.send(*map, 1, SlabAccess::kReadOnly), slab);
  EXPECT_EQ(old_address[0], std::byte{1});
  EXPECT_EQ(map->find(slab, 0)->read[0], std::byte{0});
}

}  // namespace
}  // namespace memdecay::client
