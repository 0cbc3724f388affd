// The forward pass; see decoder.h. Every loop over tokens or heads has independent items.
#include "adapters/reference/decoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

constexpr size_t kRowsPerItem = 64;  // of a matrix: enough work to be worth a hand-over
constexpr size_t kMaxItems = 4096;

size_t context_pages(const ModelShape& shape, size_t page_tokens) {
  return (shape.context + page_tokens - 1) / page_tokens;
}

size_t work_bytes(const ModelShape& s, size_t page_tokens, int threads) {
  const auto batch = [](size_t width) {
    return FloatArena::footprint(Decoder::kBatchTokens * width);
  };
  const size_t scores = context_pages(s, page_tokens) * page_tokens * static_cast<size_t>(threads);
  return 3 * batch(s.width) + batch(s.qkv_width()) + batch(s.query_width()) + batch(2 * s.ffn) +
         FloatArena::footprint(scores);
}

absl::Status invalid(std::string asked, std::string there = {}) {
  return make_error(ErrorCode::kInvalidArgument, std::move(asked), std::move(there));
}

absl::Status check_masses(const MassRequest& request, const ModelShape& shape) {
  for (const HeadChoice& choice : request.choices) {
    for (const LayerHead& one : choice) {
      if (one.layer >= shape.layers) return invalid(absl::StrCat("masses of layer ", one.layer));
      if (one.head >= shape.heads) return invalid(absl::StrCat("masses of head ", one.head));
    }
  }
  if (request.group_queries != 0 && request.last_queries != 0) {
    return invalid("masses of the last queries in groups");
  }
  return absl::OkStatus();
}

}  // namespace

Decoder::Decoder(const Model& model, ThreadPool& pool, KvType type, KernelChoice choice,
                 size_t page_tokens)
    : model_(model),
      pool_(pool),
      kernels_(choose_kernels(choice)),
      layout_(model.shape().kv_layout(type, page_tokens)),
      arena_(work_bytes(model.shape(), page_tokens, pool.threads())) {
  MEMDECAY_CHECK(page_tokens > 0 && page_tokens % 8 == 0);
  const ModelShape& s = model.shape();
  residual_ = arena_.take(kBatchTokens * s.width);
  normal_ = arena_.take(kBatchTokens * s.width);
  delta_ = arena_.take(kBatchTokens * s.width);
  qkv_ = arena_.take(kBatchTokens * s.qkv_width());
  attended_ = arena_.take(kBatchTokens * s.query_width());
  gate_up_ = arena_.take(kBatchTokens * 2 * s.ffn);
  const size_t pages = context_pages(s, page_tokens);
  weights_ = arena_.take(pages * page_tokens * static_cast<size_t>(pool.threads()));
  resident_.reserve(pages);
  resident_address_.reserve(pages);
}

absl::Status Decoder::check(const ForwardInput& input) const {
  const ModelShape& shape = model_.shape();
  const size_t count = input.tokens.size();
  if (count == 0) return invalid("a forward pass of no tokens");
  for (const TokenId token : input.tokens) {
    if (token >= shape.vocabulary) {
      return invalid(absl::StrCat("token ", token),
                     absl::StrCat("the vocabulary has ", shape.vocabulary));
    }
  }
  if (input.first_position > shape.context || count > shape.context - input.first_position) {
    return make_error(ErrorCode::kOutOfRange,
                      absl::StrCat(count, " tokens at position ", input.first_position),
                      absl::StrCat("the model's context is ", shape.context));
  }
  const size_t first_page = input.first_position / layout_.page_tokens;
  const size_t last_page = (input.first_position + count - 1) / layout_.page_tokens;
  if (last_page >= input.pages.read.size() || last_page >= input.pages.write.size()) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("page ", last_page),
                      absl::StrCat("the table has ", input.pages.read.size(), " pages"));
  }
  for (size_t page = first_page; page <= last_page; ++page) {
    if (input.pages.read[page] == nullptr || input.pages.write[page] == nullptr) {
      return invalid(absl::StrCat("tokens in page ", page), "it is a hole or not writable");
    }
  }
  return input.masses == nullptr ? absl::OkStatus() : check_masses(*input.masses, shape);
}

void Decoder::find_resident(const PageTable& pages, size_t last_position) {
  resident_.clear();
  resident_address_.clear();
  for (size_t page = 0; page <= last_position / layout_.page_tokens; ++page) {
    if (pages.read[page] == nullptr) continue;
    resident_.push_back(static_cast<PageIndex>(page));
    resident_address_.push_back(pages.read[page]);
  }
}

