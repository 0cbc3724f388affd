// Starting a run: the model, the session, and where in the episode it stands (see engine.h).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapters/reference/engine.h"
#include "adapters/reference/mapped_file.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::reference {
namespace {

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::Status bad_flag(const std::string& flag, const std::string& value, const std::string& todo) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat(flag, " ", value), {}, todo);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::start(const EngineOptions& options,
                                                      Journal journal) {
  std::unique_ptr<Engine> engine(new Engine(options, std::move(journal)));
  const auto begin = Clock::now();
  if (absl::Status status = engine->load(); !status.ok()) return status;
  const double load_ms = ms_since(begin);
  const auto opening = Clock::now();
  if (absl::Status status = engine->open_store(); !status.ok()) return status;
  engine->open_ms_ = ms_since(opening);
  engine->tell_ready(load_ms);
  return engine;
}

absl::Status Engine::load() {
  if (!options_.hold.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(options_.hold, ':');
    const auto count = parts.size() == 2 ? number_of(parts[1]) : std::nullopt;
    const absl::Status status = hold(parts[0], count ? static_cast<int>(*count) : 0);
    if (!status.ok()) return status;
  }
  const auto fingerprint = options_.standalone ? Fingerprint::kNotNeeded : Fingerprint::kNeeded;
  absl::StatusOr<LoadedModel> loaded =
      LoadedModel::load(options_.model, options_.threads, fingerprint);
  if (!loaded.ok()) return loaded.status();
  loaded_ = *std::move(loaded);
  if (!options_.episode.empty()) {
    absl::StatusOr<Episode> episode = load_episode(options_.episode, *loaded_.chat);
    if (!episode.ok()) return episode.status();
    episode_ = *std::move(episode);
  }
  if (absl::Status status = resolve_budget(); !status.ok()) return status;
  return read_followed();
}

absl::Status Engine::hold(const std::string& phase, int count) {
  for (int i = 0; i < kPhases && count > 0; ++i) {
    if (phase != phase_name(static_cast<Phase>(i))) continue;
    hold_phase_ = i;
    hold_count_ = phases_[i] + count;
    return absl::OkStatus();
  }
  return bad_flag("hold", absl::StrCat(phase, ", ", count),
                  "grant, write, seal, acknowledge or restore, and a number from 1");
}

absl::Status Engine::resolve_budget() {
  if (options_.budget.empty()) return absl::OkStatus();
  const bool percent = options_.budget.back() == '%';
  const std::string digits =
      percent ? options_.budget.substr(0, options_.budget.size() - 1) : options_.budget;
  const std::optional<uint32_t> value = number_of(digits);
  if (!value || *value == 0 || (percent && *value > 100)) {
    return bad_flag("--budget", options_.budget, "a number of pages, or 1% to 100%");
  }
  options_.daemon.budget_pages = *value;
  if (percent) {
    const size_t page_tokens = loaded_.decoder->layout().page_tokens;
    const size_t tokens = episode_->prefill_tokens() + episode_->generated_tokens();
    const size_t pages = (tokens + page_tokens - 1) / page_tokens;
    options_.daemon.budget_pages = static_cast<uint32_t>(pages * *value / 100);
  }
  return absl::OkStatus();
}

