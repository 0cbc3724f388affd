// The ChatML template: messages to token ids, with the span of every message.
//
// Why: regions are tagged by token span, so whoever renders text must say which tokens came from
// which message.
// Thread: immutable; the tokenizer outlives it.
// Invariant: message text is encoded plainly, so text cannot forge a marker. A span covers its
// message's markers as well; spans follow each other without gaps.
// Not here: default system prompts (a message that is not given is not invented).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/tokenizer.h"
#include "proto/contract/ids.h"

namespace memdecay::reference {

enum class Role { kSystem, kUser, kAssistant, kTool };

std::string_view role_name(Role role);
std::optional<Role> role_from_name(std::string_view name);

struct ChatMessage {
  Role role = Role::kUser;
  std::string text;
};

struct RoleSpan {
  size_t begin = 0;  // token indices, end exclusive
  size_t end = 0;
  Role role = Role::kUser;
};

struct RenderedChat {
  std::vector<TokenId> tokens;
  std::vector<RoleSpan> spans;  // one a message
};

class ChatTemplate {
 public:
  // unsupported when the vocabulary has no <|im_start|> and <|im_end|>.
  static absl::StatusOr<ChatTemplate> create(const Tokenizer& tokenizer);

  // <|im_start|>role\ntext<|im_end|>\n for each message.
  RenderedChat render(std::span<const ChatMessage> messages) const;
  std::vector<TokenId> message(const ChatMessage& message) const;
  std::vector<TokenId> opening(Role role) const;  // <|im_start|>role\n
  std::vector<TokenId> closing() const;           // <|im_end|>\n
  TokenId end_token() const { return end_; }

 private:
  ChatTemplate(const Tokenizer& tokenizer, TokenId start, TokenId end)
      : tokenizer_(&tokenizer), start_(start), end_(end) {}

  const Tokenizer* tokenizer_;
  TokenId start_;
  TokenId end_;
};

}  // namespace memdecay::reference
