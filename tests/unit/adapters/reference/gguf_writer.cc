// The tiny model of gguf_writer.h: random weights that are the same on every machine.
#include "tests/unit/adapters/reference/gguf_writer.h"

namespace memdecay::reference {
namespace {

void put_half(std::vector<std::byte>& bytes, size_t at, float value) {
  const uint16_t half = half_of_float(value);
  std::memcpy(bytes.data() + at, &half, sizeof(half));
}

std::string byte_character(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

void add_vocabulary(GgufWriter& writer) {
  std::vector<std::string> tokens;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    tokens.push_back(byte_character(visible ? byte : next++));
  }
  std::vector<int32_t> types(256, 1);
  for (const char* special : {"<|im_start|>", "<|im_end|>"}) {
    tokens.push_back(special);
    types.push_back(3);
  }
  for (const char* merged : {"he", "ll", "hell", "hello"}) {
    tokens.push_back(merged);
    types.push_back(1);
  }
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "smollm");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", types);
  writer.texts("tokenizer.ggml.merges", {"h e", "l l", "he ll", "hell o"});
}

}  // namespace

std::vector<std::byte> random_tensor(Noise& noise, TensorType type, size_t elements) {
  const BlockShape shape = block_shape(type);
  std::vector<std::byte> bytes(elements / shape.elements * shape.bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(noise.next() & 0xff);
  for (size_t at = 0; at < bytes.size(); at += shape.bytes) {
    if (type == TensorType::kF32) {
      const float value = noise.between(-0.2f, 0.2f);
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    } else if (type == TensorType::kF16) {
      put_half(bytes, at, noise.between(-0.2f, 0.2f));
    } else {
      put_half(bytes, at, type == TensorType::kQ8_0 ? 0.002f : 0.03f);
      if (type == TensorType::kQ4_1) put_half(bytes, at + 2, -0.22f);
    }
  }
  return bytes;
}

std::vector<std::byte> tiny_model_gguf(const TinyModel& model) {
  GgufWriter writer;
  writer.text("general.architecture", model.architecture);
  writer.integer("llama.block_count", model.layers);
  writer.integer("llama.embedding_length", model.width);
  writer.integer("llama.feed_forward_length", model.ffn);
  writer.integer("llama.attention.head_count", model.heads);
  writer.integer("llama.attention.head_count_kv", model.kv_heads);
  writer.integer("llama.context_length", model.context);
  writer.real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.real("llama.rope.freq_base", 10000.0f);
  if (model.with_vocabulary) add_vocabulary(writer);
  Noise noise(42);
  const auto add = [&](const std::string& name, TensorType type, uint64_t row, uint64_t rows) {
    const std::vector<std::byte> data = random_tensor(noise, type, row * rows);
    if (name == model.left_out) return;
    std::vector<uint64_t> sizes = {row};
    if (rows > 1) sizes.push_back(rows);
    writer.tensor(name, static_cast<uint32_t>(type), sizes, data);
  };
  const uint64_t kv_width = model.width / model.heads * model.kv_heads;
  add("token_embd.weight", TensorType::kQ8_0, model.width, model.vocabulary());
  if (!model.tied) add("output.weight", TensorType::kQ8_0, model.width, model.vocabulary());
  add("output_norm.weight", TensorType::kF32, model.width, 1);
  for (uint32_t i = 0; i < model.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    add(prefix + "attn_norm.weight", TensorType::kF32, model.width, 1);
    add(prefix + "attn_q.weight", model.linear, model.width, model.width);
    add(prefix + "attn_k.weight", model.linear, model.width, kv_width);
    add(prefix + "attn_v.weight", model.linear, model.width, kv_width);
    add(prefix + "attn_output.weight", model.linear, model.width, model.width);
    add(prefix + "ffn_norm.weight", TensorType::kF32, model.width, 1);
    add(prefix + "ffn_gate.weight", model.linear, model.width, model.ffn);
    add(prefix + "ffn_up.weight", model.linear, model.width, model.ffn);
    add(prefix + "ffn_down.weight", model.linear, model.ffn, model.width);
  }
  return writer.bytes();
}

}  // namespace memdecay::reference
