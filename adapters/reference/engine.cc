// Turns, prompts and repairs of one session; see engine.h. Starting is in engine_start.cc.
#include "adapters/reference/engine.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/reference/row_digest.h"
#include "adapters/reference/sampling.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::reference {

// What decoding leaves behind.
struct Engine::Rows {
  RowDigest digest;
  std::vector<TokenId> tokens;
  std::optional<Clock::time_point> first_token;
};

double Engine::ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string Engine::text_of(TokenId token) const {
  return loaded_.tokenizer->decode(std::span<const TokenId>(&token, 1));
}

void Engine::add_counters(Event& event) {
  const SequenceCounters& counters = sequence_->counters();
  event["known_tokens"] = sequence_->tokens().size();
  event["computed_tokens"] = sequence_->computed();
  event["sealed_pages"] = sequence_->sealed_pages();
  event["forwarded_tokens"] = counters.forwarded;
  event["recomputed_tokens"] = counters.recomputed;
  event["shared_tokens"] = counters.shared;
  event["tokens_with_holes"] = counters.with_holes;
  const absl::StatusOr<PageCounts> counts = store_->counts();
  if (counts.ok()) {
    event["pages"] = counts->pages;
    event["resident_pages"] = counts->resident;
    event["hole_pages"] = counts->holes;
    event["approximate_pages"] = counts->approximate;
  }
  event["preemptions"] = daemon_ == nullptr ? 0 : daemon_->preemptions();
  event["late_pages"] = daemon_ == nullptr ? 0 : daemon_->late_pages();
  event["repairs"] = repairs_;
}

absl::Status Engine::unpark() {
  absl::Status status = store_->unpark();
  if (status.ok() || daemon_ == nullptr) return status;
  // Bytes that are gone for ever are computed again, from the first such page on.
  const std::optional<PageIndex> lost = daemon_->first_dropped();
  if (!lost) return status;
  const size_t position = size_t{*lost} * loaded_.decoder->layout().page_tokens;
  status = sequence_->discard(position);
  return status.ok() ? daemon_->wait_ready() : status;
}

