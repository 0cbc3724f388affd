// Checksums: the published XXH3-128, the same from every code path, and covering the header.
#include "cuda/checksum.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <utility>
#include <vector>

#include "cuda/checksum_pass.h"

namespace memdecay::cuda {
namespace {

std::vector<std::byte> numbers(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  return out;
}

Checksum published(const std::byte* bytes, size_t count) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, count);
  return {.low = hash.low64, .high = hash.high64};
}

// Around every boundary of XXH3 (16, 128, 240, 256, 1024) and of the blocks (16 KiB, 64 KiB).
std::vector<size_t> lengths() {
  std::vector<size_t> out;
  for (size_t i = 0; i <= 1100; ++i) out.push_back(i);
  for (const size_t base : {16u * 1024, 32u * 1024, 64u * 1024, 368'640u, 1u << 20}) {
    for (const size_t length : {base - 65, base - 64, base - 1, base, base + 1, base + 64}) {
      out.push_back(length);
    }
  }
  return out;
}

struct Code {
  const char* name;
  HashFunction* hash;
  CopyHashFunction* copy_hash;
};

std::vector<Code> codes() {
  std::vector<Code> out = {{"portable", hash_portable, copy_hash_portable}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) out.push_back({"avx2", hash_avx2, copy_hash_avx2});
#endif
  return out;
}

TEST(Checksum, is_the_published_xxh3_128) {
  const Checksum empty = checksum_of({});
  EXPECT_EQ(empty.high, 0x99aa06d3014798d8ull);
  EXPECT_EQ(empty.low, 0x6001c324468d497full);
  const std::vector<std::byte> bytes = numbers((1u << 20) + 64);
  for (const size_t length : lengths()) {
    EXPECT_EQ(checksum_of({bytes.data(), length}), published(bytes.data(), length)) << length;
  }
}

TEST(Checksum, the_fused_pass_copies_exactly_and_hashes_the_same) {
  const std::vector<std::byte> from = numbers((1u << 20) + 128);
  const std::byte guard{0x5a};
  std::vector<std::byte> to(from.size() + 256);
  for (const Code& code : codes()) {
    for (const size_t length : lengths()) {
      // Targets on and off a cache line; sources anywhere.
      for (const size_t shift : {size_t{0}, size_t{1}, size_t{32}}) {
        const size_t line = (64 - reinterpret_cast<uintptr_t>(to.data()) % 64) % 64;
        std::byte* target = to.data() + line + shift;
        std::memset(to.data(), static_cast<int>(guard), line + shift + length + 64);
        const Checksum sum = code.copy_hash(target, from.data() + shift, length);
        ASSERT_EQ(sum, published(from.data() + shift, length)) << code.name << " " << length;
        ASSERT_EQ(std::memcmp(target, from.data() + shift, length), 0) << code.name;
        ASSERT_EQ(target[length], guard);
        if (line + shift > 0) {
          ASSERT_EQ(*(target - 1), guard);
        }
      }
    }
  }
}

TEST(Checksum, every_code_path_agrees) {
  const std::vector<std::byte> bytes = numbers(100'000);
  for (const Code& code : codes()) {
    EXPECT_EQ(code.hash(bytes.data(), bytes.size()), checksum_of(bytes)) << code.name;
  }
  std::vector<std::byte> to(bytes.size());
  EXPECT_EQ(copy_with_checksum(to, bytes), checksum_of(bytes));
}

TEST(Checksum, of_a_replica_covers_bytes_and_every_header_field) {
  PageHeader header{.page = 3, .tokens = 16, .page_bytes = 4096, .generation = 8};
  header.key = PageKey{};
  const Checksum content{.low = 1, .high = 2};
  const Checksum right = replica_checksum(header, content);
  header.checksum = right;  // the field itself does not count
  EXPECT_EQ(replica_checksum(header, content), right);
  EXPECT_NE(replica_checksum(header, {.low = 1, .high = 3}), right);

  std::vector<PageHeader> others(5, header);
  others[0].generation = 9;
  others[1].page = 4;
  others[2].key->bytes[5] = 1;
  others[3].space.bytes[5] = 1;
  others[4].key.reset();
  others[4].session = {1};
  for (const PageHeader& other : others) EXPECT_NE(replica_checksum(other, content), right);
}

}  // namespace
}  // namespace memdecay::cuda
