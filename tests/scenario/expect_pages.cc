// Expectations about pages: states, places, bytes, slots, scores, reasons. See expect.h.
// Thread: the runner's.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/expect.h"

namespace memdecay::scenario {
namespace {

struct ReportedPages {
  std::shared_ptr<SessionModel> session;
  std::vector<ledger::PageReport> pages;  // those that were asked for
  bool all = false;
};

absl::StatusOr<ReportedPages> report(Stage& stage, const std::string& word) {
  const absl::StatusOr<PageSet> set = parse_pages(word);
  if (!set.ok()) return set.status();
  const absl::StatusOr<ModelPages> wanted = find_pages(stage, word);
  if (!wanted.ok()) return wanted.status();
  auto all = stage.world->pages(wanted->session->id);
  if (!all.ok()) return all.status();
  ReportedPages out{.session = wanted->session, .all = set->all};
  for (const PageIndex page : wanted->pages) {
    if (page < all->size()) {
      out.pages.push_back((*all)[page]);
    } else {
      return make_error(ErrorCode::kUnknownPage, absl::StrCat(word, ", page ", page),
                        absl::StrCat("the session has ", all->size(), " pages"));
    }
  }
  if (set->all) out.pages = *std::move(all);
  return out;
}

std::string places(const ledger::PageReport& page) {
  std::vector<std::string> words;
  if (page.where.device) words.emplace_back("device");
  if (page.where.host) words.emplace_back("host");
  if (page.where.clean) words.emplace_back("clean");
  if (page.where.quarantined) words.emplace_back("quarantined");
  if (words.empty()) words.emplace_back("none");
  return absl::StrJoin(words, "+");
}

std::string describe(const ledger::PageReport& page) {
  const bool approximate = page.view.exactness == ledger::PageView::Exactness::kApproximate;
  return absl::StrCat(page.view.page, ":", as_absl(page_state_name(page.view.state)), "/",
                      places(page), approximate ? "/approximate" : "");
}

enum class Match : uint8_t { kYes, kNo, kUnknownWord };

Match matches(const ledger::PageReport& page, std::string_view word) {
  const auto yes = [](bool holds) { return holds ? Match::kYes : Match::kNo; };
  if (word == "device") return yes(page.where.device);
  if (word == "host") return yes(page.where.host);
  if (word == "clean") return yes(page.where.clean);
  if (word == "quarantined") return yes(page.where.quarantined);
  if (word == "none") return yes(!page.where.device && !page.where.host);
  for (int state = 0; state < kPageStates; ++state) {
    if (word == page_state_name(static_cast<PageState>(state))) {
      return yes(page.view.state == static_cast<PageState>(state));
    }
  }
  return Match::kUnknownWord;
}

// What the engine reads under the page agrees with what the daemon says of it.
std::string check_mapping(Stage& stage, const SessionModel& session,
                          const ledger::PageReport& page) {
  if (page.view.state != PageState::kMapped || session.closed) return {};
  if (!stage.world->can_speak(session.engine)) return {};
  const std::optional<SlotRef> seen =
      stage.world->mapped(session.engine, session.id, page.view.page);
  if (!seen) return absl::StrCat("page ", page.view.page, ": its engine does not map it");
  if (*seen == page.view.slot) return {};
  return absl::StrCat("page ", page.view.page, ": its engine reads slab ", seen->slab.value,
                      " slot ", seen->index, " generation ", seen->generation, ", the daemon has ",
                      page.view.slot.slab.value, " ", page.view.slot.index, " ",
                      page.view.slot.generation);
}

}  // namespace

std::string describe_pages(Stage& stage, const SessionModel& session) {
  const auto pages = stage.world->pages(session.id);
  if (!pages.ok()) return std::string(pages.status().message());
  std::vector<std::string> words;
  for (const ledger::PageReport& page : *pages) words.push_back(describe(page));
  return absl::StrJoin(words, " ");
}

Outcome expect_page_state(Stage& stage, const Call& call) {
  const absl::StatusOr<ReportedPages> pages = report(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  if (call.arguments.size() != 2) return broken("expect S:0..3 STATE");
  const std::vector<std::string> words = absl::StrSplit(call.arguments[1], '|');
  for (const ledger::PageReport& page : pages->pages) {
    bool any = false;
    for (const std::string& word : words) {
      const Match match = matches(page, word);
      if (match == Match::kUnknownWord) return broken(absl::StrCat("no page state '", word, "'"));
      any = any || match == Match::kYes;
    }
    if (!any) {
      return unexpected(
          absl::StrCat(pages->session->name, ":", page.view.page, " ", call.arguments[1]),
          describe(page));
    }
    if (const std::string wrong = check_mapping(stage, *pages->session, page); !wrong.empty()) {
      return unexpected("one view of the page", wrong);
    }
  }
  return {};
}

Outcome expect_bytes(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("expect bytes S:0..3");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[1]);
  const absl::StatusOr<PageSet> set = parse_pages(call.arguments[1]);
  if (!pages.ok()) return broken(pages.status());
  const SessionModel& session = *pages->session;
  for (const PageIndex page : pages->pages) {
    if (page >= session.pages.size()) {
      return unexpected(absl::StrCat("page ", page), "it was never granted");
    }
    const PageModel& model = session.pages[page];
    absl::StatusOr<std::string> bytes = stage.world->read(session.engine, session.id, page);
    if (!bytes.ok()) bytes = stage.world->replica(session.id, page);
    if (!bytes.ok()) {
      // `S:*`: a page that was dropped by the rules has no bytes to compare.
      const ErrorCode code = error_code(bytes.status());
      const bool gone = code == ErrorCode::kNotFound || code == ErrorCode::kNotSealed;
      if (set->all && model.sealed && gone) continue;
      return unexpected(absl::StrCat("bytes of ", session.name, ":", page),
                        std::string(bytes.status().message()));
    }
    if (model.content == 0) continue;
    const std::string expected = pattern(model.content, 0, stage.page_bytes_of(session));
    const bool whole = model.first_half && model.second_half;
    const size_t compare = whole ? expected.size() : model.first_half ? expected.size() / 2 : 0;
    const std::string wrong = difference(
        std::string_view(*bytes).substr(0, compare == 0 ? 0 : std::min(compare, bytes->size())),
        std::string_view(expected).substr(0, compare));
    if (!wrong.empty()) {
      return unexpected(absl::StrCat("the bytes written to ", session.name, ":", page), wrong);
    }
  }
  return {};
}

Outcome expect_blank(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("expect blank S:0..3");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[1]);
  if (!pages.ok()) return broken(pages.status());
  const SessionModel& session = *pages->session;
  for (const PageIndex page : pages->pages) {
    const absl::StatusOr<std::string> bytes = stage.world->read(session.engine, session.id, page);
    if (!bytes.ok()) return broken(bytes.status());
    const std::string wrong = difference(*bytes, std::string(bytes->size(), '\0'));
    if (!wrong.empty()) return unexpected(absl::StrCat(session.name, ":", page, " blank"), wrong);
  }
  return {};
}

