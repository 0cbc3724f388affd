// Validation and canonical encoding of a Layout (see layout.h).
// Tags of the encoding: 1 model_id · 2 weights_fingerprint · 3 weights_revision · 4 adapter ·
// 5 tokenizer_fingerprint · 6 dtype · 7 quantisation · 8 scales · 9 number of groups · per group
// 16 layers · 17 kv_heads · 18 head_dim · 19 page_tokens · 20 packing · 21 window_tokens ·
// 22 scale_bytes_per_page · then 32 inv_freq_sha256 · 33 kind · 34 attention_factor · 35 pairing ·
// 36 n_rot · 48 tensor_parallel_size · 49 producer.
#include "proto/contract/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/canonical.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/page_key.h"

namespace memdecay {
namespace {

constexpr std::string_view kDomain = "memdecay.layout.v1";
// Words that mean "somebody else decides": two engines could mean different things by them.
constexpr std::array<std::string_view, 6> kUnresolved = {"auto",    "default", "unknown",
                                                         "unset", "any",     "?"};

struct DtypeRow {
  std::string_view name;
  uint32_t bytes;
};
constexpr std::array<DtypeRow, 6> kDtypes = {{{"f32", 4},
                                              {"f16", 2},
                                              {"bf16", 2},
                                              {"fp8_e4m3", 1},
                                              {"fp8_e5m2", 1},
                                              {"int8", 1}}};

absl::Status rejected(std::string field, std::string there, std::string todo) {
  return make_error(ErrorCode::kLayoutRejected, std::move(field), std::move(there),
                    std::move(todo));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

absl::Status check_text(std::string field, const std::string& value) {
  if (value.empty()) {
    return rejected(std::move(field), "empty", "give the resolved value; \"none\" where there is none");
  }
  if (value.size() > kMaxLayoutTextBytes) {
    return rejected(std::move(field), absl::StrCat(value.size(), " bytes"),
                    absl::StrCat("at most ", kMaxLayoutTextBytes, " bytes"));
  }
  const bool printable = std::all_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
  });
  if (!printable || value.front() == ' ' || value.back() == ' ') {
    return rejected(std::move(field), "control characters or outer blanks", "give plain text");
  }
  if (std::find(kUnresolved.begin(), kUnresolved.end(), lower(value)) != kUnresolved.end()) {
    return rejected(std::move(field), absl::StrCat("\"", value, "\""),
                    "the adapter resolves it: give what the engine really uses");
  }
  return absl::OkStatus();
}

absl::Status check_number(std::string field, uint32_t value, uint32_t most) {
  if (value == 0) return rejected(std::move(field), "0", "every field is mandatory");
  if (value > most) {
    return rejected(std::move(field), absl::StrCat(value), absl::StrCat("at most ", most));
  }
  return absl::OkStatus();
}

absl::Status check_texts(const Layout& layout) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"model_id", &layout.model_id},
      {"weights_fingerprint", &layout.weights_fingerprint},
      {"weights_revision", &layout.weights_revision},
      {"adapter", &layout.adapter},
      {"tokenizer_fingerprint", &layout.tokenizer_fingerprint},
      {"dtype", &layout.dtype},
      {"quantisation", &layout.quantisation},
      {"rope.kind", &layout.rope.kind},
      {"producer", &layout.producer},
  };
  for (const auto& [field, value] : texts) {
    if (absl::Status status = check_text(field, *value); !status.ok()) return status;
  }
  if (element_bytes(layout.dtype) == 0) {
    return rejected("dtype", absl::StrCat("\"", layout.dtype, "\""),
                    "one of f32 f16 bf16 fp8_e4m3 fp8_e5m2 int8");
  }
  return absl::OkStatus();
}

absl::Status check_group(const Layout& layout, size_t number) {
  const LayoutGroup& group = layout.groups[number];
  const std::string prefix = absl::StrCat("groups[", number, "].");
  const struct {
    const char* field;
    uint32_t value;
    uint32_t most;
  } numbers[] = {
      {"layers", group.layers, 4096},
      {"kv_heads", group.kv_heads, 4096},
      {"head_dim", group.head_dim, 65536},
      {"page_tokens", group.page_tokens, kMaxPageTokens},
      {"window_tokens", group.window_tokens, kFullAttention},
  };
  for (const auto& number_field : numbers) {
    absl::Status status = check_number(absl::StrCat(prefix, number_field.field),
                                       number_field.value, number_field.most);
    if (!status.ok()) return status;
  }
  if (absl::Status status = check_text(prefix + "packing", group.packing); !status.ok()) {
    return status;
  }
  const bool has_scales = group.scale_bytes_per_page > 0;
  if (has_scales != (layout.scales == ScalePlacement::kInPage)) {
    return rejected(prefix + "scale_bytes_per_page", absl::StrCat(group.scale_bytes_per_page),
                    "above 0 exactly when scales lie in the page");
  }
  if (group.page_tokens != layout.groups.front().page_tokens) {
    return rejected(prefix + "page_tokens",
                    absl::StrCat(group.page_tokens, ", groups[0] has ",
                                 layout.groups.front().page_tokens),
                    "one page size for all groups");
  }
  return absl::OkStatus();
}

