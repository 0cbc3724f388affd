// Reading episode files (nlohmann-json, without exceptions) and rendering them as ChatML.
#include "adapters/reference/episode.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "adapters/reference/mapped_file.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxTurns = 256;
constexpr size_t kMaxGenerate = 4096;

absl::Status wrong(const std::string& place, const std::string& what) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("episode: ", place, " ", what), {},
                    "see adapters/reference/episodes/README.md");
}

absl::StatusOr<std::string> text_at(const Json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() ||
      found->get_ref<const std::string&>().empty()) {
    return wrong(absl::StrCat(place, ".", key), "must be a text that is not empty");
  }
  return found->get<std::string>();
}

absl::Status only_keys(const Json& object, std::initializer_list<const char*> keys,
                       const std::string& place) {
  if (!object.is_object()) return wrong(place, "must be an object");
  for (const auto& item : object.items()) {
    bool known = false;
    for (const char* key : keys) known = known || item.key() == key;
    if (!known) return wrong(place, absl::StrCat("has the unknown key '", item.key(), "'"));
  }
  return absl::OkStatus();
}

void append(EpisodeTurn& turn, const std::vector<TokenId>& tokens, Region region) {
  const size_t begin = turn.tokens.size();
  turn.tokens.insert(turn.tokens.end(), tokens.begin(), tokens.end());
  turn.spans.push_back({begin, turn.tokens.size(), region});
}

absl::Status read_segment(const Json& segment, const std::string& place, const ChatTemplate& chat,
                          EpisodeTurn& turn) {
  absl::Status status = only_keys(segment, {"role", "region", "text"}, place);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> role = text_at(segment, "role", place);
  if (!role.ok()) return role.status();
  absl::StatusOr<std::string> region = text_at(segment, "region", place);
  if (!region.ok()) return region.status();
  absl::StatusOr<std::string> text = text_at(segment, "text", place);
  if (!text.ok()) return text.status();
  const std::optional<Role> known_role = role_from_name(*role);
  if (!known_role) return wrong(absl::StrCat(place, ".role"), absl::StrCat("'", *role, "'?"));
  const std::optional<RegionId> known_region = region_from_name(*region);
  if (!known_region || *known_region >= kBuiltInRegions) {
    return wrong(absl::StrCat(place, ".region"), absl::StrCat("'", *region, "'?"));
  }
  append(turn, chat.message({*known_role, *std::move(text)}), static_cast<Region>(*known_region));
  return absl::OkStatus();
}

absl::Status read_turn(const Json& json, const std::string& place, const ChatTemplate& chat,
                       EpisodeTurn& turn) {
  absl::Status status = only_keys(json, {"segments", "generate", "pause"}, place);
  if (!status.ok()) return status;
  const auto segments = json.find("segments");
  if (segments == json.end() || !segments->is_array() || segments->empty()) {
    return wrong(absl::StrCat(place, ".segments"), "must be a list that is not empty");
  }
  for (size_t i = 0; i < segments->size(); ++i) {
    const std::string segment_place = absl::StrCat(place, ".segments[", i, "]");
    status = read_segment((*segments)[i], segment_place, chat, turn);
    if (!status.ok()) return status;
  }
  append(turn, chat.opening(Role::kAssistant), Episode::kGeneratedRegion);
  const auto generate = json.find("generate");
  if (generate == json.end() || !generate->is_number_unsigned() ||
      generate->get<uint64_t>() > kMaxGenerate) {
    return wrong(absl::StrCat(place, ".generate"),
                 absl::StrCat("must be a number from 0 to ", kMaxGenerate));
  }
  turn.generate = generate->get<size_t>();
  absl::StatusOr<std::string> pause = text_at(json, "pause", place);
  if (!pause.ok()) return pause.status();
  if (*pause != "waiting_tool" && *pause != "waiting_user") {
    return wrong(absl::StrCat(place, ".pause"), "must be waiting_tool or waiting_user");
  }
  turn.pause = *pause == "waiting_tool" ? SessionState::kWaitingTool : SessionState::kWaitingUser;
  return absl::OkStatus();
}

}  // namespace

size_t Episode::prefill_tokens() const {
  size_t count = 0;
  for (const EpisodeTurn& turn : turns) count += turn.tokens.size();
  return count;
}

size_t Episode::generated_tokens() const {
  size_t count = 0;
  for (const EpisodeTurn& turn : turns) count += turn.generate;
  return count;
}

absl::StatusOr<Episode> parse_episode(std::string_view json, const ChatTemplate& chat) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return wrong("file", "is not JSON");
  if (absl::Status status = only_keys(root, {"name", "system", "turns"}, "episode"); !status.ok()) {
    return status;
  }
  Episode episode;
  absl::StatusOr<std::string> name = text_at(root, "name", "episode");
  if (!name.ok()) return name.status();
  episode.name = *std::move(name);
  absl::StatusOr<std::string> system = text_at(root, "system", "episode");
  if (!system.ok()) return system.status();
  const auto turns = root.find("turns");
  if (turns == root.end() || !turns->is_array() || turns->empty() || turns->size() > kMaxTurns) {
    return wrong("turns", absl::StrCat("must be a list of 1 to ", kMaxTurns, " turns"));
  }
  for (size_t i = 0; i < turns->size(); ++i) {
    EpisodeTurn turn;
    if (i == 0) {
      append(turn, chat.message({Role::kSystem, *system}), Region::kSystem);
    } else {
      append(turn, chat.closing(), Episode::kGeneratedRegion);
    }
    absl::Status status = read_turn((*turns)[i], absl::StrCat("turns[", i, "]"), chat, turn);
    if (!status.ok()) return status;
    episode.turns.push_back(std::move(turn));
  }
  return episode;
}

absl::StatusOr<Episode> load_episode(const std::string& path, const ChatTemplate& chat) {
  absl::StatusOr<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  if (file->bytes().size() > kMaxFileBytes) return wrong(path, "is too long");
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  return parse_episode(text, chat);
}

}  // namespace memdecay::reference