absl::Status Engine::read_followed() {
  if (options_.follow.empty()) return absl::OkStatus();
  absl::StatusOr<MappedFile> file = MappedFile::open(options_.follow);
  if (!file.ok()) return file.status();
  const absl::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const Event event = Event::parse(line.begin(), line.end(), nullptr, false);
    if (event.is_discarded() || event.value("event", "") != "turn") continue;
    const auto turn = event.find("turn");
    const auto generated = event.find("generated");
    const bool whole = turn != event.end() && turn->is_number_unsigned() &&
                       generated != event.end() && generated->is_array();
    if (!whole) return bad_flag("--follow", options_.follow, "a file that --logits wrote");
    std::vector<TokenId>& tokens = followed_[turn->get<size_t>()];
    for (const Event& token : *generated) {
      if (token.is_number_unsigned()) tokens.push_back(token.get<TokenId>());
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::open_store() {
  const ModelShape& shape = loaded_.model->shape();
  absl::StatusOr<HeadChoice> heads = parse_heads(options_.observe_heads, shape.layers, shape.heads);
  if (!heads.ok()) return heads.status();
  PhaseHook hook = [this](Phase phase) { on_phase(phase); };
  const KvLayout& layout = loaded_.decoder->layout();
  if (options_.standalone) {
    store_ = std::make_unique<PrivateStore>(layout);
  } else {
    absl::StatusOr<std::unique_ptr<DaemonStore>> daemon =
        DaemonStore::open(options_.daemon, *loaded_.identity, hook);
    if (!daemon.ok()) return daemon.status();
    daemon_ = daemon->get();
    store_ = *std::move(daemon);
  }
  size_t chunk = options_.chunk;
  if (const uint32_t budget = options_.daemon.budget_pages; budget > 0) {
    // A prefill step must leave room for what the session should remember.
    chunk = std::min(chunk, std::max<size_t>(1, budget / 4) * layout.page_tokens);
  }
  sequence_ = std::make_unique<Sequence>(*loaded_.decoder, *store_,
                                         options_.daemon.lossy ? Promise::kLossy : Promise::kExact,
                                         chunk, std::move(hook));
  sequence_->observe_heads(*std::move(heads));
  return options_.daemon.resume.empty() ? absl::OkStatus() : adopt_session();
}

// What the session's earlier engine has sealed is taken over; its unsealed tail is computed again.
absl::Status Engine::adopt_session() {
  const memdecay_session_info info = daemon_->info();
  options_.daemon.lossy = info.mode == MEMDECAY_LOSSY;
  sequence_->promise(options_.daemon.lossy ? Promise::kLossy : Promise::kExact);
  // Its budget is the daemon's to know: small steps fit any.
  if (options_.daemon.lossy) sequence_->limit_chunk(2 * info.page_tokens);
  std::optional<size_t> approximate;
  for (const memdecay_page& page : daemon_->pages()) {
    if (page.approximate != 0 && !approximate) approximate = size_t{page.page} * info.page_tokens;
  }
  const size_t count = std::min(info.position, info.token_count);
  sequence_->adopt(std::span<const TokenId>(info.tokens, count), approximate, info.step);
  if (absl::Status status = find_turn(); !status.ok()) return status;
  return daemon_->wait_ready();
}

// Which turn of the episode the adopted tokens end in.
absl::Status Engine::find_turn() {
  if (!episode_) return absl::OkStatus();
  const std::vector<TokenId>& tokens = sequence_->tokens();
  size_t at = 0;
  for (turn_ = 0; turn_ < episode_->turns.size(); ++turn_) {
    const EpisodeTurn& turn = episode_->turns[turn_];
    const size_t left = tokens.size() - at;
    turn_prefilled_ = std::min(left, turn.tokens.size());
    turn_generated_ = std::min(left - turn_prefilled_, turn.generate);
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (!std::equal(turn.tokens.begin(),
                    turn.tokens.begin() + static_cast<std::ptrdiff_t>(turn_prefilled_), begin)) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("resume session ", options_.daemon.resume),
                        absl::StrCat("its tokens are not those of episode ", episode_->name),
                        "give the episode that the session computes");
    }
    at += turn_prefilled_ + turn_generated_;
    // A turn that generated everything is over, its last token apart.
    if (turn_generated_ < turn.generate || turn_prefilled_ < turn.tokens.size()) break;
    turn_prefilled_ = turn_generated_ = 0;
  }
  return absl::OkStatus();
}

void Engine::on_phase(Phase phase) {
  const int count = ++phases_[static_cast<int>(phase)];
  const bool hold = static_cast<int>(phase) == hold_phase_ && count == hold_count_;
  if (!hold && !options_.trace) return;
  journal_.write({{"event", hold ? "hold" : "phase"},
                  {"phase", std::string(phase_name(phase))},
                  {"count", count},
                  {"computed_tokens", sequence_ == nullptr ? 0 : sequence_->computed()}});
  std::string line;
  if (hold) std::getline(std::cin, line);
}

void Engine::tell_ready(double load_ms) {
  const KvLayout& layout = loaded_.decoder->layout();
  Event event = {{"event", "ready"},
                 {"model", options_.model},
                 {"kernels", std::string(loaded_.decoder->kernels().name)},
                 {"page_tokens", layout.page_tokens},
                 {"page_bytes", layout.page_bytes()},
                 {"load_ms", load_ms},
                 {"open_ms", open_ms_}};
  if (episode_) {
    const size_t tokens = episode_->prefill_tokens() + episode_->generated_tokens();
    event["episode"] = episode_->name;
    event["episode_turns"] = episode_->turns.size();
    event["episode_tokens"] = tokens;
    event["turn"] = turn_;
  }
  if (daemon_ != nullptr) {
    const memdecay_session_info info = daemon_->info();
    event["session"] = info.name;
    event["session_id"] = info.id;
    event["mode"] = info.mode == MEMDECAY_LOSSY ? "lossy" : "exact";
    event["budget_pages"] = info.budget_pages;
    event["resumed_tokens"] = sequence_->computed();
  }
  journal_.write(event);
}

}  // namespace memdecay::reference