absl::StatusOr<ForwardOutput> Decoder::forward(const ForwardInput& input) {
  if (absl::Status status = check(input); !status.ok()) return status;
  const ModelShape& shape = model_.shape();
  const size_t count = input.tokens.size();
  find_resident(input.pages, input.first_position + count - 1);
  std::optional<MassCollector> masses;
  if (input.masses != nullptr) {
    masses.emplace(*input.masses, MassCollector::Call{.pages = resident_,
                                                      .page_tokens = layout_.page_tokens,
                                                      .first_position = input.first_position,
                                                      .queries = count,
                                                      .layers = shape.layers,
                                                      .heads = shape.heads});
  }
  ForwardOutput out;
  if (input.logits == LogitRows::kAll) out.logits.resize(count * shape.vocabulary);
  if (input.logits == LogitRows::kLast) out.logits.resize(shape.vocabulary);
  for (size_t at = 0; at < count; at += kBatchTokens) {
    const size_t size = std::min(kBatchTokens, count - at);
    if (masses) masses->begin_chunk(size);
    run_chunk({input.tokens.subspan(at, size), input.first_position + at, &input,
               masses ? &*masses : nullptr});
    if (masses) masses->end_chunk();
    if (input.logits == LogitRows::kAll) {
      const size_t row = at * shape.vocabulary;
      write_logits(0, size, std::span(out.logits).subspan(row, size * shape.vocabulary));
    } else if (input.logits == LogitRows::kLast && at + size == count) {
      write_logits(size - 1, 1, out.logits);
    }
  }
  if (masses) out.masses = masses->results();
  return out;
}

void Decoder::run_chunk(const Chunk& chunk) {
  const size_t width = model_.shape().width;
  for (size_t t = 0; t < chunk.tokens.size(); ++t) {
    const std::span<const float> row =
        model_.embedding().subspan(size_t{chunk.tokens[t]} * width, width);
    std::copy(row.begin(), row.end(), residual_.begin() + static_cast<std::ptrdiff_t>(t * width));
  }
  const size_t used = chunk.tokens.size() * width;
  std::fill_n(delta_.begin(), used, 0.0f);
  for (size_t layer = 0; layer < model_.shape().layers; ++layer) {
    attention(chunk, layer);
    feed_forward(chunk, layer);
  }
  for (size_t i = 0; i < used; ++i) residual_[i] += delta_[i];
}

// The residual takes up what the last block computed, and becomes the next block's input.
void Decoder::add_and_normalise(size_t count, std::span<const float> gain) {
  const ModelShape& s = model_.shape();
  pool_.run(static_cast<uint32_t>(count), [&](uint32_t t, int) {
    float* residual = residual_.data() + t * s.width;
    const float* delta = delta_.data() + t * s.width;
    for (size_t i = 0; i < s.width; ++i) residual[i] += delta[i];
    kernels_.rms_norm(residual, gain.data(), s.width, s.epsilon, normal_.data() + t * s.width);
  });
}

void Decoder::attention(const Chunk& chunk, size_t layer) {
  const ModelShape& s = model_.shape();
  const LayerWeights& weights = model_.layer(layer);
  const size_t count = chunk.tokens.size();
  add_and_normalise(count, weights.attention_norm);
  multiply({weights.qkv.data(), normal_.data(), qkv_.data(), s.width, s.width, s.qkv_width(), count,
            0, 0},
           s.qkv_width());
  pool_.run(static_cast<uint32_t>(count),
            [&](uint32_t t, int) { rotate_and_store(chunk, layer, t); });
  pool_.run(static_cast<uint32_t>(count * s.heads), [&](uint32_t item, int member) {
    attend(chunk, layer, item / s.heads, item % s.heads, member);
  });
  if (chunk.masses != nullptr) chunk.masses->end_layer(layer);
  multiply({weights.attention_out.data(), attended_.data(), delta_.data(), s.query_width(),
            s.query_width(), s.width, count, 0, 0},
           s.width);
}

