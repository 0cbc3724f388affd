// A run of the engine: a model, a session, and what happens to it turn by turn.
//
// Why: episodes, prompts and commands all do the same few things to one sequence; each tells what
// it did in one event with the figures that a reader compares.
// Thread: one.
// Invariants: an event is written after what it tells; a turn generates as many tokens as the
// episode says; the last token of a turn is known but not computed until the next turn.
// Not here: the command language (commands.h), arithmetic (decoder.h), pages (page_store.h).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/reference/daemon_store.h"
#include "adapters/reference/engine_options.h"
#include "adapters/reference/episode.h"
#include "adapters/reference/journal.h"
#include "adapters/reference/loaded_model.h"
#include "adapters/reference/private_store.h"
#include "adapters/reference/sequence.h"

namespace memdecay::reference {

class Engine {
 public:
  // Loads the model and opens or resumes the session.
  static absl::StatusOr<std::unique_ptr<Engine>> start(const EngineOptions& options,
                                                       Journal journal);

  const EngineOptions& options() const { return options_; }
  Sequence& sequence() { return *sequence_; }
  PageStore& store() { return *store_; }
  DaemonStore* daemon() { return daemon_; }  // nullptr: standalone
  Journal& journal() { return journal_; }
  size_t page_bytes() const { return loaded_.decoder->layout().page_bytes(); }
  bool turns_left() const { return episode_ && turn_ < episode_->turns.size(); }
  std::string text_of(TokenId token) const;

  // The whole run that the options ask for, commands apart.
  absl::Status run_episode();
  absl::Status run_prompt();

  // Unparks, prefills, generates, parks; one event "turn".
  absl::Status run_turn();
  // The rest of the episode in one prefill, up to `count` tokens of the session, with the tokens
  // that the followed run generated, if there is one; one event "replayed".
  absl::Status replay(size_t count);
  // A message by the user and the opening of the answer, prefilled; one event "said".
  absl::Status say(const std::string& text);
  // One event "generated".
  absl::Status generate(size_t count);
  absl::Status park(SessionState why);
  absl::Status unpark();
  absl::Status repair();
  // Stands still when `phase` is passed for the `count`th time from now on.
  absl::Status hold(const std::string& phase, int count);
  // Position, pages and counters, to be part of an event.
  void add_counters(Event& event);

 private:
  using Clock = std::chrono::steady_clock;
  struct Rows;

  Engine(const EngineOptions& options, Journal journal)
      : options_(options), journal_(std::move(journal)) {}
  absl::Status load();
  absl::Status open_store();
  absl::Status adopt_session();
  absl::Status find_turn();
  absl::Status read_followed();
  absl::Status resolve_budget();
  absl::Status tag_turn(const EpisodeTurn& turn, size_t start);
  absl::Status prefill(std::span<const TokenId> tokens);
  absl::Status decode(size_t count, const std::vector<TokenId>* followed, Rows& rows);
  void on_phase(Phase phase);
  void tell_ready(double load_ms);
  static double ms_since(Clock::time_point start);

  EngineOptions options_;
  Journal journal_;
  LoadedModel loaded_;
  std::unique_ptr<PageStore> store_;
  DaemonStore* daemon_ = nullptr;
  std::unique_ptr<Sequence> sequence_;
  std::optional<Episode> episode_;
  size_t turn_ = 0;            // of the episode, the next or the one in work
  size_t turn_prefilled_ = 0;  // of that turn's tokens: known already (resumed)
  size_t turn_generated_ = 0;
  std::map<size_t, std::vector<TokenId>> followed_;  // by turn
  int phases_[kPhases] = {};
  int hold_phase_ = -1;  // none
  int hold_count_ = 0;
  double open_ms_ = 0;         // until a first token has told it
  Clock::time_point began_{};  // of the turn in work
  uint32_t repairs_ = 0;
};

}  // namespace memdecay::reference
