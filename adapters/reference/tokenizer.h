// Byte-level BPE (the "gpt2" model of GGUF files) with the "smollm" pre-tokeniser.
//
// Why: episodes are text, pages are token ids; no small C++ library for this is in Debian.
// Thread: immutable after construction; any thread may encode and decode.
// Invariants: decode(encode(text)) == text for text whose bytes the vocabulary has (others become
// its unknown token); ids are those of the reference tokenizers library.
// Not here: chat markers (chat.h), SentencePiece vocabularies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "adapters/reference/gguf.h"
#include "proto/contract/ids.h"

struct pcre2_real_code_8;

namespace memdecay::reference {

// Whether names such as <|im_start|> inside the text become their special token.
enum class SpecialTokens { kParse, kPlain };

class Tokenizer {
 public:
  // unsupported: another vocabulary kind or pre-tokeniser. not_found / invalid_argument: keys that
  // are missing or contradict each other. The file may be closed afterwards.
  static absl::StatusOr<Tokenizer> from_gguf(const Gguf& gguf);

  std::vector<TokenId> encode(std::string_view text, SpecialTokens special) const;
  // Ids outside the vocabulary are left out. Special tokens appear by name.
  std::string decode(std::span<const TokenId> tokens) const;
  std::optional<TokenId> special_token(std::string_view name) const;
  size_t size() const { return pieces_.size(); }

 private:
  struct Merge {
    uint32_t rank;
    TokenId result;
  };
  struct FreePattern {
    void operator()(pcre2_real_code_8* pattern) const;
  };
  struct Special {
    std::string name;
    TokenId token;
  };

  Tokenizer() = default;
  absl::Status read_pieces(const Gguf& gguf);
  absl::Status read_byte_tokens(const Gguf& gguf,
                                const absl::flat_hash_map<std::string, TokenId>& ids);
  absl::Status read_merges(std::span<const std::string_view> merges,
                           const absl::flat_hash_map<std::string, TokenId>& ids);
  void encode_plain(std::string_view text, std::vector<TokenId>& tokens) const;
  void encode_word(std::string_view word, std::vector<TokenId>& tokens) const;
  uint32_t merge_rank(TokenId left, TokenId right) const;

  std::vector<std::string> pieces_;              // by id: the bytes it stands for
  std::array<TokenId, 256> byte_tokens_{};       // the token of each single byte
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by (left << 32 | right)
  std::vector<Special> specials_;
  std::unique_ptr<pcre2_real_code_8, FreePattern> pattern_;
};

}  // namespace memdecay::reference