void Decoder::rotate_and_store(const Chunk& chunk, size_t layer, size_t token) {
  const ModelShape& s = model_.shape();
  const size_t position = chunk.first_position + token;
  const size_t half = s.head_dim / 2;
  const float* cosine = model_.cosines().data() + position * half;
  const float* sine = model_.sines().data() + position * half;
  float* row = qkv_.data() + token * s.qkv_width();
  for (size_t head = 0; head < s.heads + s.kv_heads; ++head) {
    float* pair = row + head * s.head_dim;
    for (size_t i = 0; i < half; ++i, pair += 2) {
      const float x = pair[0];
      const float y = pair[1];
      pair[0] = x * cosine[i] - y * sine[i];
      pair[1] = x * sine[i] + y * cosine[i];
    }
  }
  std::byte* page = chunk.input->pages.write[position / layout_.page_tokens];
  const size_t in_page = position % layout_.page_tokens;
  const float* keys = row + s.query_width();
  const float* values = keys + s.kv_width();
  for (size_t head = 0; head < s.kv_heads; ++head) {
    kernels_.store(layout_.type, keys + head * s.head_dim, s.head_dim,
                   page + layout_.offset(layer, KvPart::kKey, head, in_page));
    kernels_.store(layout_.type, values + head * s.head_dim, s.head_dim,
                   page + layout_.offset(layer, KvPart::kValue, head, in_page));
  }
}

void Decoder::attend(const Chunk& chunk, size_t layer, size_t token, size_t head, int member) {
  const ModelShape& s = model_.shape();
  const size_t position = chunk.first_position + token;
  const PageIndex own_page = static_cast<PageIndex>(position / layout_.page_tokens);
  const auto end = std::upper_bound(resident_.begin(), resident_.end(), own_page);
  const size_t pages = static_cast<size_t>(end - resident_.begin());
  const size_t kv_head = head / (s.heads / s.kv_heads);
  float* weights = weights_.data() + static_cast<size_t>(member) *
                                         context_pages(s, layout_.page_tokens) *
                                         layout_.page_tokens;
  const AttentionTask task{
      .query = qkv_.data() + token * s.qkv_width() + head * s.head_dim,
      .output = attended_.data() + token * s.query_width() + head * s.head_dim,
      .weights = weights,
      .pages = std::span<const std::byte* const>(resident_address_).first(pages),
      .last_tokens = position % layout_.page_tokens + 1,
      .page_tokens = layout_.page_tokens,
      .head_dim = s.head_dim,
      .key_offset = layout_.offset(layer, KvPart::kKey, kv_head, 0),
      .value_offset = layout_.offset(layer, KvPart::kValue, kv_head, 0),
      .scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
  };
  kernels_.attend(layout_.type, task);
  if (chunk.masses != nullptr && chunk.masses->wants(layer, head)) {
    chunk.masses->add(token * s.heads + head, {weights, pages * layout_.page_tokens});
  }
}

void Decoder::feed_forward(const Chunk& chunk, size_t layer) {
  const ModelShape& s = model_.shape();
  const LayerWeights& weights = model_.layer(layer);
  const size_t count = chunk.tokens.size();
  add_and_normalise(count, weights.ffn_norm);
  multiply({weights.gate_up.data(), normal_.data(), gate_up_.data(), s.width, s.width, 2 * s.ffn,
            count, 0, 0},
           2 * s.ffn);
  pool_.run(static_cast<uint32_t>(count), [&](uint32_t t, int) {
    float* gate = gate_up_.data() + t * 2 * s.ffn;
    kernels_.gated(gate, gate + s.ffn, s.ffn);
  });
  multiply(
      {weights.down.data(), gate_up_.data(), delta_.data(), s.ffn, 2 * s.ffn, s.width, count, 0, 0},
      s.width);
}

void Decoder::multiply(const MatrixTask& task, size_t rows) {
  const size_t per_item = std::max(kRowsPerItem, (rows + kMaxItems - 1) / kMaxItems);
  const size_t items = (rows + per_item - 1) / per_item;
  pool_.run(static_cast<uint32_t>(items), [&](uint32_t item, int) {
    MatrixTask part = task;
    part.row_begin = item * per_item;
    part.row_end = std::min(rows, part.row_begin + per_item);
    kernels_.multiply(part);
  });
}

void Decoder::write_logits(size_t first, size_t count, std::span<float> logits) {
  const ModelShape& s = model_.shape();
  for (size_t t = 0; t < count; ++t) {
    kernels_.rms_norm(residual_.data() + (first + t) * s.width, model_.output_norm().data(),
                      s.width, s.epsilon, normal_.data() + t * s.width);
  }
  multiply({model_.head().data(), normal_.data(), logits.data(), s.width, s.width, s.vocabulary,
            count, 0, 0},
           s.vocabulary);
}

}  // namespace memdecay::reference
