// The parser of gguf.h: a cursor that never leaves its bytes, and the three tables it reads.
#include "adapters/reference/gguf.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place, little endian");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kMaxKeys = 1u << 16;
constexpr uint64_t kMaxTensors = 1u << 16;
constexpr uint64_t kMaxNameBytes = 1u << 16;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxAlignment = 1u << 16;
constexpr uint64_t kMaxElements = uint64_t{1} << 40;
constexpr uint64_t kDefaultAlignment = 32;

enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Reads forward and refuses to pass the end: after the first refusal everything reads as zero.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T value{};
    if (const std::byte* at = advance(sizeof(T))) std::memcpy(&value, at, sizeof(T));
    return value;
  }

  std::string_view take_string() {
    const uint64_t size = take<uint64_t>();
    const std::byte* at = advance(size);
    if (at == nullptr) return {};
    return {reinterpret_cast<const char*>(at), static_cast<size_t>(size)};
  }

  bool failed() const { return failed_; }
  uint64_t offset() const { return offset_; }
  uint64_t left() const { return bytes_.size() - offset_; }

 private:
  const std::byte* advance(uint64_t size) {
    if (failed_ || size > left()) {
      failed_ = true;
      return nullptr;
    }
    const std::byte* at = bytes_.data() + offset_;
    offset_ += size;
    return at;
  }

  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
  bool failed_ = false;
};

absl::Status truncated(const Cursor& cursor, const char* where) {
  return make_error(ErrorCode::kDataLoss, absl::StrCat("model file is truncated: it ends inside ",
                                                       where, ", near byte ", cursor.offset()));
}

struct PendingTensor {
  std::string name;
  Tensor tensor;
  uint64_t offset = 0;
};

}  // namespace

BlockShape block_shape(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return {1, 4};
    case TensorType::kF16:
    case TensorType::kBf16:
      return {1, 2};
    case TensorType::kQ4_0:
      return {32, 18};
    case TensorType::kQ4_1:
      return {32, 20};
    case TensorType::kQ8_0:
      return {32, 34};
    case TensorType::kQ4_K:
      return {256, 144};
    case TensorType::kQ6_K:
      return {256, 210};
  }
  return {};
}

namespace {

absl::Status wrong_type(const std::string& key, const char* wanted) {
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat("metadata key ", key, " is not ", wanted));
}

class Parser {
 public:
  explicit Parser(std::span<const std::byte> bytes) : bytes_(bytes), cursor_(bytes) {}

