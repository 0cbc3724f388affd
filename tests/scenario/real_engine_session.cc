// The engine's commands about sessions: opened, steered, described. See real_engine.h.
// Thread: one a command.
#include <string>
#include <utility>

#include "tests/scenario/real_engine.h"

namespace memdecay::scenario {
namespace {

memdecay_span span_of(const WireWords& words) {
  return {static_cast<uint32_t>(words.number("begin")), static_cast<uint32_t>(words.number("end"))};
}

uint32_t small(const WireWords& words, const char* name) {
  return static_cast<uint32_t>(words.number(name));
}

memdecay_fence fence_of(const std::string& text) {
  const auto parts = WireWords::split(text, ':');
  if (parts.size() != 3) return MEMDECAY_NO_FENCE;
  return {static_cast<uint32_t>(std::stoul(parts[0])), static_cast<uint32_t>(std::stoul(parts[1])),
          std::stoull(parts[2])};
}

}  // namespace

// What the runner's model takes over.
std::string EngineHost::describe(memdecay_session* session) {
  const std::lock_guard reading(reading_);
  const memdecay_session_info info = memdecay_info(session);
  const memdecay_page* pages = nullptr;
  uint32_t count = 0;
  const uint32_t tokens = info.token_count;
  std::string out = "session=" + std::to_string(info.id) +
                    " position=" + std::to_string(info.position) +
                    " step=" + std::to_string(info.step) + " ready=" + std::to_string(info.ready) +
                    " mode=" + std::to_string(static_cast<int>(info.mode)) +
                    " tokens=" + WireWords::join({info.tokens, info.tokens + tokens});
  if (memdecay_page_table(session, &pages, &count) == MEMDECAY_OK) {
    out += " pages=" + std::to_string(count);
  }
  return out;
}

EngineHost::Answer EngineHost::keep(memdecay_code code, memdecay_session* session) {
  if (code != MEMDECAY_OK) return failed(code);
  Answer answer{.words = describe(session)};
  const uint64_t id = memdecay_info(session).id;
  const std::lock_guard closing(closing_);
  not_ours_.erase(id);
  const std::lock_guard lock(mutex_);
  sessions_[id] = session;
  return answer;
}

EngineHost::Answer EngineHost::open(const WireWords& words) {
  const std::string name = words.text("name");
  const std::string policy = words.text("policy");
  const std::string policy_options = words.text("options");
  memdecay_open_options options = MEMDECAY_OPEN_INIT;
  options.name = name.c_str();
  options.mode = static_cast<memdecay_mode>(words.number("mode"));
  options.budget_pages = small(words, "budget");
  options.priority = static_cast<int32_t>(words.whole("priority"));
  if (!policy.empty()) options.policy = policy.c_str();
  if (!policy_options.empty()) options.policy_options = policy_options.c_str();
  options.default_region = static_cast<int32_t>(words.whole("region"));
  memdecay_session* session = nullptr;
  const memdecay_code code = memdecay_open(client_, &layout_, &options, &session);
  return keep(code, session);
}

EngineHost::Answer EngineHost::resume(const WireWords& words) {
  memdecay_session* session = nullptr;
  const memdecay_code code = memdecay_resume(client_, &layout_, words.number("id"), nullptr,
                                             static_cast<int>(words.number("steal")), &session);
  return keep(code, session);
}

EngineHost::Answer EngineHost::fork(const WireWords& words) {
  memdecay_session* from = session(words);
  if (from == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
  const std::string name = words.text("name");
  memdecay_session* child = nullptr;
  const memdecay_code code = memdecay_fork(from, name.c_str(), &child);
  return keep(code, child);
}

EngineHost::Answer EngineHost::close(const WireWords& words) {
  const std::lock_guard closing(closing_);
  memdecay_session* closed = session(words);
  if (closed == nullptr) {
    // Kept before: only who has it again can forget it.
    const memdecay_code code =
        memdecay_resume(client_, &layout_, words.number("session"), nullptr, 0, &closed);
    if (code != MEMDECAY_OK) return failed(code);
  }
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(words.number("session"));
  }
  return result(memdecay_close(closed, static_cast<int>(words.number("forget"))));
}

EngineHost::Answer EngineHost::truncate(const WireWords& words) {
  return on_session(
      words, [&](memdecay_session* s) { return memdecay_truncate(s, small(words, "tokens")); });
}
EngineHost::Answer EngineHost::park(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_park(s, static_cast<memdecay_pause>(words.number("why")));
  });
}
EngineHost::Answer EngineHost::budget(const WireWords& words) {
  return on_session(
      words, [&](memdecay_session* s) { return memdecay_set_budget(s, small(words, "pages")); });
}
EngineHost::Answer EngineHost::mode(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_set_mode(s, static_cast<memdecay_mode>(words.number("mode")));
  });
}
EngineHost::Answer EngineHost::untag(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) { return memdecay_untag(s, span_of(words)); });
}
EngineHost::Answer EngineHost::endgroup(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_end_group(s, span_of(words), static_cast<int>(words.number("cut")));
  });
}
EngineHost::Answer EngineHost::hint(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_hint(s, span_of(words), words.real("relevance"));
  });
}
EngineHost::Answer EngineHost::supersede(const WireWords& words) {
  return on_session(words,
                    [&](memdecay_session* s) { return memdecay_supersede(s, span_of(words)); });
}
EngineHost::Answer EngineHost::pin(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_pin(s, small(words, "first"), small(words, "pages"), words.whole("ttl"));
  });
}
EngineHost::Answer EngineHost::unpin(const WireWords& words) {
  return on_session(words, [&](memdecay_session* s) {
    return memdecay_unpin(s, small(words, "first"), small(words, "pages"));
  });
}

