// Encoding of the stored page header (see page_header.h).
#include "proto/contract/page_header.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/layout.h"

namespace memdecay {
namespace {

constexpr uint32_t kKindExact = 1;
constexpr uint32_t kKindPrivate = 2;

template <typename Number>
void put(PageHeaderImage& image, size_t at, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    image[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  }
}

template <typename Number>
Number get(std::span<const std::byte> bytes, size_t at) {
  Number value = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    value |= static_cast<Number>(static_cast<Number>(bytes[at + i]) << (8 * i));
  }
  return value;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

absl::Status refused(std::string field, std::string there) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("page header: ", field),
                    std::move(there), "treat the record as not there");
}

}  // namespace

PageHeaderImage encode_page_header(const PageHeader& header) {
  MEMDECAY_CHECK(header.key.has_value() != static_cast<bool>(header.session));
  PageHeaderImage image{};
  put(image, kPageHeaderMagicAt, kPageHeaderMagic);
  put(image, kPageHeaderVersionAt, kPageHeaderVersion);
  put(image, kPageHeaderKindAt, header.key.has_value() ? kKindExact : kKindPrivate);
  std::memcpy(&image[kPageHeaderNamespaceAt], header.space.bytes.data(), 32);
  if (header.key.has_value()) {
    std::memcpy(&image[kPageHeaderNameAt], header.key->bytes.data(), 32);
  } else {
    put(image, kPageHeaderNameAt, header.session.value);
  }
  put(image, kPageHeaderPageAt, header.page);
  put(image, kPageHeaderTokensAt, header.tokens);
  put(image, kPageHeaderPageBytesAt, header.page_bytes);
  put(image, kPageHeaderGenerationAt, header.generation);
  put(image, kPageHeaderChecksumAt, header.checksum.low);
  put(image, kPageHeaderChecksumAt + 8, header.checksum.high);
  return image;
}

absl::StatusOr<PageHeader> decode_page_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kPageHeaderBytes) return refused("size", absl::StrCat(bytes.size(), " bytes"));
  if (get<uint64_t>(bytes, kPageHeaderMagicAt) != kPageHeaderMagic) {
    return refused("magic", "not a page");
  }
  const auto version = get<uint32_t>(bytes, kPageHeaderVersionAt);
  if (version != kPageHeaderVersion) return refused("version", absl::StrCat(version));
  PageHeader header;
  std::memcpy(header.space.bytes.data(), &bytes[kPageHeaderNamespaceAt], 32);
  const auto kind = get<uint32_t>(bytes, kPageHeaderKindAt);
  if (kind == kKindExact) {
    header.key.emplace();
    std::memcpy(header.key->bytes.data(), &bytes[kPageHeaderNameAt], 32);
  } else if (kind == kKindPrivate) {
    header.session.value = get<uint64_t>(bytes, kPageHeaderNameAt);
    if (!header.session || !all_zero(bytes.subspan(kPageHeaderNameAt + 8, 24))) {
      return refused("session", absl::StrCat(header.session.value));
    }
  } else {
    return refused("kind", absl::StrCat(kind));
  }
  if (!all_zero(
          bytes.subspan(kPageHeaderReservedAt, kPageHeaderChecksumAt - kPageHeaderReservedAt))) {
    return refused("reserved", "not zero");
  }
  header.page = get<uint32_t>(bytes, kPageHeaderPageAt);
  header.tokens = get<uint32_t>(bytes, kPageHeaderTokensAt);
  header.page_bytes = get<uint64_t>(bytes, kPageHeaderPageBytesAt);
  header.generation = get<uint64_t>(bytes, kPageHeaderGenerationAt);
  header.checksum = {.low = get<uint64_t>(bytes, kPageHeaderChecksumAt),
                     .high = get<uint64_t>(bytes, kPageHeaderChecksumAt + 8)};
  if (header.tokens == 0 || header.tokens > kMaxPageTokens) {
    return refused("tokens", absl::StrCat(header.tokens));
  }
  if (header.page_bytes == 0 || header.page_bytes > kMaxPageBytes) {
    return refused("page_bytes", absl::StrCat(header.page_bytes));
  }
  return header;
}

}  // namespace memdecay
