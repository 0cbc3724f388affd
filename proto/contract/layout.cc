// Validation and canonical encoding of a Layout (see layout.h).
// Tags of the encoding: 1 model · 2 weights_fingerprint · 3 revision · 4 adapter ·
// 5 tokenizer_fingerprint · 6 dtype · 7 quantization · 8 scales · 9 number of groups · per group
// 16 layers · 17 kv_heads · 18 head_dim · 19 page_tokens · 20 packing · 21 window ·
// 22 page_bytes · then 32 inv_freq_hash · 33 kind · 34 attention_factor · 35 pairing · 36 n_rot ·
// 48 tensor_parallel · 49 producer.
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
constexpr std::array<std::string_view, 5> kUnresolved = {"auto", "unknown", "unset", "any", "?"};

struct DtypeRow {
  std::string_view name;
  uint32_t bits;
};
constexpr std::array<DtypeRow, 7> kDtypes = {{{"f32", 32},
                                              {"f16", 16},
                                              {"bf16", 16},
                                              {"fp8_e4m3", 8},
                                              {"fp8_e5m2", 8},
                                              {"int8", 8},
                                              {"int4", 4}}};

// 0: no such dtype.
uint32_t element_bits(std::string_view dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == dtype) return row.bits;
  }
  return 0;
}

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
    return rejected(std::move(field), "empty", "give the value, or \"none\" where there is none");
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

absl::Status check_number(std::string field, uint64_t value, uint64_t most) {
  if (value == 0) return rejected(std::move(field), "0", "every field is mandatory");
  if (value > most) {
    return rejected(std::move(field), absl::StrCat(value), absl::StrCat("at most ", most));
  }
  return absl::OkStatus();
}

absl::Status check_texts(const Layout& layout) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"model", &layout.model},
      {"weights_fingerprint", &layout.weights_fingerprint},
      {"revision", &layout.revision},
      {"adapter", &layout.adapter},
      {"tokenizer_fingerprint", &layout.tokenizer_fingerprint},
      {"dtype", &layout.dtype},
      {"quantization", &layout.quantization},
      {"scales", &layout.scales},
      {"rope.inv_freq_hash", &layout.rope.inv_freq_hash},
      {"rope.kind", &layout.rope.kind},
      {"rope.pairing", &layout.rope.pairing},
      {"producer", &layout.producer},
  };
  for (const auto& [field, value] : texts) {
    if (absl::Status status = check_text(field, *value); !status.ok()) return status;
  }
  if (element_bits(layout.dtype) == 0) {
    return rejected("dtype", absl::StrCat("\"", layout.dtype, "\""),
                    "one of f32 f16 bf16 fp8_e4m3 fp8_e5m2 int8 int4");
  }
  const bool known =
      layout.scales == "none" || layout.scales == "inline" || layout.scales == "segment";
  if (!known || (layout.scales == "none") != (layout.quantization == "none")) {
    return rejected(
        "scales",
        absl::StrCat("\"", layout.scales, "\" with quantization \"", layout.quantization, "\""),
        "inline or segment; none exactly when quantization is none");
  }
  return absl::OkStatus();
}

absl::Status check_group(const Layout& layout, size_t number) {
  const LayoutGroup& group = layout.groups[number];
  const std::string prefix = absl::StrCat("groups[", number, "].");
  const struct {
    const char* field;
    uint64_t value;
    uint64_t most;
  } numbers[] = {
      {"layers", group.layers, 4096},
      {"kv_heads", group.kv_heads, 4096},
      {"head_dim", group.head_dim, 65536},
      {"page_tokens", group.page_tokens, kMaxPageTokens},
      {"page_bytes", group.page_bytes, kMaxPageBytes},
  };
  for (const auto& [field, value, most] : numbers) {
    absl::Status status = check_number(absl::StrCat(prefix, field), value, most);
    if (!status.ok()) return status;
  }
  if (absl::Status status = check_text(prefix + "packing", group.packing); !status.ok()) {
    return status;
  }
  if (group.page_tokens != layout.groups.front().page_tokens) {
    return rejected(
        prefix + "page_tokens",
        absl::StrCat(group.page_tokens, ", groups[0] has ", layout.groups.front().page_tokens),
        "one page size for all groups");
  }
  // Once the elements, not twice: a latent cache keeps one vector for K and V. The factors are
  // bounded above, so only their product can be large.
  const long double elements =
      static_cast<long double>(group.layers) * group.kv_heads * group.head_dim * group.page_tokens;
  if (elements * element_bits(layout.dtype) > static_cast<long double>(group.page_bytes) * 8) {
    return rejected(prefix + "page_bytes", absl::StrCat(group.page_bytes),
                    "less than its elements need: give K, V and side data together");
  }
  return absl::OkStatus();
}