EngineHost::Answer EngineHost::unpark(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
  // Asked and, mostly, ready; the script watches for `ready` itself.
  const memdecay_code code = memdecay_unpark(s, 300);
  return result(code == MEMDECAY_DEADLINE || code == MEMDECAY_DATA_LOSS ? MEMDECAY_OK : code);
}

EngineHost::Answer EngineHost::repair(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
  memdecay_repair_info info{};
  const memdecay_code code = memdecay_repair(s, &info, 0);
  if (code != MEMDECAY_OK) return failed(code);
  return {.words = "needed=" + std::to_string(info.needed) + " first=" +
                   std::to_string(info.first_page) + " tokens=" + std::to_string(info.tokens)};
}

EngineHost::Answer EngineHost::tag(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
  const memdecay_tagged_span span{small(words, "begin"), small(words, "end"),
                                  small(words, "region"), small(words, "atomic")};
  return result(memdecay_tag(s, &span, 1));
}

EngineHost::Answer EngineHost::observe(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = "not this engine's"};
  memdecay_step step = MEMDECAY_STEP_INIT;
  step.step = words.number("step");
  step.position = small(words, "position");
  step.queries = small(words, "queries");
  step.sink = words.real("sink");
  step.tail = words.real("tail");
  step.rest = words.real("rest");
  std::vector<memdecay_mass> masses;
  for (const std::string& item : words.list("masses")) {
    const auto parts = WireWords::split(item, ':');
    if (parts.size() == 2) {
      masses.push_back(
          {static_cast<uint32_t>(std::stoul(parts[0])), std::strtod(parts[1].c_str(), nullptr)});
    }
  }
  step.masses = masses.data();
  step.mass_count = static_cast<uint32_t>(masses.size());
  step.fence = fence_of(words.text("fence"));
  const memdecay_code begun = memdecay_begin_step(s);
  if (begun != MEMDECAY_OK) return failed(begun);
  return result(memdecay_end_step(s, &step));
}

}  // namespace memdecay::scenario
