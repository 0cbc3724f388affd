// A model file is checked before it is believed: every cut, every lie in its header.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "adapters/reference/dequantize.h"
#include "adapters/reference/gguf.h"
#include "adapters/reference/model.h"
#include "proto/contract/error.h"
#include "tests/unit/adapters/reference/gguf_writer.h"

namespace memdecay::reference {
namespace {

absl::StatusOr<Model> load(std::span<const std::byte> bytes) {
  absl::StatusOr<Gguf> gguf = Gguf::parse(bytes);
  if (!gguf.ok()) return gguf.status();
  ThreadPool pool(1);
  return Model::load(*gguf, pool);
}

ErrorCode code_of(const TinyModel& model) {
  return error_code(load(tiny_model_gguf(model)).status());
}

TinyModel smallest() {
  TinyModel model;
  model.layers = 1;
  model.width = 32;
  model.ffn = 32;
  model.context = 32;
  model.with_vocabulary = false;
  return model;
}

TEST(Gguf, whole_file_loads) {
  absl::StatusOr<Model> model = load(tiny_model_gguf(smallest()));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->shape().head_dim, 8u);
  EXPECT_TRUE(model->shape().tied);
  EXPECT_EQ(model->head().data(), model->embedding().data());
}

TEST(Gguf, file_cut_at_any_length_is_data_loss) {
  const std::vector<std::byte> whole = tiny_model_gguf(smallest());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(size));
    const absl::Status status = load(cut).status();
    ASSERT_EQ(error_code(status), ErrorCode::kDataLoss) << size << " bytes: " << status;
  }
}

TEST(Gguf, any_flipped_header_byte_is_an_error_or_a_model_never_a_crash) {
  const std::vector<std::byte> whole = tiny_model_gguf(smallest());
  for (size_t at = 0; at < 2200 && at < whole.size(); ++at) {
    for (const std::byte flip : {std::byte{0xff}, std::byte{0x01}, std::byte{0x80}}) {
      std::vector<std::byte> spoiled = whole;
      spoiled[at] ^= flip;
      const absl::StatusOr<Gguf> gguf = Gguf::parse(spoiled);
      if (gguf.ok()) (void)read_shape(*gguf);
    }
  }
}

TEST(Gguf, wrong_magic_is_an_invalid_argument) {
  std::vector<std::byte> bytes = tiny_model_gguf(smallest());
  bytes[0] = std::byte{'X'};
  const absl::Status status = Gguf::parse(bytes).status();
  EXPECT_EQ(error_code(status), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("GGUF"), absl::string_view::npos);
}

TEST(Gguf, other_version_is_unsupported) {
  GgufWriter writer;
  writer.version = 2;
  EXPECT_EQ(error_code(Gguf::parse(writer.bytes()).status()), ErrorCode::kUnsupported);
}

TEST(Gguf, other_architecture_is_unsupported_and_named) {
  TinyModel model = smallest();
  model.architecture = "qwen2";
  const absl::Status status = load(tiny_model_gguf(model)).status();
  EXPECT_EQ(error_code(status), ErrorCode::kUnsupported);
  EXPECT_NE(status.message().find("qwen2"), absl::string_view::npos) << status;
}

TEST(Gguf, missing_tensor_is_not_found_and_named) {
  TinyModel model = smallest();
  for (const char* name : {"token_embd.weight", "blk.0.attn_v.weight", "output_norm.weight"}) {
    model.left_out = name;
    const absl::Status status = load(tiny_model_gguf(model)).status();
    EXPECT_EQ(error_code(status), ErrorCode::kNotFound);
    EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
  }
}

TEST(Gguf, unknown_element_type_is_unsupported) {
  GgufWriter writer;
  writer.tensor("a", 10, {256}, std::vector<std::byte>(84));
  EXPECT_EQ(error_code(Gguf::parse(writer.bytes()).status()), ErrorCode::kUnsupported);
}

TEST(Gguf, row_of_half_a_block_is_an_invalid_argument) {
  GgufWriter writer;
  writer.tensor("a", 8, {48}, std::vector<std::byte>(68));
  EXPECT_EQ(error_code(Gguf::parse(writer.bytes()).status()), ErrorCode::kInvalidArgument);
}

TEST(Gguf, sizes_whose_product_overflows_are_an_invalid_argument) {
  GgufWriter writer;
  writer.tensor("a", 0, {uint64_t{1} << 33, uint64_t{1} << 33}, std::vector<std::byte>(4));
  EXPECT_EQ(error_code(Gguf::parse(writer.bytes()).status()), ErrorCode::kInvalidArgument);
}