  absl::Status parse() {
    const uint32_t magic = cursor_.take<uint32_t>();
    if (!cursor_.failed() && magic != kMagic) {
      return make_error(ErrorCode::kInvalidArgument,
                        "not a GGUF file: the first four bytes are not 'GGUF'");
    }
    const uint32_t version = cursor_.take<uint32_t>();
    if (!cursor_.failed() && version != kVersion) {
      return make_error(
          ErrorCode::kUnsupported,
          absl::StrCat("GGUF version ", version, " is not supported, only ", kVersion));
    }
    const uint64_t tensor_count = cursor_.take<uint64_t>();
    const uint64_t key_count = cursor_.take<uint64_t>();
    if (cursor_.failed()) return truncated(cursor_, "the header");
    if (tensor_count > kMaxTensors || key_count > kMaxKeys) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("implausible GGUF header: ", tensor_count, " tensors, ",
                                     key_count, " keys"));
    }
    for (uint64_t i = 0; i < key_count; ++i) {
      if (absl::Status status = read_key(); !status.ok()) return status;
    }
    std::vector<PendingTensor> pending;
    for (uint64_t i = 0; i < tensor_count; ++i) {
      absl::StatusOr<PendingTensor> next = read_tensor();
      if (!next.ok()) return next.status();
      pending.push_back(*std::move(next));
    }
    return place(std::move(pending));
  }

  Gguf::Values values;
  Gguf::Tensors tensors;

 private:
  absl::Status read_key() {
    const std::string key(cursor_.take_string());
    const uint32_t type = cursor_.take<uint32_t>();
    if (cursor_.failed()) return truncated(cursor_, "the metadata");
    if (key.size() > kMaxNameBytes)
      return make_error(ErrorCode::kInvalidArgument, "metadata key too long");
    absl::StatusOr<Gguf::Value> value = type == kArray ? read_array(key) : read_scalar(type, key);
    if (!value.ok()) return value.status();
    if (cursor_.failed()) return truncated(cursor_, "the metadata");
    if (!values.emplace(key, *std::move(value)).second) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("metadata key ", key, " appears twice"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Gguf::Value> read_scalar(uint32_t type, const std::string& key) {
    switch (type) {
      case kUint8:
        return Gguf::Value(uint64_t{cursor_.take<uint8_t>()});
      case kInt8:
        return Gguf::Value(int64_t{cursor_.take<int8_t>()});
      case kUint16:
        return Gguf::Value(uint64_t{cursor_.take<uint16_t>()});
      case kInt16:
        return Gguf::Value(int64_t{cursor_.take<int16_t>()});
      case kUint32:
        return Gguf::Value(uint64_t{cursor_.take<uint32_t>()});
      case kInt32:
        return Gguf::Value(int64_t{cursor_.take<int32_t>()});
      case kFloat32:
        return Gguf::Value(double{cursor_.take<float>()});
      case kBool:
        return Gguf::Value(cursor_.take<uint8_t>() != 0);
      case kString:
        return Gguf::Value(cursor_.take_string());
      case kUint64:
        return Gguf::Value(cursor_.take<uint64_t>());
      case kInt64:
        return Gguf::Value(cursor_.take<int64_t>());
      case kFloat64:
        return Gguf::Value(cursor_.take<double>());
      default:
        return make_error(ErrorCode::kInvalidArgument,
                          absl::StrCat("metadata key ", key, " has unknown type ", type));
    }
  }

  // Arrays keep the order of the file. An element takes at least one byte, which bounds the count.
  absl::StatusOr<Gguf::Value> read_array(const std::string& key) {
    const uint32_t type = cursor_.take<uint32_t>();
    const uint64_t count = cursor_.take<uint64_t>();
    if (cursor_.failed() || count > cursor_.left()) return truncated(cursor_, "a metadata array");
    std::vector<std::string_view> texts;
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    for (uint64_t i = 0; i < count && !cursor_.failed(); ++i) {
      absl::StatusOr<Gguf::Value> element = read_scalar(type, key);
      if (!element.ok()) return element.status();
      std::visit(
          [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::string_view>) texts.push_back(value);
            if constexpr (std::is_integral_v<T>) integers.push_back(static_cast<int64_t>(value));
            if constexpr (std::is_same_v<T, double>) numbers.push_back(value);
          },
          *element);
    }
    if (type == kString) return Gguf::Value(std::move(texts));
    if (type == kFloat32 || type == kFloat64) return Gguf::Value(std::move(numbers));
    return Gguf::Value(std::move(integers));
  }

  absl::StatusOr<PendingTensor> read_tensor() {
    PendingTensor next;
    next.name = std::string(cursor_.take_string());
    const uint32_t dimensions = cursor_.take<uint32_t>();
    if (cursor_.failed()) return truncated(cursor_, "the tensor table");
    if (dimensions == 0 || dimensions > kMaxDimensions || next.name.size() > kMaxNameBytes) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("tensor ", next.name, " has ", dimensions, " dimensions"));
    }
    next.tensor.row = cursor_.take<uint64_t>();
    for (uint32_t i = 1; i < dimensions; ++i) {
      const uint64_t size = cursor_.take<uint64_t>();
      if (size == 0 || size > kMaxElements / next.tensor.rows) return bad_shape(next.name);
      next.tensor.rows *= size;
    }
    const uint32_t type = cursor_.take<uint32_t>();
    next.offset = cursor_.take<uint64_t>();
    if (cursor_.failed()) return truncated(cursor_, "the tensor table");
    next.tensor.type = static_cast<TensorType>(type);
    const BlockShape block = block_shape(next.tensor.type);
    if (block.elements == 0) {
      return make_error(ErrorCode::kUnsupported,
                        absl::StrCat("tensor ", next.name, " has element type ", type,
                                     ", which this engine does not read"));
    }
    const uint64_t row = next.tensor.row;
    if (row == 0 || row % block.elements != 0 || row > kMaxElements / next.tensor.rows) {
      return bad_shape(next.name);
    }
    return next;
  }

  absl::Status bad_shape(const std::string& name) const {
    if (cursor_.failed()) return truncated(cursor_, "the tensor table");
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("tensor ", name, " has an impossible shape"));
  }

  // Offsets in the table are relative to the first aligned byte after it.
  absl::Status place(std::vector<PendingTensor> pending) {
    uint64_t alignment = kDefaultAlignment;
    if (const auto given = values.find("general.alignment"); given != values.end()) {
      const auto* whole = std::get_if<uint64_t>(&given->second);
      if (whole == nullptr) return wrong_type("general.alignment", "an unsigned integer");
      alignment = *whole;
    }
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("alignment ", alignment, " is impossible"));
    }
    const uint64_t base = (cursor_.offset() + alignment - 1) / alignment * alignment;
    for (PendingTensor& next : pending) {
      const BlockShape block = block_shape(next.tensor.type);
      const uint64_t size = next.tensor.elements() / block.elements * block.bytes;
      if (base > bytes_.size() || next.offset > bytes_.size() - base ||
          size > bytes_.size() - base - next.offset) {
        return make_error(ErrorCode::kDataLoss,
                          absl::StrCat("model file is truncated: tensor ", next.name, " needs ",
                                       size, " bytes that are not there"));
      }
      next.tensor.data = bytes_.subspan(base + next.offset, size);
      if (!tensors.emplace(next.name, next.tensor).second) {
        return make_error(ErrorCode::kInvalidArgument,
                          absl::StrCat("tensor ", next.name, " appears twice"));
      }
    }
    return absl::OkStatus();
  }

  std::span<const std::byte> bytes_;
  Cursor cursor_;
};

}  // namespace

