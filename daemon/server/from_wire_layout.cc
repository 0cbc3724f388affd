// Layouts and content keys from the wire (from_wire.h): the part that hashes.
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/server/from_wire.h"
#include "daemon/server/wire_keys.h"
#include "proto/contract/error.h"
#include "proto/contract/page_key.h"

namespace memdecay::server {
namespace {

namespace limits = base::limits;

absl::Status rejected(std::string field, std::string there, std::string todo) {
  return make_error(ErrorCode::kLayoutRejected, std::move(field), std::move(there),
                    std::move(todo));
}

}  // namespace

absl::StatusOr<Layout> layout_from_wire(const v1::Layout& wire) {
  if (static_cast<size_t>(wire.groups_size()) > kMaxLayoutGroups) {
    return rejected("groups", absl::StrCat(wire.groups_size(), " groups"),
                    absl::StrCat("at most ", kMaxLayoutGroups));
  }
  Layout layout{.model = wire.model(),
                .weights_fingerprint = wire.weights_fingerprint(),
                .revision = wire.revision(),
                .adapter = wire.adapter(),
                .tokenizer_fingerprint = wire.tokenizer_fingerprint(),
                .dtype = wire.dtype(),
                .quantization = wire.quantization(),
                .scales = wire.scales(),
                .rope = {.inv_freq_hash = wire.rope().inv_freq_hash(),
                         .kind = wire.rope().kind(),
                         .attention_factor = wire.rope().attention_factor(),
                         .pairing = wire.rope().pairing(),
                         .n_rot = wire.rope().n_rot()},
                .tensor_parallel = wire.tensor_parallel(),
                .producer = wire.producer()};
  for (const v1::LayoutGroup& group : wire.groups()) {
    layout.groups.push_back({.layers = group.layers(),
                             .kv_heads = group.kv_heads(),
                             .head_dim = group.head_dim(),
                             .page_tokens = group.page_tokens(),
                             .packing = group.packing(),
                             .window = group.window(),
                             .page_bytes = group.page_bytes()});
  }
  if (absl::Status status = validate(layout); !status.ok()) return status;
  return layout;
}

absl::StatusOr<ledger::LayoutRef> layout_ref(const v1::Layout& wire, const WireRules& rules) {
  const absl::StatusOr<Layout> layout = layout_from_wire(wire);
  if (!layout.ok()) return layout.status();
  if (absl::Status status = validate(*layout, rules.page_tokens); !status.ok()) return status;
  const uint64_t bytes = page_bytes(*layout);
  if (rules.page_bytes != 0 && bytes != rules.page_bytes) {
    return rejected("page_bytes",
                    absl::StrCat(bytes, " bytes a page, this daemon has ", rules.page_bytes),
                    "use another engine configuration or change page_bytes of the daemon");
  }
  return ledger::LayoutRef{
      .name_space = namespace_id(*layout), .page_tokens = rules.page_tokens, .page_bytes = bytes};
}

absl::StatusOr<std::vector<std::string>> extras_from_wire(
    const google::protobuf::RepeatedPtrField<std::string>& extras) {
  if (static_cast<size_t>(extras.size()) > limits::kExtrasAMessage) {
    return make_error(ErrorCode::kInvalidArgument, "extras",
                      absl::StrCat(extras.size(), " of them"),
                      absl::StrCat("at most ", limits::kExtrasAMessage));
  }
  std::vector<std::string> out;
  for (const std::string& extra : extras) {
    if (extra.empty() || extra.size() > limits::kExtraBytes) {
      return make_error(ErrorCode::kInvalidArgument, "extras",
                        absl::StrCat("one of ", extra.size(), " bytes"),
                        absl::StrCat("1 to ", limits::kExtraBytes, " bytes each"));
    }
    out.push_back(extra);
  }
  return out;
}

absl::StatusOr<KeyedTokens> keys_from_wire(
    const v1::Layout& wire, const google::protobuf::RepeatedField<uint32_t>& tokens,
    const google::protobuf::RepeatedPtrField<std::string>& extras, const WireRules& rules) {
  const absl::StatusOr<ledger::LayoutRef> layout = layout_ref(wire, rules);
  if (!layout.ok()) return layout.status();
  if (static_cast<size_t>(tokens.size()) > limits::kTokensAMessage) {
    return make_error(ErrorCode::kInvalidArgument, "tokens", absl::StrCat(tokens.size(), " ids"),
                      absl::StrCat("at most ", limits::kTokensAMessage));
  }
  const absl::StatusOr<std::vector<std::string>> texts = extras_from_wire(extras);
  if (!texts.ok()) return texts.status();
  std::vector<ExtraKey> keys_of_extras;
  for (const std::string& text : *texts) keys_of_extras.push_back(extra_key(text));

  // Only whole pages have a key.
  const size_t pages = static_cast<size_t>(tokens.size()) / rules.page_tokens;
  KeyedTokens out{.layout = *layout};
  out.tokens.assign(tokens.begin(), tokens.begin() + static_cast<int>(pages * rules.page_tokens));
  const bool partial = out.tokens.size() < static_cast<size_t>(tokens.size());
  if (partial) out.tail = ledger::Tail::kPartial;
  std::optional<PageKey> parent;
  for (size_t page = 0; page < pages; ++page) {
    const std::span<const TokenId> ids =
        std::span(out.tokens).subspan(page * rules.page_tokens, rules.page_tokens);
    parent = page_key(layout->name_space, parent, ids, keys_of_extras);
    out.keys.push_back(*parent);
  }
  return out;
}

}  // namespace memdecay::server
