// Byte-level BPE over token ids; splitting by PCRE2. See tokenizer.h.
#include "adapters/reference/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

constexpr uint32_t kNoMerge = std::numeric_limits<uint32_t>::max();
constexpr int64_t kControlToken = 3;
constexpr int64_t kUserDefinedToken = 4;

// "smollm": every digit is a word of its own, the rest is GPT-2's expression.
constexpr char kSmolLmPattern[] =
    R"(\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| (?=\p{N})|\s+(?=\p{N}))"
    R"(| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

uint64_t pair_key(TokenId left, TokenId right) { return (uint64_t{left} << 32) | right; }

std::string utf8(uint32_t code) {  // code < 0x800
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2 writes a byte as one visible character: itself where visible, else 256 and upwards.
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    characters[byte] = utf8(visible ? byte : next++);
  }
  return characters;
}

using ByteOfCharacter = absl::flat_hash_map<std::string, char>;

ByteOfCharacter bytes_of_characters() {
  ByteOfCharacter bytes;
  const std::array<std::string, 256> characters = byte_characters();
  for (size_t byte = 0; byte < 256; ++byte) bytes[characters[byte]] = static_cast<char>(byte);
  return bytes;
}

// The bytes behind a token's text; text that is not written in byte characters stands for itself.
std::string bytes_of(std::string_view text, const ByteOfCharacter& bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
    const auto found = bytes.find(std::string(text.substr(at, size)));
    if (found == bytes.end()) return std::string(text);
    out += found->second;
    at += size;
  }
  return out;
}

absl::Status broken(std::string what) {
  return make_error(ErrorCode::kInvalidArgument, std::move(what),
                    "the model file's vocabulary contradicts itself");
}

absl::Status require(const Gguf& gguf, const char* key, std::string_view wanted) {
  absl::StatusOr<std::string_view> value = gguf.text(key);
  if (!value.ok()) return value.status();
  if (*value == wanted) return absl::OkStatus();
  return make_error(ErrorCode::kUnsupported, absl::StrCat(key, " '", std::string(*value), "'"),
                    absl::StrCat("this engine reads '", std::string(wanted), "' only"));
}

}  // namespace

void Tokenizer::FreePattern::operator()(pcre2_real_code_8* pattern) const {
  pcre2_code_free(pattern);
}

absl::StatusOr<Tokenizer> Tokenizer::from_gguf(const Gguf& gguf) {
  if (absl::Status status = require(gguf, "tokenizer.ggml.model", "gpt2"); !status.ok()) {
    return status;
  }
  if (absl::Status status = require(gguf, "tokenizer.ggml.pre", "smollm"); !status.ok()) {
    return status;
  }
  Tokenizer out;
  if (absl::Status status = out.read_pieces(gguf); !status.ok()) return status;
  int error = 0;
  PCRE2_SIZE offset = 0;
  out.pattern_.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kSmolLmPattern), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr));
  if (out.pattern_ == nullptr) {
    return make_error(ErrorCode::kInternal, absl::StrCat("PCRE2 refused the pattern: ", error));
  }
  pcre2_jit_compile(out.pattern_.get(), PCRE2_JIT_COMPLETE);  // only speed depends on it
  return out;
}

absl::Status Tokenizer::read_pieces(const Gguf& gguf) {
  absl::StatusOr<std::span<const std::string_view>> texts = gguf.texts("tokenizer.ggml.tokens");
  if (!texts.ok()) return texts.status();
  absl::StatusOr<std::span<const int64_t>> types = gguf.integers("tokenizer.ggml.token_type");
  if (!types.ok()) return types.status();
  absl::StatusOr<std::span<const std::string_view>> merges = gguf.texts("tokenizer.ggml.merges");
  if (!merges.ok()) return merges.status();
  if (types->size() != texts->size()) return broken("as many token types as tokens");
  const ByteOfCharacter bytes = bytes_of_characters();
  absl::flat_hash_map<std::string, TokenId> ids;
  for (size_t i = 0; i < texts->size(); ++i) {
    const std::string text((*texts)[i]);
    const TokenId token = static_cast<TokenId>(i);
    if (!ids.emplace(text, token).second) return broken(absl::StrCat("token ", i, " twice"));
    const int64_t type = (*types)[i];
    const bool special = type == kControlToken || type == kUserDefinedToken;
    if (special && !text.empty()) specials_.push_back({text, token});
    pieces_.push_back(special ? text : bytes_of(text, bytes));
  }
  if (absl::Status status = read_byte_tokens(gguf, ids); !status.ok()) return status;
  return read_merges(*merges, ids);
}

