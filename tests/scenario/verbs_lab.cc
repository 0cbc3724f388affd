// tick, settle, hold, finish, fail, reorder, fault, hash, disk, raw: the world's levers.
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

Outcome tick_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("tick 5s");
  const absl::StatusOr<Duration> by = parse_duration(call.arguments[0]);
  if (!by.ok()) return broken(by.status());
  return {.status = stage.world->tick(*by)};
}

Outcome settle_verb(Stage& stage, const Call&) { return {.status = stage.world->settle()}; }

// Does it for every page that the word names; the first failure is the answer.
template <typename Deed>
Outcome for_pages(Stage& stage, const std::string& word, Deed deed) {
  const absl::StatusOr<ModelPages> pages = find_pages(stage, word);
  if (!pages.ok()) return broken(pages.status());
  for (const PageIndex page : pages->pages) {
    if (absl::Status done = deed(pages->session->id, page); !done.ok()) return {.status = done};
  }
  return {};
}

Outcome hold_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("hold evict|restore|store S:3");
  Direction direction = Direction::kEvict;
  if (call.arguments[0] == "restore") {
    direction = Direction::kRestore;
  } else if (call.arguments[0] == "store") {
    direction = Direction::kStore;
  } else if (call.arguments[0] != "evict") {
    return broken("hold evict, restore or store");
  }
  return for_pages(stage, call.arguments[1], [&](SessionId session, PageIndex page) {
    return stage.world->hold(direction, session, page);
  });
}

Outcome end_copies(Stage& stage, const Call& call, World::Ending ending) {
  if (call.arguments.size() != 1) return broken(absl::StrCat(call.verb, " S:3"));
  return for_pages(stage, call.arguments[0], [&](SessionId session, PageIndex page) {
    return stage.world->end_copy(session, page, ending);
  });
}

Outcome finish_verb(Stage& stage, const Call& call) {
  return end_copies(stage, call, World::Ending::kFinish);
}
Outcome fail_verb(Stage& stage, const Call& call) {
  return end_copies(stage, call, World::Ending::kFail);
}

Outcome reorder_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("reorder S:3 S:4");
  const absl::StatusOr<ModelPages> first = find_pages(stage, call.arguments[0]);
  const absl::StatusOr<ModelPages> second = find_pages(stage, call.arguments[1]);
  if (!first.ok()) return broken(first.status());
  if (!second.ok()) return broken(second.status());
  if (first->pages.size() != 1 || second->pages.size() != 1) return broken("reorder S:3 S:4");
  return {.status = stage.world->reorder(first->session->id, first->pages[0], second->session->id,
                                         second->pages[0])};
}

Outcome fault_verb(Stage& stage, const Call& call) {
  if (call.option("completion") != std::optional<std::string>("lost")) {
    return broken("fault completion=lost p=0.1");
  }
  const absl::StatusOr<double> probability = parse_number(call.option("p").value_or("1"));
  if (!probability.ok()) return broken(probability.status());
  return {.status = stage.world->lose_completions(*probability)};
}

Outcome hash_verb(Stage& stage, const Call& call) {
  const absl::StatusOr<uint32_t> bits = parse_count(call.option("bits").value_or(""));
  if (!bits.ok() || *bits == 0 || *bits > 256) return broken("hash bits=1…256");
  return {.status = stage.world->hash_bits(static_cast<int>(*bits))};
}

Outcome disk_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("disk flip|zero|unlink S:3");
  Damage what = Damage::kFlip;
  if (call.arguments[0] == "zero") {
    what = Damage::kZero;
  } else if (call.arguments[0] == "unlink") {
    what = Damage::kUnlink;
  } else if (call.arguments[0] != "flip") {
    return broken("disk flip, zero or unlink");
  }
  return for_pages(stage, call.arguments[1], [&](SessionId session, PageIndex page) {
    return stage.world->damage(what, session, page);
  });
}

Outcome raw_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("raw control|handles hex=… | random=…");
  return {.status = stage.world->raw(call.arguments[0], call.options)};
}

constexpr VerbEntry kVerbs[] = {
    {"tick", tick_verb}, {"settle", settle_verb},   {"hold", hold_verb},   {"finish", finish_verb},
    {"fail", fail_verb}, {"reorder", reorder_verb}, {"fault", fault_verb}, {"hash", hash_verb},
    {"disk", disk_verb}, {"raw", raw_verb},
};

}  // namespace

absl::Span<const VerbEntry> lab_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
