// Reading a line, doing it, answering; see commands.h.
#include "adapters/reference/commands.h"

#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapters/reference/sampling.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::reference {
namespace {

constexpr uint32_t kMaxPage = 1u << 20;

absl::Status wrong(const std::string& asked, const std::string& todo) {
  return make_error(ErrorCode::kInvalidArgument, asked, {}, todo);
}

absl::StatusOr<uint32_t> number(const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return wrong(absl::StrCat("'", text, "'"), "give a number");
  }
  return value;
}

void answer(Engine& engine, const std::string& what) {
  Event event = {{"event", what}};
  engine.add_counters(event);
  engine.journal().write(event);
}

absl::StatusOr<DaemonStore*> daemon_of(Engine& engine, const std::string& asked) {
  if (engine.daemon() != nullptr) return engine.daemon();
  return make_error(ErrorCode::kUnsupported, asked, "this engine is standalone",
                    "start it without --standalone");
}

absl::Status do_turn(Engine& engine, const std::string&) { return engine.run_turn(); }
absl::Status do_say(Engine& engine, const std::string& text) { return engine.say(text); }
absl::Status do_repair(Engine& engine, const std::string&) { return engine.repair(); }

absl::Status do_generate(Engine& engine, const std::string& rest) {
  const absl::StatusOr<uint32_t> count = number(rest);
  return count.ok() ? engine.generate(*count) : count.status();
}

absl::Status do_replay(Engine& engine, const std::string& rest) {
  if (rest.empty()) return engine.replay(SIZE_MAX);
  const absl::StatusOr<uint32_t> count = number(rest);
  return count.ok() ? engine.replay(*count) : count.status();
}

absl::Status do_logits(Engine& engine, const std::string&) {
  if (absl::Status status = engine.unpark(); !status.ok()) return status;
  engine.sequence().forget_logits();
  const absl::StatusOr<std::span<const float>> logits = engine.sequence().logits();
  if (!logits.ok()) return logits.status();
  Event event = {{"event", "logits"},
                 {"logits_sha256", sha256_hex(*logits)},
                 {"best_token", greedy_token(*logits)}};
  engine.add_counters(event);
  engine.journal().write(event);
  return absl::OkStatus();
}

absl::Status do_hold(Engine& engine, const std::string& rest) {
  const std::vector<std::string> parts = absl::StrSplit(rest, ' ');
  const absl::StatusOr<uint32_t> count = number(parts.back());
  if (!count.ok()) return count.status();
  absl::Status status = engine.hold(parts.front(), static_cast<int>(*count));
  if (status.ok()) answer(engine, "holding");
  return status;
}

absl::Status do_park(Engine& engine, const std::string& rest) {
  static const std::map<std::string, SessionState> kStates = {
      {"", SessionState::kWaitingTool},
      {"tool", SessionState::kWaitingTool},
      {"user", SessionState::kWaitingUser},
      {"preempted", SessionState::kPreempted}};
  const auto found = kStates.find(rest);
  if (found == kStates.end()) return wrong(absl::StrCat("park ", rest), "tool, user, preempted");
  return engine.park(found->second);
}

absl::Status do_unpark(Engine& engine, const std::string&) {
  if (absl::Status status = engine.unpark(); !status.ok()) return status;
  answer(engine, "unparked");
  return absl::OkStatus();
}

absl::Status do_evict(Engine& engine, const std::string& rest) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "evict");
  if (!daemon.ok()) return daemon.status();
  const absl::StatusOr<std::vector<PageIndex>> pages = parse_pages(rest);
  if (!pages.ok()) return pages.status();
  if (absl::Status status = (*daemon)->evict(*pages); !status.ok()) return status;
  answer(engine, "evicting");
  return absl::OkStatus();
}

absl::Status do_restore(Engine& engine, const std::string& rest) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "restore");
  if (!daemon.ok()) return daemon.status();
  const absl::StatusOr<std::vector<PageIndex>> pages = parse_pages(rest);
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<memdecay_restore_result> result = (*daemon)->restore(*pages);
  if (!result.ok()) return result.status();
  Event event = {
      {"event", "restored"}, {"resident", result->resident}, {"failed", result->failed_count}};
  engine.add_counters(event);
  engine.journal().write(event);
  return absl::OkStatus();
}

absl::Status do_truncate(Engine& engine, const std::string& rest) {
  const absl::StatusOr<uint32_t> tokens = number(rest);
  if (!tokens.ok()) return tokens.status();
  if (absl::Status status = engine.sequence().truncate(*tokens); !status.ok()) return status;
  answer(engine, "truncated");
  return absl::OkStatus();
}

absl::Status do_budget(Engine& engine, const std::string& rest) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "budget");
  if (!daemon.ok()) return daemon.status();
  const absl::StatusOr<uint32_t> pages = number(rest);
  if (!pages.ok()) return pages.status();
  if (absl::Status status = (*daemon)->set_budget(*pages); !status.ok()) return status;
  answer(engine, "budget");
  return absl::OkStatus();
}

