// RealBytes on a host device, RealFences on timeline pages, and the copy gate before a recorder.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cuda/checksum.h"
#include "cuda/host_device.h"
#include "daemon/base/mailbox.h"
#include "daemon/reactor/real_bytes.h"
#include "daemon/reactor/real_fences.h"
#include "proto/contract/error.h"
#include "tests/support/copy_gate.h"
#include "tests/unit/daemon/reactor/recording_ports.h"

namespace memdecay::reactor {
namespace {

constexpr uint64_t kPage = 4096;
constexpr SlotRef kSlot{SlabId{1}, 1, 1};

class RealBytesTest : public testing::Test {
 protected:
  RealBytesTest()
      : device_(*cuda::create_host_device({.limit_bytes = uint64_t{1} << 20})),
        bytes_(*RealBytes::create({}, *device_, [this](ledger::Event event) {
          ended_.put_always(std::get<ledger::CopyDone>(std::move(event)));
        })) {
    EXPECT_TRUE(bytes_->create_slab({SlabId{1}, TenantId{1}, {}, kPage, 4}).ok());
  }
  std::byte* slot(uint32_t index) { return *bytes_->slabs().address(SlabId{1}, index); }
  ledger::CopyDone copy(uint64_t id, ledger::CopyKind kind, const SlotRef& slot) {
    bytes_->start_copy({CopyId{id}, kind, ContentId{5}, slot, kPage});
    while (true) {
      if (std::optional<ledger::CopyDone> done = ended_.take()) {
        return *bytes_->finish_copy(*std::move(done));
      }
      wake_.wait();
    }
  }

  base::Wake wake_;
  base::Mailbox<ledger::CopyDone> ended_{16, wake_};
  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<RealBytes> bytes_;
};

TEST_F(RealBytesTest, evict_and_restore_keep_the_bytes_and_tell_the_checksum) {
  std::fill_n(slot(1), kPage, std::byte{7});
  const Checksum wanted = cuda::checksum_of({slot(1), kPage});
  const ledger::CopyDone out = copy(1, ledger::CopyKind::kEvict, kSlot);
  ASSERT_TRUE(out.status.ok());
  EXPECT_EQ(out.checksum, wanted);
  std::fill_n(slot(1), kPage, std::byte{9});
  const ledger::CopyDone back = copy(2, ledger::CopyKind::kRestore, {SlabId{1}, 3, 1});
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.checksum, wanted);
  EXPECT_EQ(slot(3)[kPage - 1], std::byte{7});
  EXPECT_EQ(copy(3, ledger::CopyKind::kVerify, {SlabId{1}, 3, 1}).checksum, wanted);
  EXPECT_EQ(bytes_->copies_in_flight(), 0u);
}

TEST_F(RealBytesTest, a_flipped_host_bit_is_data_loss_for_the_ledger) {
  ASSERT_TRUE(copy(1, ledger::CopyKind::kStore, kSlot).status.ok());
  ASSERT_TRUE(bytes_->flip_host(ContentId{5}, 99).ok());
  EXPECT_EQ(error_code(copy(2, ledger::CopyKind::kRestore, kSlot).status), ErrorCode::kDataLoss);
  EXPECT_EQ(bytes_->host().replicas(), 0u);
}

TEST_F(RealBytesTest, dropping_frees_the_host_bytes) {
  ASSERT_TRUE(copy(1, ledger::CopyKind::kStore, kSlot).status.ok());
  EXPECT_GT(bytes_->host().used_bytes(), kPage);
  bytes_->drop_host(ContentId{5});
  EXPECT_EQ(bytes_->host().used_bytes(), 0u);
  bytes_->drop_host(ContentId{5});  // again: nothing
}

TEST_F(RealBytesTest, a_slab_beyond_the_limit_is_refused_and_leaves_nothing) {
  EXPECT_EQ(error_code(bytes_->create_slab({SlabId{2}, TenantId{1}, {}, kPage, 4096})),
            ErrorCode::kResourceExhausted);
  bytes_->destroy_slab(SlabId{2});
  EXPECT_FALSE(bytes_->export_slab(SlabId{2}, ledger::ShareSlab::Access::kReadOnly).ok());
  bytes_->destroy_slab(SlabId{1});
  EXPECT_EQ(device_->used_bytes(), 0u);
}

TEST_F(RealBytesTest, the_shadow_table_says_what_lies_in_a_slot_to_its_tenant_only) {
  bytes_->set_daemon_epoch(42);
  bytes_->shadow_row({kSlot, SlotState::kValid, PageKey{{1}}, Checksum{2, 3}});
  const auto client = *cuda::create_host_device({});
  const uint64_t size = shadow_table_bytes(1024);
  const auto own = *client->map(*bytes_->share_shadow(TenantId{1}), size, cuda::Access::kReadOnly);
  const ShadowReader reader = *ShadowReader::open(own.host_bytes());
  EXPECT_EQ(reader.daemon_epoch(), 42u);
  const absl::StatusOr<ShadowEntry> entry = reader.read(SlabId{1}, 1);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->state, SlotState::kValid);
  EXPECT_EQ(entry->key, PageKey{{1}});
  EXPECT_EQ(entry->checksum, (Checksum{2, 3}));
  const auto other =
      *client->map(*bytes_->share_shadow(TenantId{2}), size, cuda::Access::kReadOnly);
  EXPECT_FALSE(ShadowReader::open(other.host_bytes())->read(SlabId{1}, 1).ok());
  bytes_->destroy_slab(SlabId{1});
  EXPECT_FALSE(reader.read(SlabId{1}, 1).ok());
}