Outcome expect_count(Stage& stage, const Call& call) {
  if (call.arguments.size() != 5) return broken("expect count S STATE <= 10");
  const auto session = find_session(stage, call.arguments[1]);
  const std::optional<Relation> relation = parse_relation(call.arguments[3]);
  const absl::StatusOr<uint32_t> wanted = parse_count(call.arguments[4]);
  if (!session.ok()) return broken(session.status());
  if (!relation || !wanted.ok()) return broken("expect count S STATE <= 10");
  const auto pages = stage.world->pages((*session)->id);
  if (!pages.ok()) return broken(pages.status());
  const auto count = std::count_if(pages->begin(), pages->end(), [&](const auto& page) {
    return matches(page, call.arguments[2]) == Match::kYes;
  });
  if (holds(static_cast<double>(count), *relation, *wanted)) return {};
  return unexpected(call.raw, absl::StrCat(count));
}

Outcome expect_slots(Stage& stage, const Call& call) {
  if (call.arguments.size() != 4 || call.arguments[1] != "slot") {
    return broken("expect same|other slot S:0 S2:0");
  }
  const absl::StatusOr<ReportedPages> left = report(stage, call.arguments[2]);
  const absl::StatusOr<ReportedPages> right = report(stage, call.arguments[3]);
  if (!left.ok()) return broken(left.status());
  if (!right.ok()) return broken(right.status());
  if (left->pages.size() != right->pages.size()) return broken("as many pages on both sides");
  const bool same = call.arguments[0] == "same";
  for (size_t i = 0; i < left->pages.size(); ++i) {
    const ledger::PageReport& a = left->pages[i];
    const ledger::PageReport& b = right->pages[i];
    if (!a.where.device || !b.where.device) {
      return unexpected("both on the device", absl::StrCat(describe(a), ", ", describe(b)));
    }
    for (const auto& [side, page] : {std::pair(&*left, &a), std::pair(&*right, &b)}) {
      const std::string wrong = check_mapping(stage, *side->session, *page);
      if (!wrong.empty()) return unexpected("one view of the page", wrong);
    }
    if ((a.view.slot == b.view.slot) != same) {
      return unexpected(
          absl::StrCat(call.arguments[0], " slot"),
          absl::StrCat("slab ", a.view.slot.slab.value, " slot ", a.view.slot.index, " and slab ",
                       b.view.slot.slab.value, " slot ", b.view.slot.index));
    }
  }
  return {};
}

