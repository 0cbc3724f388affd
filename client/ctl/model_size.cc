// GGUF metadata: magic "GGUF" · version u32 · tensors u64 · pairs u64 · pairs of (key text · type
// u32 · value). A text is u64 length + bytes; an array is type u32 · count u64 · values. All little
// endian (github.com/ggml-org/ggml/blob/master/docs/gguf.md).
// Thread: see model_size.h. Invariant: nothing is read beyond the span, however the file lies.
#include "client/ctl/model_size.h"

#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr uint64_t kMaxPairs = 65536;
constexpr size_t kMaxHeaderBytes = size_t{64} << 20;  // vocabularies live in the header

// Sizes of GGUF's value types 0 … 12; 0: text (8) or array (9).
constexpr uint64_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr uint32_t kText = 8;
constexpr uint32_t kArray = 9;

absl::Status broken(std::string there) {
  return make_error(ErrorCode::kInvalidArgument, "read the model's header", std::move(there),
                    "give a whole GGUF file of version 2 or 3");
}

class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : bytes_(bytes) {}

  template <typename Number>
  std::optional<Number> number() {
    if (bytes_.size() - at_ < sizeof(Number)) return {};
    Number value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::optional<std::string> text() {
    const auto length = number<uint64_t>();
    if (!length || *length > bytes_.size() - at_) return {};
    std::string out(bytes_.data() + at_, static_cast<size_t>(*length));
    at_ += static_cast<size_t>(*length);
    return out;
  }
  std::optional<uint64_t> skip(uint64_t bytes) {
    if (bytes > bytes_.size() - at_) return {};
    at_ += static_cast<size_t>(bytes);
    return bytes;
  }

 private:
  std::span<const char> bytes_;
  size_t at_ = 0;
};

struct Metadata {
  std::map<std::string, uint64_t> numbers;
  std::map<std::string, std::string> texts;
};

// Nothing: truncated, or a type that does not exist.
std::optional<uint64_t> skip_array(Reader& reader) {
  const auto type = reader.number<uint32_t>();
  const auto count = reader.number<uint64_t>();
  if (!type || !count || *type >= std::size(kTypeBytes) || *type == kArray) return {};
  if (*type != kText) {
    const uint64_t each = kTypeBytes[*type];
    return *count > kMaxHeaderBytes ? std::nullopt : reader.skip(*count * each);
  }
  for (uint64_t i = 0; i < *count; ++i) {
    if (!reader.text()) return {};
  }
  return count;
}

std::optional<uint64_t> read_value(Reader& reader, uint32_t type, const std::string& key,
                                   Metadata& out) {
  if (type == kArray) return skip_array(reader);
  if (type == kText) {
    auto value = reader.text();
    if (!value) return {};
    out.texts[key] = *std::move(value);
    return 0;
  }
  if (type >= std::size(kTypeBytes)) return {};
  if (type == 4 || type == 5) {  // u32, i32: counts and sizes
    const auto value = reader.number<uint32_t>();
    if (value) out.numbers[key] = *value;
    return value;
  }
  if (type == 10 || type == 11) {  // u64, i64
    const auto value = reader.number<uint64_t>();
    if (value) out.numbers[key] = *value;
    return value;
  }
  return reader.skip(kTypeBytes[type]);
}

absl::StatusOr<Metadata> read_metadata(std::span<const char> bytes) {
  if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0) return broken("no GGUF file");
  Reader reader(bytes.subspan(4));
  const auto version = reader.number<uint32_t>();
  const auto tensors = reader.number<uint64_t>();
  const auto pairs = reader.number<uint64_t>();
  if (!version || !tensors || !pairs) return broken("truncated");
  if (*version != 2 && *version != 3) return broken(absl::StrCat("GGUF version ", *version));
  if (*pairs > kMaxPairs) return broken(absl::StrCat(*pairs, " metadata pairs"));
  Metadata out;
  for (uint64_t i = 0; i < *pairs; ++i) {
    const auto key = reader.text();
    const auto type = reader.number<uint32_t>();
    if (!key || !type || !read_value(reader, *type, *key, out)) {
      return broken(absl::StrCat("pair ", i, key ? " (" + *key + ")" : "", " is truncated or odd"));
    }
  }
  return out;
}

uint32_t bits_of(const std::string& dtype) {
  if (dtype == "f32") return 32;
  if (dtype == "f16" || dtype == "bf16") return 16;
  return dtype == "fp8_e4m3" || dtype == "fp8_e5m2" || dtype == "int8" ? 8 : 0;
}

}  // namespace

absl::StatusOr<ModelSize> size_of(std::span<const char> gguf_header, uint32_t page_tokens,
                                  const std::string& dtype) {
  absl::StatusOr<Metadata> metadata = read_metadata(gguf_header);
  if (!metadata.ok()) return metadata.status();
  ModelSize size;
  size.architecture = metadata->texts["general.architecture"];
  size.name = metadata->texts["general.name"];
  const auto field = [&](const char* name) {
    const auto found = metadata->numbers.find(size.architecture + "." + name);
    return found == metadata->numbers.end() ? uint64_t{0} : found->second;
  };
  const uint64_t layers = field("block_count");
  const uint64_t heads = field("attention.head_count");
  const uint64_t kv_heads =
      field("attention.head_count_kv") ? field("attention.head_count_kv") : heads;
  uint64_t head_dim = field("attention.key_length");
  if (head_dim == 0 && heads != 0) head_dim = field("embedding_length") / heads;
  const uint32_t bits = bits_of(dtype);
  const bool sane = layers > 0 && layers < 4096 && kv_heads > 0 && kv_heads < 4096 &&
                    head_dim > 0 && head_dim < 65536;
  if (!sane) {
    return broken(absl::StrCat("architecture \"", size.architecture, "\" names ", layers,
                               " layers, ", kv_heads, " KV heads of ", head_dim));
  }
  if (bits == 0 || page_tokens == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("pages of ", page_tokens, " tokens of ", dtype), "no such size",
                      "use f32 f16 bf16 fp8_e4m3 fp8_e5m2 int8 and 1 token or more");
  }
  const uint64_t value_dim =
      field("attention.value_length") ? field("attention.value_length") : head_dim;
  size.layers = static_cast<uint32_t>(layers);
  size.kv_heads = static_cast<uint32_t>(kv_heads);
  size.head_dim = static_cast<uint32_t>(head_dim);
  size.dtype = dtype;
  size.page_tokens = page_tokens;
  size.token_bytes = layers * kv_heads * (head_dim + value_dim) * bits / 8;
  size.page_bytes = size.token_bytes * page_tokens;
  return size;
}

absl::StatusOr<ModelSize> size_of_file(const std::string& path, uint32_t page_tokens,
                                       const std::string& dtype) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return make_error(ErrorCode::kNotFound, absl::StrCat("model ", path), "it cannot be read",
                      "give the path of a GGUF file");
  }
  std::vector<char> header(kMaxHeaderBytes);
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  return size_of({header.data(), static_cast<size_t>(file.gcount())}, page_tokens, dtype);
}

}  // namespace memdecay::ctl