// ---- fences
// ---------------------------------------------------------------------------------------------

class FencesTest : public testing::Test {
 protected:
  FencesTest() { fences_.add_member(EngineId{1}, 0, *std::move(page_)); }
  // Another mapping of the page, as the engine has it.
  static cuda::Timeline engine_side(const absl::StatusOr<cuda::Timeline>& page) {
    return *cuda::Timeline::adopt(*page->share());
  }
  ledger::FencePassed next() {
    while (true) {
      if (std::optional<ledger::FencePassed> passed = passed_.take()) return *passed;
      wake_.wait();
    }
  }

  base::Wake wake_;
  base::Mailbox<ledger::FencePassed> passed_{64, wake_};
  absl::StatusOr<cuda::Timeline> page_ = cuda::Timeline::create();
  cuda::Timeline engine_ = engine_side(page_);
  RealFences fences_{
      [this](ledger::Event event) { passed_.put_always(std::get<ledger::FencePassed>(event)); }};
};

TEST_F(FencesTest, one_that_has_passed_is_reported_at_once) {
  fences_.watch(EngineId{1}, {});  // value 0: no fence
  EXPECT_EQ(passed_.size(), 1u);
  engine_.signal(3, 10);
  fences_.watch(EngineId{1}, {0, 3, 9});
  ASSERT_EQ(passed_.size(), 2u);
  next();
  EXPECT_EQ(next().fence, (Fence{0, 3, 9}));
  EXPECT_EQ(fences_.watched(), 0u);
}

TEST_F(FencesTest, an_open_one_is_reported_when_the_engine_gets_there) {
  fences_.watch(EngineId{1}, {0, 3, 9});
  fences_.watch(EngineId{1}, {0, 4, 1});
  engine_.signal(4, 1);
  EXPECT_EQ(next().fence, (Fence{0, 4, 1}));
  engine_.signal(3, 8);
  EXPECT_EQ(fences_.watched(), 1u);
  engine_.signal(3, 9);
  EXPECT_EQ(next().fence, (Fence{0, 3, 9}));
}

TEST_F(FencesTest, a_gone_engine_gets_a_last_look_and_then_nothing) {
  fences_.watch(EngineId{1}, {0, 3, 9});
  fences_.watch(EngineId{1}, {0, 4, 1});
  engine_.signal(3, 9);
  fences_.engine_gone(EngineId{1});
  EXPECT_EQ(next().fence, (Fence{0, 3, 9}));
  EXPECT_EQ(fences_.watched(), 0u);
  engine_.signal(4, 1);
  fences_.watch(EngineId{1}, {0, 4, 1});
  EXPECT_EQ(passed_.size(), 0u);
}

TEST_F(FencesTest, unknown_members_and_words_never_pass) {
  fences_.watch(EngineId{2}, {0, 3, 1});
  fences_.watch(EngineId{1}, {7, 3, 1});
  fences_.watch(EngineId{1}, {0, kTimelineWords, 1});
  EXPECT_EQ(passed_.size(), 0u);
  EXPECT_EQ(fences_.watched(), 0u);
}

// ---- the copy gate
// ----------------------------------------------------------------------------------------

class GateTest : public testing::Test {
 protected:
  static ledger::StartCopy evict(uint64_t id, uint64_t content) {
    return {CopyId{id}, ledger::CopyKind::kEvict, ContentId{content}, kSlot, kPage};
  }
  size_t started() const {
    return static_cast<size_t>(
        std::count_if(inner_.calls.begin(), inner_.calls.end(),
                      [](const std::string& call) { return call.starts_with("start_copy"); }));
  }

  RecordingPorts inner_;
  std::vector<ledger::CopyDone> completed_;
  support::CopyGate gate_{inner_, [this](ledger::Event event) {
                            completed_.push_back(std::get<ledger::CopyDone>(std::move(event)));
                          }};
};