// Vocabularies lack bytes that their training text lacked; those become the unknown token.
absl::Status Tokenizer::read_byte_tokens(const Gguf& gguf,
                                         const absl::flat_hash_map<std::string, TokenId>& ids) {
  const absl::StatusOr<uint64_t> unknown = gguf.unsigned_value("tokenizer.ggml.unknown_token_id");
  const bool has_unknown = unknown.ok() && *unknown < ids.size();
  const std::array<std::string, 256> characters = byte_characters();
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(characters[byte]);
    if (found == ids.end() && !has_unknown) return broken(absl::StrCat("a token for byte ", byte));
    byte_tokens_[byte] = found == ids.end() ? static_cast<TokenId>(*unknown) : found->second;
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::read_merges(std::span<const std::string_view> merges,
                                    const absl::flat_hash_map<std::string, TokenId>& ids) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string text(merges[rank]);
    const size_t space = text.find(' ', 1);
    if (space == std::string::npos) return broken(absl::StrCat("merge ", rank, " of two parts"));
    const std::string left = text.substr(0, space);
    const std::string right = text.substr(space + 1);
    const auto a = ids.find(left);
    const auto b = ids.find(right);
    const auto both = ids.find(left + right);
    if (a == ids.end() || b == ids.end() || both == ids.end()) {
      return broken(absl::StrCat("tokens for merge ", rank));
    }
    merges_.emplace(pair_key(a->second, b->second),
                    Merge{static_cast<uint32_t>(rank), both->second});
  }
  return absl::OkStatus();
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<TokenId> tokens;
  while (special == SpecialTokens::kParse) {
    size_t first = std::string_view::npos;
    const Special* next = nullptr;  // the earliest, of several there the longest
    for (const Special& candidate : specials_) {
      const size_t at = text.find(candidate.name);
      const bool longer = next != nullptr && at == first && at != std::string_view::npos &&
                          candidate.name.size() > next->name.size();
      if (at < first || longer) {
        first = at;
        next = &candidate;
      }
    }
    if (next == nullptr) break;
    encode_plain(text.substr(0, first), tokens);
    tokens.push_back(next->token);
    text.remove_prefix(first + next->name.size());
  }
  encode_plain(text, tokens);
  return tokens;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<TokenId>& tokens) const {
  if (text.empty()) return;
  const auto free_match = [](pcre2_match_data* data) { pcre2_match_data_free(data); };
  const std::unique_ptr<pcre2_match_data, decltype(free_match)> match(
      pcre2_match_data_create_from_pattern(pattern_.get(), nullptr), free_match);
  size_t at = 0;
  while (at < text.size()) {
    const int found = pcre2_match(pattern_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, 0, match.get(), nullptr);
    if (found < 0) break;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    // Bytes that are no UTF-8 match nothing; they become a word of their own.
    encode_word(text.substr(at, range[0] - at), tokens);
    encode_word(text.substr(range[0], range[1] - range[0]), tokens);
    at = range[1];
  }
  encode_word(text.substr(at), tokens);
}

uint32_t Tokenizer::merge_rank(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? kNoMerge : found->second.rank;
}

// Joins the pair of lowest rank, leftmost first, until none is left.
void Tokenizer::encode_word(std::string_view word, std::vector<TokenId>& tokens) const {
  if (word.empty()) return;
  std::vector<TokenId> parts;
  for (const char byte : word) parts.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  std::vector<uint32_t> ranks;  // of parts i and i + 1
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    ranks.push_back(merge_rank(parts[i], parts[i + 1]));
  }
  while (!ranks.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < ranks.size(); ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoMerge) break;
    const auto at = static_cast<std::ptrdiff_t>(best);
    parts[best] = merges_.find(pair_key(parts[best], parts[best + 1]))->second.result;
    parts.erase(parts.begin() + at + 1);
    ranks.erase(ranks.begin() + at);
    if (best > 0) ranks[best - 1] = merge_rank(parts[best - 1], parts[best]);
    if (best < ranks.size()) ranks[best] = merge_rank(parts[best], parts[best + 1]);
  }
  tokens.insert(tokens.end(), parts.begin(), parts.end());
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) {
    if (token < pieces_.size()) text += pieces_[token];
  }
  return text;
}

std::optional<TokenId> Tokenizer::special_token(std::string_view name) const {
  for (const Special& special : specials_) {
    if (special.name == name) return special.token;
  }
  return std::nullopt;
}

}  // namespace memdecay::reference