absl::Status check_rope(const RopeIdentity& rope) {
  const bool none = rope.kind == "none";
  if (rope.pairing == RopePairing::kUnset || (rope.pairing == RopePairing::kNone) != none) {
    return rejected("rope.pairing", absl::StrCat(static_cast<int>(rope.pairing)),
                    "halves or interleaved; none exactly for kind \"none\"");
  }
  if ((rope.n_rot == 0) != none || rope.n_rot > 65536 || rope.n_rot % 2 != 0) {
    return rejected("rope.n_rot", absl::StrCat(rope.n_rot),
                    "an even number of dimensions; 0 exactly for kind \"none\"");
  }
  if ((rope.inv_freq_sha256 == Digest{}) != none) {
    return rejected("rope.inv_freq_sha256", none ? "given" : "zeros",
                    "SHA-256 of the float32 inverse frequencies; zeros exactly for kind \"none\"");
  }
  if (!std::isfinite(rope.attention_factor) || rope.attention_factor <= 0) {
    return rejected("rope.attention_factor", absl::StrCat(rope.attention_factor),
                    "a finite factor above 0; 1 where the kind has none");
  }
  return absl::OkStatus();
}

// Saturates far above kMaxPageBytes: peers choose the factors.
uint64_t page_bytes_saturating(const Layout& layout) {
  const long double element = element_bytes(layout.dtype);
  long double total = 0;
  for (const LayoutGroup& group : layout.groups) {
    total += 2.0L * group.layers * group.kv_heads * group.head_dim * group.page_tokens * element;
    total += group.scale_bytes_per_page;
  }
  const long double most = static_cast<long double>(kMaxPageBytes) * 2;
  return static_cast<uint64_t>(std::min(total, most));
}

}  // namespace

uint32_t element_bytes(const std::string& dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == dtype) return row.bytes;
  }
  return 0;
}

absl::Status validate(const Layout& layout) {
  if (absl::Status status = check_texts(layout); !status.ok()) return status;
  const int scales = static_cast<int>(layout.scales);
  if (scales < 1 || scales > static_cast<int>(ScalePlacement::kOutside)) {
    return rejected("scales", absl::StrCat(scales), "none, in page or outside");
  }
  const bool plain = layout.quantisation == "none";
  if (plain != (layout.scales == ScalePlacement::kNone)) {
    return rejected("scales", absl::StrCat("quantisation \"", layout.quantisation, "\""),
                    "scales are none exactly when quantisation is \"none\"");
  }
  if (layout.groups.empty() || layout.groups.size() > kMaxLayoutGroups) {
    return rejected("groups", absl::StrCat(layout.groups.size()),
                    absl::StrCat("1 to ", kMaxLayoutGroups, " groups"));
  }
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    if (absl::Status status = check_group(layout, i); !status.ok()) return status;
  }
  if (page_bytes_saturating(layout) > kMaxPageBytes) {
    return rejected("groups", "page too large", absl::StrCat("at most ", kMaxPageBytes, " bytes"));
  }
  if (absl::Status status = check_rope(layout.rope); !status.ok()) return status;
  return check_number("tensor_parallel_size", layout.tensor_parallel_size, 65536);
}

absl::Status validate(const Layout& layout, uint32_t page_tokens) {
  if (absl::Status status = validate(layout); !status.ok()) return status;
  if (layout.groups.front().page_tokens != page_tokens) {
    return rejected("groups[0].page_tokens",
                    absl::StrCat(layout.groups.front().page_tokens, ", the daemon has ",
                                 page_tokens),
                    "use the daemon's page size or configure page_tokens");
  }
  return absl::OkStatus();
}

uint64_t page_bytes(const Layout& layout) {
  const uint64_t bytes = page_bytes_saturating(layout);
  MEMDECAY_CHECK(bytes > 0 && bytes <= kMaxPageBytes);
  return bytes;
}

uint32_t page_tokens(const Layout& layout) {
  MEMDECAY_CHECK(!layout.groups.empty());
  return layout.groups.front().page_tokens;
}

std::string canonical_encoding(const Layout& layout) {
  CanonicalWriter writer(kDomain);
  writer.text(1, layout.model_id);
  writer.text(2, layout.weights_fingerprint);
  writer.text(3, layout.weights_revision);
  writer.text(4, layout.adapter);
  writer.text(5, layout.tokenizer_fingerprint);
  writer.text(6, layout.dtype);
  writer.text(7, layout.quantisation);
  writer.u32(8, static_cast<uint32_t>(layout.scales));
  writer.u32(9, static_cast<uint32_t>(layout.groups.size()));
  for (const LayoutGroup& group : layout.groups) {
    writer.u32(16, group.layers);
    writer.u32(17, group.kv_heads);
    writer.u32(18, group.head_dim);
    writer.u32(19, group.page_tokens);
    writer.text(20, group.packing);
    writer.u32(21, group.window_tokens);
    writer.u32(22, group.scale_bytes_per_page);
  }
  writer.bytes(32, layout.rope.inv_freq_sha256);
  writer.text(33, layout.rope.kind);
  writer.f64(34, layout.rope.attention_factor);
  writer.u32(35, static_cast<uint32_t>(layout.rope.pairing));
  writer.u32(36, layout.rope.n_rot);
  writer.u32(48, layout.tensor_parallel_size);
  writer.text(49, layout.producer);
  return writer.out();
}

NamespaceId namespace_id(const Layout& layout) { return {sha256(canonical_encoding(layout))}; }

}  // namespace memdecay