TEST_F(GateTest, passes_on_what_nobody_holds) {
  gate_.start_copy(evict(1, 5));
  EXPECT_EQ(started(), 1u);
  EXPECT_EQ(gate_.running(), 1u);
  EXPECT_TRUE(gate_.finish_copy({CopyId{1}, {}, {}}).has_value());
  EXPECT_EQ(gate_.running(), 0u);
}

TEST_F(GateTest, holds_the_next_copy_of_that_content_and_kind_once) {
  gate_.hold(ContentId{5}, ledger::CopyKind::kEvict);
  gate_.start_copy(evict(1, 6));
  ledger::StartCopy restore = evict(2, 5);
  restore.kind = ledger::CopyKind::kRestore;
  gate_.start_copy(restore);
  EXPECT_EQ(started(), 2u);
  gate_.start_copy(evict(3, 5));
  EXPECT_EQ(started(), 2u);
  ASSERT_EQ(gate_.held().size(), 1u);
  EXPECT_EQ(gate_.finish(ContentId{5}), support::Found::kHeldCopy);
  EXPECT_EQ(started(), 3u);
  gate_.start_copy(evict(4, 5));
  EXPECT_EQ(started(), 4u);
}

TEST_F(GateTest, fails_a_held_copy_without_running_it) {
  gate_.hold(ContentId{5}, ledger::CopyKind::kEvict);
  gate_.start_copy(evict(1, 5));
  EXPECT_EQ(gate_.fail(ContentId{5}, make_error(ErrorCode::kInternal, "told to")),
            support::Found::kHeldCopy);
  EXPECT_EQ(started(), 0u);
  ASSERT_EQ(completed_.size(), 1u);
  EXPECT_EQ(error_code(completed_[0].status), ErrorCode::kInternal);
  EXPECT_TRUE(gate_.finish_copy(completed_[0]).has_value());
}

TEST_F(GateTest, finish_without_a_held_copy_lifts_the_order) {
  gate_.hold(ContentId{5}, ledger::CopyKind::kEvict);
  EXPECT_EQ(gate_.finish(ContentId{5}), support::Found::kOnlyAnOrder);
  EXPECT_EQ(gate_.finish(ContentId{5}), support::Found::kNothing);
  gate_.start_copy(evict(1, 5));
  EXPECT_EQ(started(), 1u);
}

TEST_F(GateTest, a_copy_cancelled_while_held_never_runs) {
  gate_.hold(ContentId{5}, ledger::CopyKind::kEvict);
  gate_.start_copy(evict(1, 5));
  gate_.cancel_copy(CopyId{1});
  EXPECT_EQ(gate_.finish(ContentId{5}), support::Found::kHeldCopy);
  EXPECT_EQ(started(), 0u);
  ASSERT_EQ(completed_.size(), 1u);
  EXPECT_TRUE(absl::IsCancelled(completed_[0].status));
}

TEST_F(GateTest, reorders_two_copies) {
  gate_.reorder(ContentId{5}, ContentId{6});
  gate_.start_copy(evict(1, 5));
  gate_.start_copy(evict(2, 6));
  EXPECT_EQ(started(), 1u);
  EXPECT_TRUE(gate_.finish_copy({CopyId{2}, {}, {}}).has_value());
  EXPECT_EQ(started(), 2u);
  EXPECT_TRUE(gate_.finish_copy({CopyId{1}, {}, {}}).has_value());
}

TEST_F(GateTest, a_lost_completion_is_settled_below_when_the_ledger_cancels) {
  gate_.lose_completions(1.0, 1);
  gate_.start_copy(evict(1, 5));
  EXPECT_FALSE(gate_.finish_copy({CopyId{1}, {}, {}}).has_value());
  EXPECT_EQ(gate_.lost(), 1u);
  EXPECT_EQ(gate_.running(), 0u);
  EXPECT_EQ(std::count(inner_.calls.begin(), inner_.calls.end(), "finish 1"), 0);
  gate_.cancel_copy(CopyId{1});
  EXPECT_EQ(std::count(inner_.calls.begin(), inner_.calls.end(), "finish 1"), 1);
  EXPECT_EQ(gate_.running(), 0u);
}

TEST_F(GateTest, refuses_memory_of_either_kind) {
  using Memory = support::CopyGate::Memory;
  gate_.memory(Memory::kRefused, Memory::kRefused);
  EXPECT_EQ(error_code(gate_.create_slab({})), ErrorCode::kResourceExhausted);
  gate_.start_copy(evict(1, 5));
  ASSERT_EQ(completed_.size(), 1u);
  EXPECT_EQ(error_code(completed_[0].status), ErrorCode::kResourceExhausted);
  gate_.memory(Memory::kThere, Memory::kThere);
  EXPECT_TRUE(gate_.create_slab({}).ok());
}

}  // namespace
}  // namespace memdecay::reactor