absl::Status check_rope(const RopeIdentity& rope) {
  const bool none = rope.kind == "none";
  const bool known =
      rope.pairing == "none" || rope.pairing == "interleaved" || rope.pairing == "half";
  if (!known || (rope.pairing == "none") != none) {
    return rejected("rope.pairing", absl::StrCat("\"", rope.pairing, "\""),
                    "interleaved or half; none exactly for kind none");
  }
  if ((rope.n_rot == 0) != none || rope.n_rot > 65536 || rope.n_rot % 2 != 0) {
    return rejected("rope.n_rot", absl::StrCat(rope.n_rot),
                    "an even number of dimensions; 0 exactly for kind none");
  }
  if ((rope.inv_freq_hash == "none") != none) {
    return rejected("rope.inv_freq_hash", absl::StrCat("\"", rope.inv_freq_hash, "\""),
                    "the hash of the inverse frequencies; none exactly for kind none");
  }
  if (!std::isfinite(rope.attention_factor) || rope.attention_factor <= 0) {
    return rejected("rope.attention_factor", absl::StrCat(rope.attention_factor),
                    "a finite factor above 0; 1 where the kind has none");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status validate(const Layout& layout) {
  if (absl::Status status = check_texts(layout); !status.ok()) return status;
  if (layout.groups.empty() || layout.groups.size() > kMaxLayoutGroups) {
    return rejected("groups", absl::StrCat(layout.groups.size()),
                    absl::StrCat("1 to ", kMaxLayoutGroups, " groups"));
  }
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    if (absl::Status status = check_group(layout, i); !status.ok()) return status;
  }
  if (const uint64_t bytes = page_bytes(layout); bytes > kMaxPageBytes) {
    return rejected("groups", absl::StrCat("a page of ", bytes, " bytes"),
                    absl::StrCat("at most ", kMaxPageBytes));
  }
  if (absl::Status status = check_rope(layout.rope); !status.ok()) return status;
  return check_number("tensor_parallel", layout.tensor_parallel, 65536);
}

absl::Status validate(const Layout& layout, uint32_t daemon_page_tokens) {
  if (absl::Status status = validate(layout); !status.ok()) return status;
  if (page_tokens(layout) != daemon_page_tokens) {
    return rejected("groups[0].page_tokens",
                    absl::StrCat(page_tokens(layout), ", the daemon has ", daemon_page_tokens),
                    "use the daemon's page size or configure page_tokens");
  }
  return absl::OkStatus();
}

uint64_t page_bytes(const Layout& layout) {
  uint64_t bytes = 0;
  for (const LayoutGroup& group : layout.groups) bytes += group.page_bytes;
  return bytes;
}

uint32_t page_tokens(const Layout& layout) {
  MEMDECAY_CHECK(!layout.groups.empty());
  return layout.groups.front().page_tokens;
}

std::string canonical_encoding(const Layout& layout) {
  CanonicalWriter writer(kDomain);
  writer.text(1, layout.model);
  writer.text(2, layout.weights_fingerprint);
  writer.text(3, layout.revision);
  writer.text(4, layout.adapter);
  writer.text(5, layout.tokenizer_fingerprint);
  writer.text(6, layout.dtype);
  writer.text(7, layout.quantization);
  writer.text(8, layout.scales);
  writer.u32(9, static_cast<uint32_t>(layout.groups.size()));
  for (const LayoutGroup& group : layout.groups) {
    writer.u32(16, group.layers);
    writer.u32(17, group.kv_heads);
    writer.u32(18, group.head_dim);
    writer.u32(19, group.page_tokens);
    writer.text(20, group.packing);
    writer.u32(21, group.window);
    writer.u64(22, group.page_bytes);
  }
  writer.text(32, layout.rope.inv_freq_hash);
  writer.text(33, layout.rope.kind);
  writer.f64(34, layout.rope.attention_factor);
  writer.text(35, layout.rope.pairing);
  writer.u32(36, layout.rope.n_rot);
  writer.u32(48, layout.tensor_parallel);
  writer.text(49, layout.producer);
  return writer.out();
}

NamespaceId namespace_id(const Layout& layout) { return {sha256(canonical_encoding(layout))}; }

}  // namespace memdecay