Outcome expect_exactness(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("expect exact|approximate S:5");
  const absl::StatusOr<ReportedPages> pages = report(stage, call.arguments[1]);
  if (!pages.ok()) return broken(pages.status());
  using Exactness = ledger::PageView::Exactness;
  const Exactness wanted =
      call.arguments[0] == "exact" ? Exactness::kExact : Exactness::kApproximate;
  for (const ledger::PageReport& page : pages->pages) {
    if (page.view.exactness != wanted) {
      return unexpected(absl::StrCat(call.arguments[0], " page ", page.view.page), describe(page));
    }
  }
  return {};
}

Outcome expect_victims(Stage& stage, const Call& call) {
  if (call.arguments.size() < 2 || call.arguments[1].back() != ':') {
    return broken("expect victims S: 5 3 4");
  }
  const std::string& word = call.arguments[1];
  const auto session = find_session(stage, word.substr(0, word.size() - 1));
  if (!session.ok()) return broken(session.status());
  std::vector<PageIndex> wanted;
  for (size_t i = 2; i < call.arguments.size(); ++i) {
    const absl::StatusOr<uint32_t> page = parse_count(call.arguments[i]);
    if (!page.ok()) return broken(page.status());
    wanted.push_back(*page);
  }
  const uint32_t count = std::max<uint32_t>(1, static_cast<uint32_t>(wanted.size()));
  const auto victims = stage.world->victims((*session)->id, count);
  if (!victims.ok()) return broken(victims.status());
  if (*victims == wanted) return {};
  return unexpected(absl::StrCat("victims ", absl::StrJoin(wanted, " ")),
                    absl::StrJoin(*victims, " "));
}

Outcome expect_score(Stage& stage, const Call& call) {
  if (call.arguments.size() != 4) return broken("expect score S:1 < S:2");
  const std::optional<Relation> relation = parse_relation(call.arguments[2]);
  if (!relation) return broken(absl::StrCat("no relation '", call.arguments[2], "'"));
  std::vector<double> sides;
  for (const size_t at : {size_t{1}, size_t{3}}) {
    if (!looks_like_pages(call.arguments[at])) {
      const absl::StatusOr<double> number = parse_number(call.arguments[at]);
      if (!number.ok()) return broken(number.status());
      sides.push_back(*number);
      continue;
    }
    const absl::StatusOr<ReportedPages> page = report(stage, call.arguments[at]);
    if (!page.ok()) return broken(page.status());
    if (page->pages.size() != 1) return broken("one page on each side");
    sides.push_back(page->pages[0].score);
  }
  if (holds(sides[0], *relation, sides[1])) return {};
  return unexpected(call.raw, absl::StrCat(sides[0], " and ", sides[1]));
}

Outcome expect_reason(Stage& stage, const Call& call) {
  if (call.arguments.size() != 3) return broken("expect reason S:3 leased");
  const absl::StatusOr<ReportedPages> pages = report(stage, call.arguments[1]);
  if (!pages.ok()) return broken(pages.status());
  for (const ledger::PageReport& page : pages->pages) {
    std::vector<std::string> reasons;
    for (const Reason reason : page.spared) reasons.emplace_back(reason_name(reason));
    const auto decisions = stage.world->decisions(pages->session->id, page.view.page);
    if (decisions.ok()) {
      for (const ledger::DecisionReport& decision : *decisions) {
        reasons.emplace_back(reason_name(decision.reason));
      }
    }
    if (std::find(reasons.begin(), reasons.end(), call.arguments[2]) == reasons.end()) {
      return unexpected(
          absl::StrCat(call.arguments[2], " among the reasons of page ", page.view.page),
          absl::StrJoin(reasons, " "));
    }
  }
  return {};
}

}  // namespace memdecay::scenario