absl::Status Engine::park(SessionState why) {
  if (absl::Status status = store_->park(why); !status.ok()) return status;
  Event event = {{"event", "parked"}, {"why", std::string(session_state_name(why))}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

absl::Status Engine::tag_turn(const EpisodeTurn& turn, size_t start) {
  std::vector<PageTag> tags;
  for (const RegionSpan& span : turn.spans) {
    tags.push_back({static_cast<uint32_t>(start + span.begin),
                    static_cast<uint32_t>(start + span.end), span.region});
  }
  return store_->tag(tags);
}

// Tokens become known; at the start of an exact session those that others have computed are taken.
absl::Status Engine::prefill(std::span<const TokenId> tokens) {
  const bool fresh = sequence_->tokens().empty();
  sequence_->append(tokens);
  if (fresh && daemon_ != nullptr && options_.share && !options_.daemon.lossy) {
    const absl::StatusOr<size_t> shared = daemon_->acquire(sequence_->tokens());
    if (!shared.ok()) return shared.status();
    sequence_->take_shared(*shared);
  }
  return sequence_->catch_up();
}

absl::Status Engine::decode(size_t count, const std::vector<TokenId>* followed, Rows& rows) {
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<std::span<const float>> logits = sequence_->logits();
    if (!logits.ok()) return logits.status();
    rows.digest.add(*logits);
    journal_.write_row(*logits);
    TokenId token = greedy_token(*logits);
    if (followed != nullptr) {
      if (i >= followed->size()) {
        return make_error(ErrorCode::kOutOfRange, absl::StrCat("token ", i, " of this turn"),
                          absl::StrCat("the followed run has ", followed->size()),
                          "follow a run of the same episode");
      }
      token = (*followed)[i];
    }
    sequence_->accept(token);
    rows.tokens.push_back(token);
    if (!rows.first_token) rows.first_token = Clock::now();
    if (options_.trace) {
      journal_.write({{"event", "token"},
                      {"turn", turn_},
                      {"position", sequence_->tokens().size() - 1},
                      {"computed_tokens", sequence_->computed()},
                      {"token", token},
                      {"ms", ms_since(began_) + open_ms_},
                      {"row", rows.digest.rows().back()}});
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::run_turn() {
  if (!turns_left()) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("turn ", turn_),
                      "the episode has no more", "quit, or give another episode");
  }
  const EpisodeTurn& turn = episode_->turns[turn_];
  const auto begin = began_ = Clock::now();
  if (absl::Status status = unpark(); !status.ok()) return status;
  const double unpark_ms = ms_since(begin);
  const size_t start = sequence_->tokens().size() - turn_prefilled_ - turn_generated_;
  if (absl::Status status = tag_turn(turn, start); !status.ok()) return status;
  const uint64_t forwarded = sequence_->counters().forwarded;
  const auto rest = std::span<const TokenId>(turn.tokens).subspan(turn_prefilled_);
  if (absl::Status status = prefill(rest); !status.ok()) return status;
  const uint64_t prefilled = sequence_->counters().forwarded - forwarded;
  const double prefill_ms = ms_since(begin);

  const auto found = followed_.find(turn_);
  std::vector<TokenId> followed;
  if (found != followed_.end()) {
    const size_t skip = std::min(turn_generated_, found->second.size());
    followed.assign(found->second.begin() + static_cast<std::ptrdiff_t>(skip), found->second.end());
  }
  Rows rows;
  const size_t first_row = turn_generated_;
  absl::Status status =
      decode(turn.generate - turn_generated_, options_.follow.empty() ? nullptr : &followed, rows);
  if (!status.ok()) return status;
  Event event = {{"event", "turn"},
                 {"turn", turn_},
                 {"prompt_tokens", turn.tokens.size()},
                 {"prefilled_tokens", prefilled},
                 {"first_row", first_row},
                 {"generated", rows.tokens},
                 {"logits_sha256", rows.digest.hex()},
                 {"rows", rows.digest.rows()},
                 {"unpark_ms", unpark_ms},
                 {"prefill_ms", prefill_ms},
                 {"total_ms", ms_since(begin)}};
  if (rows.first_token) {
    event["first_token_ms"] =
        std::chrono::duration<double, std::milli>(*rows.first_token - begin).count() +
        std::exchange(open_ms_, 0.0);
  }
  add_counters(event);
  journal_.write(event);
  const SessionState pause = turn.pause;
  ++turn_;
  turn_prefilled_ = turn_generated_ = 0;
  return park(pause);
}

absl::Status Engine::run_episode() {
  while (turns_left()) {
    if (absl::Status status = run_turn(); !status.ok()) return status;
    std::string line;
    if (options_.wait_go && turns_left() && !std::getline(std::cin, line)) break;
  }
  return absl::OkStatus();
}

absl::Status Engine::replay(size_t count) {
  if (!turns_left()) return make_error(ErrorCode::kOutOfRange, "replay", "no turns are left");
  const auto begin = Clock::now();
  if (absl::Status status = unpark(); !status.ok()) return status;
  std::vector<TokenId> tokens;
  const size_t known = sequence_->tokens().size();
  for (; turns_left(); ++turn_) {
    const EpisodeTurn& turn = episode_->turns[turn_];
    if (absl::Status status = tag_turn(turn, known + tokens.size()); !status.ok()) return status;
    tokens.insert(tokens.end(), turn.tokens.begin(), turn.tokens.end());
    const std::vector<TokenId>& generated = followed_[turn_];
    tokens.insert(tokens.end(), generated.begin(), generated.end());
  }
  if (known + tokens.size() > count) tokens.resize(count > known ? count - known : 0);
  if (absl::Status status = prefill(tokens); !status.ok()) return status;
  const absl::StatusOr<std::span<const float>> logits = sequence_->logits();
  if (!logits.ok()) return logits.status();
  Event event = {{"event", "replayed"},
                 {"prompt_tokens", tokens.size()},
                 {"logits_sha256", sha256_hex(*logits)},
                 {"first_token_ms", ms_since(begin) + std::exchange(open_ms_, 0.0)}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

absl::Status Engine::say(const std::string& text) {
  if (absl::Status status = unpark(); !status.ok()) return status;
  std::vector<TokenId> tokens;
  if (!sequence_->tokens().empty()) tokens = loaded_.chat->closing();
  const size_t start = sequence_->tokens().size();
  const size_t begin = start + tokens.size();
  const std::vector<TokenId> message = loaded_.chat->message({Role::kUser, text});
  tokens.insert(tokens.end(), message.begin(), message.end());
  const size_t end = start + tokens.size();
  const std::vector<TokenId> opening = loaded_.chat->opening(Role::kAssistant);
  tokens.insert(tokens.end(), opening.begin(), opening.end());
  const PageTag tag{static_cast<uint32_t>(begin), static_cast<uint32_t>(end), Region::kUser};
  if (absl::Status status = store_->tag({&tag, 1}); !status.ok()) return status;
  if (absl::Status status = prefill(tokens); !status.ok()) return status;
  Event event = {{"event", "said"}, {"prompt_tokens", tokens.size()}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

absl::Status Engine::generate(size_t count) {
  if (absl::Status status = unpark(); !status.ok()) return status;
  Rows rows;
  if (absl::Status status = decode(count, nullptr, rows); !status.ok()) return status;
  Event event = {{"event", "generated"},
                 {"generated", rows.tokens},
                 {"text", loaded_.tokenizer->decode(rows.tokens)},
                 {"logits_sha256", rows.digest.hex()},
                 {"rows", rows.digest.rows()}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

// The text as it comes, and the event at the end goes to the file of events only.
absl::Status Engine::run_prompt() {
  if (absl::Status status = say(options_.prompt); !status.ok()) return status;
  Rows rows;
  for (size_t i = 0; i < options_.generate; ++i) {
    if (absl::Status status = decode(1, nullptr, rows); !status.ok()) return status;
    if (rows.tokens.back() == loaded_.chat->end_token()) break;
    const std::string text = text_of(rows.tokens.back());
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  std::fputs("\n", stdout);
  Event event = {
      {"event", "answered"}, {"generated", rows.tokens}, {"logits_sha256", rows.digest.hex()}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

absl::Status Engine::repair() {
  if (daemon_ == nullptr) {
    return make_error(ErrorCode::kUnsupported, "repair",
                      "nothing is ever missing without a daemon");
  }
  // All pages must fit: what is repaired is whole.
  if (absl::Status status = daemon_->set_budget(0); !status.ok()) return status;
  const absl::StatusOr<memdecay_repair_info> plan = daemon_->repair();
  if (!plan.ok()) return plan.status();
  const auto begin = Clock::now();
  const uint64_t forwarded = sequence_->counters().forwarded;
  const size_t page_tokens = loaded_.decoder->layout().page_tokens;
  std::vector<PageIndex> missing;
  for (const memdecay_page& page : daemon_->pages()) {
    if (plan->needed != 0 && page.page >= plan->first_page) break;
    if (page.read == nullptr) missing.push_back(page.page);
  }
  if (!missing.empty()) {
    const absl::StatusOr<memdecay_restore_result> restored = daemon_->restore(missing);
    if (!restored.ok()) return restored.status();
  }
  if (plan->needed != 0) {
    const absl::Status status = sequence_->discard(plan->first_page * page_tokens);
    if (!status.ok()) return status;
  }
  if (absl::Status status = daemon_->set_mode(Mode::kExact); !status.ok()) return status;
  sequence_->promise(Promise::kExact);
  if (absl::Status status = daemon_->wait_ready(); !status.ok()) return status;
  if (absl::Status status = sequence_->catch_up(); !status.ok()) return status;
  ++repairs_;
  Event event = {{"event", "repaired"},
                 {"needed", plan->needed != 0},
                 {"first_page", plan->first_page},
                 {"told_tokens", plan->tokens},
                 {"repair_tokens", sequence_->counters().forwarded - forwarded},
                 {"restored_pages", missing.size()},
                 {"repair_ms", ms_since(begin)}};
  add_counters(event);
  journal_.write(event);
  return absl::OkStatus();
}

}  // namespace memdecay::reference
