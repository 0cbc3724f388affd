// What engines of the simulated world read and write, and their fences. See sim_world.h.
// Thread: the test's one.
#include <span>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/sim_world.h"

namespace memdecay::scenario {
namespace {

using Life = ScriptedEngine::Life;

absl::Status not_there(const std::string& name, std::string there) {
  return make_error(ErrorCode::kUnavailable, absl::StrCat("engine ", name), std::move(there),
                    "attach it first");
}

}  // namespace

std::optional<SlotRef> SimScenarioWorld::mapped(const std::string& name, SessionId session,
                                                PageIndex page) {
  const ScriptedEngine* engine = find(name);
  return engine == nullptr ? std::nullopt : engine->mapped(session, page);
}

absl::Status SimScenarioWorld::write(const std::string& name, SessionId session, PageIndex page,
                                     uint64_t offset, const std::string& bytes) {
  const ScriptedEngine* engine = find(name);
  if (engine == nullptr || engine->life() == Life::kGone) return not_there(name, "dead");
  const std::optional<SlotRef> slot = engine->mapped(session, page);
  if (!slot) {
    return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                      "the engine does not map it", "restore it first");
  }
  return world_->bytes().write(engine->id(), *slot, offset,
                               std::as_bytes(std::span(bytes.data(), bytes.size())));
}

absl::StatusOr<std::string> SimScenarioWorld::read(const std::string& name, SessionId session,
                                                   PageIndex page) {
  const ScriptedEngine* engine = find(name);
  if (engine == nullptr || engine->life() == Life::kGone) return not_there(name, "dead");
  const std::optional<SlotRef> slot = engine->mapped(session, page);
  if (!slot) return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page), "not mapped");
  const absl::StatusOr<sim::PageBytes> bytes = world_->bytes().read(engine->id(), *slot);
  if (!bytes.ok()) return bytes.status();
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

absl::StatusOr<Fence> SimScenarioWorld::make_fence(const std::string& name) {
  const ScriptedEngine* engine = find(name);
  if (engine == nullptr) return not_there(name, "never attached");
  return world_->fences().make(engine->id());
}

absl::Status SimScenarioWorld::signal(const std::string& name, const Fence& fence) {
  const ScriptedEngine* engine = find(name);
  if (engine == nullptr || engine->life() == Life::kGone) return not_there(name, "dead");
  world_->fences().signal(engine->id(), fence);
  return absl::OkStatus();
}

}  // namespace memdecay::scenario