absl::Status do_mode(Engine& engine, const std::string& rest) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "mode");
  if (!daemon.ok()) return daemon.status();
  const std::optional<Mode> mode = mode_from_name(rest);
  if (!mode) return wrong(absl::StrCat("mode ", rest), "exact or lossy");
  if (absl::Status status = (*daemon)->set_mode(*mode); !status.ok()) return status;
  engine.sequence().promise(*mode == Mode::kLossy ? Promise::kLossy : Promise::kExact);
  if (absl::Status status = (*daemon)->wait_ready(); !status.ok()) return status;
  answer(engine, "mode");
  return absl::OkStatus();
}

absl::Status do_pages(Engine& engine, const std::string& rest) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "pages");
  const absl::StatusOr<PageTable> table = engine.store().table();
  if (!table.ok()) return table.status();
  const size_t bytes = engine.page_bytes();
  Event list = Event::array();
  for (size_t page = 0; page < table->read.size(); ++page) {
    Event row = {{"page", page}, {"address", reinterpret_cast<uint64_t>(table->read[page])}};
    if (table->read[page] == nullptr) row["address"] = nullptr;
    if (rest == "hash" && table->read[page] != nullptr && page < engine.sequence().sealed_pages()) {
      row["sha256"] = sha256_hex(std::span(table->read[page], bytes));
    }
    list.push_back(std::move(row));
  }
  if (daemon.ok()) {
    for (const memdecay_page& page : (*daemon)->pages()) {
      if (page.page >= list.size()) break;
      list[page.page]["slab"] = page.slab;
      list[page.page]["slot"] = page.slot;
      list[page.page]["generation"] = page.generation;
      list[page.page]["state"] = std::string(page_state_name(static_cast<PageState>(page.state)));
      list[page.page]["approximate"] = page.approximate != 0;
    }
  }
  Event event = {{"event", "pages"}, {"list", std::move(list)}};
  engine.add_counters(event);
  engine.journal().write(event);
  return absl::OkStatus();
}

absl::Status do_status(Engine& engine, const std::string&) {
  answer(engine, "status");
  return absl::OkStatus();
}

absl::Status do_forget(Engine& engine, const std::string&) {
  const absl::StatusOr<DaemonStore*> daemon = daemon_of(engine, "forget");
  if (!daemon.ok()) return daemon.status();
  (*daemon)->forget();
  answer(engine, "forgetting");
  return absl::OkStatus();
}

using Handler = absl::Status (*)(Engine&, const std::string&);

const std::map<std::string, Handler>& handlers() {
  static const std::map<std::string, Handler> kHandlers = {
      {"hold", do_hold},         {"turn", do_turn},     {"say", do_say},
      {"generate", do_generate}, {"logits", do_logits}, {"park", do_park},
      {"unpark", do_unpark},     {"evict", do_evict},   {"restore", do_restore},
      {"repair", do_repair},     {"replay", do_replay}, {"truncate", do_truncate},
      {"budget", do_budget},     {"mode", do_mode},     {"pages", do_pages},
      {"status", do_status},     {"forget", do_forget}};
  return kHandlers;
}

}  // namespace

absl::StatusOr<std::vector<PageIndex>> parse_pages(const std::string& text) {
  std::vector<PageIndex> pages;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::vector<std::string> ends = absl::StrSplit(part, absl::MaxSplits("..", 1));
    const absl::StatusOr<uint32_t> first = number(ends.front());
    const absl::StatusOr<uint32_t> last = number(ends.back());
    if (!first.ok() || !last.ok() || *last < *first || *last > kMaxPage) {
      return wrong(absl::StrCat("pages '", text, "'"), "write pages like 3,7..20");
    }
    for (uint32_t page = *first; page <= *last; ++page) pages.push_back(page);
  }
  return pages;
}

Event error_event(const absl::Status& status) {
  const ErrorDetail detail = error_detail(status);
  return {{"event", "error"},
          {"code", std::string(error_name(detail.code))},
          {"asked", detail.asked},
          {"there", detail.there},
          {"todo", detail.todo}};
}

absl::Status run_commands(Engine& engine, std::istream& input) {
  std::string line;
  while (std::getline(input, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (parts.front().empty()) continue;
    if (parts.front() == "quit") break;
    const auto found = handlers().find(parts.front());
    absl::Status status;
    if (found == handlers().end()) {
      status = wrong(absl::StrCat("command '", parts.front(), "'"),
                     "see memdecay-engine --help for the commands");
    } else {
      status = found->second(engine, parts.size() > 1 ? parts[1] : std::string());
    }
    if (!status.ok()) engine.journal().write(error_event(status));
  }
  return absl::OkStatus();
}

}  // namespace memdecay::reference
