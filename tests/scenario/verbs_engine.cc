// engine, member, detach, reattach, kill, freeze, thaw, leave, ack, noack, signal, readfence.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/layouts.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

absl::Status read_version(const std::string& text, EngineSpec& spec) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('.', 1));
  const absl::StatusOr<uint32_t> major = parse_count(parts.first);
  const absl::StatusOr<uint32_t> minor = parse_count(parts.second);
  if (!major.ok() || !minor.ok() || *major > UINT16_MAX || *minor > UINT16_MAX) {
    return bad_value("a version", text, "like 1.1");
  }
  spec.protocol_major = static_cast<uint16_t>(*major);
  spec.protocol_minor = static_cast<uint16_t>(*minor);
  return absl::OkStatus();
}

Outcome engine_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("engine NAME …");
  EngineSpec spec{.name = call.arguments[0]};
  const absl::StatusOr<Layout> layout =
      make_layout(call, {.page_bytes = stage.page_bytes(), .page_tokens = stage.page_tokens()});
  if (!layout.ok()) return broken(layout.status());
  spec.layout = *layout;
  if (const auto tenant = call.option("tenant")) spec.tenant = *tenant;
  if (const auto placement = call.option("placement")) {
    if (*placement != "engine" && *placement != "daemon") return broken("placement=engine|daemon");
    spec.placement = *placement == "engine" ? Placement::kEngine : Placement::kDaemon;
  }
  if (const auto version = call.option("version")) {
    if (absl::Status read = read_version(*version, spec); !read.ok()) return broken(read);
  }
  for (const auto& [option, field] : {std::pair("uid", &spec.uid), std::pair("gid", &spec.gid)}) {
    const auto value = call.option(option);
    if (!value) continue;
    const absl::StatusOr<uint32_t> number = parse_count(*value);
    if (!number.ok()) return broken(number.status());
    *field = *number;
  }
  if (const auto blocks = call.option("blocks")) {
    const absl::StatusOr<uint32_t> number = parse_count(*blocks);
    if (!number.ok()) return broken(number.status());
    spec.blocks = *number;
  }
  const absl::Status attached = stage.world->attach(spec);
  if (attached.ok()) stage.engines[spec.name] = spec;
  return {.status = attached};
}

Outcome deed(Stage& stage, const Call& call, EngineDeed what) {
  if (what == EngineDeed::kKill && call.arguments.size() == 2) {
    return {.status = stage.world->kill_member(call.arguments[0], call.arguments[1])};
  }
  if (call.arguments.size() != 1) return broken(absl::StrCat(call.verb, " ENGINE"));
  if (!stage.engines.contains(call.arguments[0])) {
    return broken(absl::StrCat("the script has no engine ", call.arguments[0]));
  }
  const absl::Status done = stage.world->engine(call.arguments[0], what);
  if (what != EngineDeed::kKill || !done.ok()) return {.status = done};
  for (auto& [name, fence] : stage.fences) {
    if (fence.engine == call.arguments[0]) fence.signalled = true;  // it never will be
  }
  return {.status = done};
}

Outcome member_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("member ENGINE NAME");
  return {.status = stage.world->add_member(call.arguments[0], call.arguments[1])};
}

Outcome signal_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("signal FENCE");
  const auto fence = stage.fences.find(call.arguments[0]);
  if (fence == stage.fences.end()) {
    return broken(absl::StrCat("the script has no fence ", call.arguments[0]));
  }
  fence->second.signalled = true;
  return {.status = stage.world->signal(fence->second.engine, fence->second.fence)};
}

Outcome readfence_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("readfence S:0 FENCE");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  const absl::StatusOr<Fence> fence = named_fence(stage, call.arguments[1], pages->session->engine);
  if (!fence.ok()) return {.status = fence.status()};
  return ask(stage, call, engine_of(*pages->session, call),
             ledger::ReadFence{
                 .session = pages->session->id, .pages = pages->pages, .fence = *fence},
             Waits::kForAnswer)
      .outcome;
}

template <EngineDeed kDeed>
Outcome deed_verb(Stage& stage, const Call& call) {
  return deed(stage, call, kDeed);
}

constexpr VerbEntry kVerbs[] = {
    {"engine", engine_verb},
    {"member", member_verb},
    {"detach", deed_verb<EngineDeed::kDetach>},
    {"reattach", deed_verb<EngineDeed::kReattach>},
    {"kill", deed_verb<EngineDeed::kKill>},
    {"freeze", deed_verb<EngineDeed::kFreeze>},
    {"thaw", deed_verb<EngineDeed::kThaw>},
    {"leave", deed_verb<EngineDeed::kLeave>},
    {"ack", deed_verb<EngineDeed::kAck>},
    {"noack", deed_verb<EngineDeed::kNoAck>},
    {"signal", signal_verb},
    {"readfence", readfence_verb},
};

}  // namespace

absl::Span<const VerbEntry> engine_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
