// ChatML markers around plainly encoded text; the implementation of chat.h.
#include "adapters/reference/chat.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

constexpr std::array<Role, 4> kRoles = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool};

void append(std::vector<TokenId>& to, const std::vector<TokenId>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "";
}

std::optional<Role> role_from_name(std::string_view name) {
  for (const Role role : kRoles) {
    if (role_name(role) == name) return role;
  }
  return std::nullopt;
}

absl::StatusOr<ChatTemplate> ChatTemplate::create(const Tokenizer& tokenizer) {
  const std::optional<TokenId> start = tokenizer.special_token("<|im_start|>");
  const std::optional<TokenId> end = tokenizer.special_token("<|im_end|>");
  if (!start || !end) {
    return make_error(ErrorCode::kUnsupported, "a ChatML conversation",
                      "the vocabulary has no <|im_start|> and <|im_end|>",
                      "use a model that was trained on ChatML");
  }
  return ChatTemplate(tokenizer, *start, *end);
}

std::vector<TokenId> ChatTemplate::message(const ChatMessage& message) const {
  // One text after the marker: the role's line break may join the first word of the message.
  const std::string text = std::string(role_name(message.role)) + "\n" + message.text;
  std::vector<TokenId> tokens = {start_};
  append(tokens, tokenizer_->encode(text, SpecialTokens::kPlain));
  append(tokens, closing());
  return tokens;
}

std::vector<TokenId> ChatTemplate::opening(Role role) const {
  std::vector<TokenId> tokens = {start_};
  const std::string text = std::string(role_name(role)) + "\n";
  append(tokens, tokenizer_->encode(text, SpecialTokens::kPlain));
  return tokens;
}

std::vector<TokenId> ChatTemplate::closing() const {
  std::vector<TokenId> tokens = {end_};
  append(tokens, tokenizer_->encode("\n", SpecialTokens::kPlain));
  return tokens;
}

RenderedChat ChatTemplate::render(std::span<const ChatMessage> messages) const {
  RenderedChat out;
  for (const ChatMessage& next : messages) {
    const size_t begin = out.tokens.size();
    append(out.tokens, message(next));
    out.spans.push_back({begin, out.tokens.size(), next.role});
  }
  return out;
}

}  // namespace memdecay::reference
