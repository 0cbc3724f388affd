// daemon, config, tenant: what the daemon is told. It starts at the first statement after them.
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

Settings merged(Settings settings, const Settings& changes) {
  for (const auto& change : changes) {
    std::erase_if(settings,
                  [&change](const auto& setting) { return setting.first == change.first; });
    settings.push_back(change);
  }
  return settings;
}

std::optional<DaemonDeed> deed_of(const std::string& word) {
  if (word == "kill") return DaemonDeed::kKill;
  if (word == "restart") return DaemonDeed::kRestart;
  if (word == "stop") return DaemonDeed::kStop;
  return std::nullopt;
}

Outcome daemon_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() == 1) {
    const std::optional<DaemonDeed> deed = deed_of(call.arguments[0]);
    if (!deed) return broken("daemon kill, restart, stop, or key=value words");
    if (absl::Status started = ensure_started(stage); !started.ok()) return {.status = started};
    return {.status = stage.world->daemon(*deed)};
  }
  if (!call.arguments.empty()) return broken("daemon takes key=value words");
  DaemonSpec spec{.settings = call.options};
  const absl::Status checked = stage.world->check_config(spec);
  World* const world = stage.world;
  const uint64_t seed = stage.seed;
  Turns* const turns = stage.turns;
  stage = Stage{.world = world, .seed = seed, .turns = turns};
  if (!checked.ok()) return {.status = checked};
  stage.daemon = std::move(spec);
  stage.described = true;
  return {};
}

// Before the start a change is only noted, afterwards it is a reload.
absl::Status apply(Stage& stage, DaemonSpec spec) {
  const absl::Status done =
      stage.started ? stage.world->reload(spec) : stage.world->check_config(spec);
  if (done.ok()) stage.daemon = std::move(spec);
  return done;
}

Outcome config_verb(Stage& stage, const Call& call) {
  if (!stage.described) return broken("config needs a daemon");
  DaemonSpec spec = stage.daemon;
  spec.settings = merged(spec.settings, call.options);
  return {.status = apply(stage, std::move(spec))};
}

Outcome tenant_verb(Stage& stage, const Call& call) {
  if (!stage.described) return broken("tenant stands after daemon");
  if (call.arguments.size() != 1) return broken("tenant NAME [limit=…] [reservation=…]");
  DaemonSpec spec = stage.daemon;
  for (TenantSpec& tenant : spec.tenants) {
    if (tenant.name != call.arguments[0]) continue;
    tenant.settings = merged(tenant.settings, call.options);
    return {.status = apply(stage, std::move(spec))};
  }
  spec.tenants.push_back({.name = call.arguments[0], .settings = call.options});
  return {.status = apply(stage, std::move(spec))};
}

constexpr VerbEntry kVerbs[] = {
    {"daemon", daemon_verb}, {"config", config_verb}, {"tenant", tenant_verb}};

}  // namespace

absl::Span<const VerbEntry> daemon_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