TEST(Gguf, same_name_twice_is_an_invalid_argument) {
  GgufWriter keys;
  keys.integer("a", 1);
  keys.integer("a", 1);
  EXPECT_EQ(error_code(Gguf::parse(keys.bytes()).status()), ErrorCode::kInvalidArgument);
  GgufWriter tensors;
  tensors.tensor("a", 0, {1}, std::vector<std::byte>(4));
  tensors.tensor("a", 0, {1}, std::vector<std::byte>(4));
  EXPECT_EQ(error_code(Gguf::parse(tensors.bytes()).status()), ErrorCode::kInvalidArgument);
}

TEST(Gguf, heads_that_do_not_divide_are_an_invalid_argument) {
  TinyModel model = smallest();
  model.kv_heads = 3;
  EXPECT_EQ(code_of(model), ErrorCode::kInvalidArgument);
}

TEST(Gguf, claimed_shape_that_the_tensors_lack_is_an_invalid_argument) {
  GgufWriter writer;
  writer.text("general.architecture", "llama");
  for (const char* key : {"llama.block_count", "llama.attention.head_count"})
    writer.integer(key, 1);
  writer.integer("llama.embedding_length", 65536);
  writer.integer("llama.feed_forward_length", 65536);
  writer.integer("llama.context_length", 32768);
  writer.real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.tensor("token_embd.weight", 0, {8, 2}, std::vector<std::byte>(64));
  EXPECT_EQ(error_code(load(writer.bytes()).status()), ErrorCode::kInvalidArgument);
}

TEST(Gguf, value_of_another_type_is_an_invalid_argument) {
  GgufWriter writer;
  writer.text("a", "words");
  writer.integer("b", 4);
  const std::vector<std::byte> bytes = writer.bytes();
  const absl::StatusOr<Gguf> gguf = Gguf::parse(bytes);
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(error_code(gguf->unsigned_value("a").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(gguf->text("b").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(gguf->texts("b").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(gguf->text("c").status()), ErrorCode::kNotFound);
  EXPECT_EQ(*gguf->number("b"), 4.0);
}

TEST(ModelFile, missing_empty_and_cut_files_are_told_apart) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/model_" + std::to_string(::getpid()) + ".gguf";
  EXPECT_EQ(error_code(ModelFile::open(path).status()), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(ModelFile::open(folder).status()), ErrorCode::kInvalidArgument);
  std::ofstream(path, std::ios::binary).flush();
  EXPECT_EQ(error_code(ModelFile::open(path).status()), ErrorCode::kInvalidArgument);
  const std::vector<std::byte> whole = tiny_model_gguf(smallest());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.data()), static_cast<long>(whole.size() / 2));
  EXPECT_EQ(error_code(ModelFile::open(path).status()), ErrorCode::kDataLoss);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.data()), static_cast<long>(whole.size()));
  EXPECT_TRUE(ModelFile::open(path).ok());
  std::remove(path.c_str());
}

std::vector<std::byte> unhex(const std::string& hex) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

// float32 products may round differently from the package's order of operations by one unit.
TEST(Dequantize, blocks_agree_with_the_gguf_package) {
  std::ifstream file(std::string(MEMDECAY_GOLDEN) + "/quant_blocks.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.size(), 5u);
  for (const auto& item : golden.items()) {
    Tensor tensor;
    tensor.type = static_cast<TensorType>(item.value()["type"].get<uint32_t>());
    const std::vector<std::byte> block = unhex(item.value()["block"]);
    const std::vector<std::byte> wanted = unhex(item.value()["values_f32"]);
    tensor.row = block_shape(tensor.type).elements;
    tensor.data = block;
    ASSERT_EQ(wanted.size(), tensor.row * sizeof(float)) << item.key();
    std::vector<float> values(tensor.row);
    std::vector<float> expected(tensor.row);
    std::memcpy(expected.data(), wanted.data(), wanted.size());
    dequantize(tensor, 0, values);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_FLOAT_EQ(values[i], expected[i]) << item.key() << " element " << i;
    }
  }
}

TEST(Dequantize, slice_equals_that_part_of_the_whole) {
  Noise noise(3);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ4_0,
                                TensorType::kQ4_1, TensorType::kQ8_0}) {
    Tensor tensor;
    tensor.type = type;
    tensor.row = 128;
    const std::vector<std::byte> bytes = random_tensor(noise, type, 128);
    tensor.data = bytes;
    std::vector<float> whole(128);
    std::vector<float> part(32);
    dequantize(tensor, 0, whole);
    dequantize(tensor, 64, part);
    EXPECT_EQ(0, std::memcmp(part.data(), whole.data() + 64, 32 * sizeof(float)));
  }
}

}  // namespace
}  // namespace memdecay::reference