absl::StatusOr<Gguf> Gguf::parse(std::span<const std::byte> bytes) {
  Parser parser(bytes);
  if (absl::Status status = parser.parse(); !status.ok()) return status;
  return Gguf(std::move(parser.values), std::move(parser.tensors));
}

Gguf::Gguf(Values values, Tensors tensors)
    : values_(std::move(values)), tensors_(std::move(tensors)) {}

absl::StatusOr<const Gguf::Value*> Gguf::find(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    return make_error(ErrorCode::kNotFound, absl::StrCat("model file has no metadata key ", key));
  }
  return &found->second;
}

absl::StatusOr<uint64_t> Gguf::unsigned_value(const std::string& key) const {
  absl::StatusOr<const Value*> value = find(key);
  if (!value.ok()) return value.status();
  if (const auto* plain = std::get_if<uint64_t>(*value)) return *plain;
  const auto* with_sign = std::get_if<int64_t>(*value);
  if (with_sign != nullptr && *with_sign >= 0) return static_cast<uint64_t>(*with_sign);
  return wrong_type(key, "an unsigned integer");
}

absl::StatusOr<double> Gguf::number(const std::string& key) const {
  absl::StatusOr<const Value*> value = find(key);
  if (!value.ok()) return value.status();
  if (const auto* real = std::get_if<double>(*value)) return *real;
  absl::StatusOr<uint64_t> whole = unsigned_value(key);
  if (!whole.ok()) return wrong_type(key, "a number");
  return static_cast<double>(*whole);
}

absl::StatusOr<std::string_view> Gguf::text(const std::string& key) const {
  absl::StatusOr<const Value*> value = find(key);
  if (!value.ok()) return value.status();
  if (const auto* words = std::get_if<std::string_view>(*value)) return *words;
  return wrong_type(key, "a string");
}

absl::StatusOr<std::span<const std::string_view>> Gguf::texts(const std::string& key) const {
  absl::StatusOr<const Value*> value = find(key);
  if (!value.ok()) return value.status();
  if (const auto* list = std::get_if<std::vector<std::string_view>>(*value)) {
    return std::span<const std::string_view>(*list);
  }
  return wrong_type(key, "an array of strings");
}

absl::StatusOr<std::span<const int64_t>> Gguf::integers(const std::string& key) const {
  absl::StatusOr<const Value*> value = find(key);
  if (!value.ok()) return value.status();
  if (const auto* list = std::get_if<std::vector<int64_t>>(*value)) {
    return std::span<const int64_t>(*list);
  }
  return wrong_type(key, "an array of integers");
}

absl::StatusOr<Tensor> Gguf::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return make_error(ErrorCode::kNotFound, absl::StrCat("model file has no tensor ", name));
  }
  return found->second;
}

}  // namespace memdecay::reference
