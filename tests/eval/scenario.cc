// Reading a scenario's JSON (nlohmann-json, without exceptions) and rendering it; see scenario.h.
#include "tests/eval/scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/reference/mapped_file.h"
#include "proto/contract/error.h"
#include "tests/eval/page_writer.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::json;
using reference::ChatTemplate;
using reference::SpecialTokens;
using reference::Tokenizer;

constexpr int kFormat = 1;
constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxFacts = 256;

absl::Status wrong(const std::string& place, const std::string& what) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("scenario: ", place, " ", what), {},
                    "make scenarios with tests/eval/generate.py");
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> text_at(const Json& object, const char* key) {
  const Json* found = find(object, key);
  if (found == nullptr || !found->is_string()) return wrong(key, "must be a text");
  return found->get<std::string>();
}

absl::StatusOr<std::vector<std::string>> texts_at(const Json& object, const char* key) {
  std::vector<std::string> out;
  const Json* found = find(object, key);
  if (found == nullptr || !found->is_array()) return wrong(key, "must be a list of texts");
  for (const Json& item : *found) {
    if (!item.is_string()) return wrong(key, "must be a list of texts");
    out.push_back(item.get<std::string>());
  }
  return out;
}

// The words of a fact and of the standing instruction, up to the value.
std::string fact_words(const std::string& key) { return "The " + key + " is"; }
const char* const kInstruction = " The closing word of every answer is";
const char* const kObeying = "The closing word of every answer is";

class Reader {
 public:
  Reader(const Tokenizer& tokenizer, const ChatTemplate& chat)
      : tokenizer_(tokenizer), chat_(chat), writer_(tokenizer) {}

  absl::Status read(const Json& json);
  Scenario take() { return std::move(out_); }

 private:
  absl::Status read_questions(const Json& json);
  absl::Status read_question(const Json& json, const std::string& prefix, Question& out);
  absl::Status read_segments(const Json& json, const char* key);
  absl::Status read_segment(const Json& json);
  absl::Status read_block(const Json& json);
  absl::Status write_alone(const std::string& text, std::vector<PageIndex>& pages);
  absl::Status check() const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_;
  PageWriter writer_;
  Scenario out_;
  std::vector<std::string> fact_texts_;
  std::string instruction_text_;
};

absl::Status Reader::read(const Json& json) {
  const Json* format = find(json, "memdecay_scenario");
  if (format == nullptr || *format != kFormat) {
    return wrong("memdecay_scenario", absl::StrCat("must be ", kFormat));
  }
  absl::StatusOr<std::string> set = text_at(json, "set");
  if (!set.ok()) return set.status();
  out_.set = *std::move(set);
  const Json* seed = find(json, "seed");
  if (seed == nullptr || !seed->is_number_unsigned()) return wrong("seed", "must be a number");
  out_.seed = seed->get<uint64_t>();
  if (absl::Status status = read_questions(json); !status.ok()) return status;
  if (absl::Status status = read_segments(json, "prefill"); !status.ok()) return status;
  // The answer's opening belongs to the prefill; what follows it is decoded.
  const Json* answer = find(json, "answer");
  if (answer == nullptr) return wrong("answer", "is missing");
  if (absl::Status status = read_segment(*answer); !status.ok()) return status;
  out_.prefill_tokens = writer_.position();
  if (absl::Status status = read_segments(json, "decode"); !status.ok()) return status;
  out_.tokens = writer_.take_tokens();
  out_.spans = writer_.take_spans();
  absl::StatusOr<std::string> ask = text_at(json, "question");
  if (!ask.ok()) return ask.status();
  out_.ask = chat_.closing();
  for (const auto& part : {chat_.message({reference::Role::kUser, *std::move(ask)}),
                           chat_.opening(reference::Role::kAssistant)}) {
    out_.ask.insert(out_.ask.end(), part.begin(), part.end());
  }
  return check();
}

absl::Status Reader::read_questions(const Json& json) {
  const Json* facts = find(json, "facts");
  if (facts == nullptr || !facts->is_array() || facts->empty() || facts->size() > kMaxFacts) {
    return wrong("facts", absl::StrCat("must be a list of 1 to ", kMaxFacts));
  }
  for (const Json& row : *facts) {
    Fact fact;
    for (const auto& [key, field] : {std::pair{"id", &fact.id},
                                     {"region", &fact.region},
                                     {"planting", &fact.planting},
                                     {"use", &fact.use}}) {
      absl::StatusOr<std::string> text = text_at(row, key);
      if (!text.ok()) return text.status();
      *field = *std::move(text);
    }
    absl::StatusOr<std::string> key = text_at(row, "key");
    if (!key.ok()) return key.status();
    absl::Status status = read_question(row, fact_words(*key), fact.question);
    if (!status.ok()) return status;
    fact_texts_.push_back(
        absl::StrCat(" ", fact_words(*key), " ", row["value"].get<std::string>(), "."));
    out_.facts.push_back(std::move(fact));
  }
  const Json* instruction = find(json, "instruction");
  if (instruction == nullptr) return wrong("instruction", "is missing");
  absl::Status status = read_question(*instruction, kObeying, out_.instruction);
  if (!status.ok()) return status;
  instruction_text_ =
      absl::StrCat(kInstruction, " ", (*instruction)["value"].get<std::string>(), ".");
  return status;
}

absl::Status Reader::read_question(const Json& json, const std::string& prefix, Question& out) {
  absl::StatusOr<std::string> value = text_at(json, "value");
  if (!value.ok()) return value.status();
  absl::StatusOr<std::vector<std::string>> options = texts_at(json, "options");
  if (!options.ok()) return options.status();
  const auto right = std::find(options->begin(), options->end(), *value);
  if (right == options->end()) return wrong("options", "must hold the value");
  out.right = static_cast<size_t>(right - options->begin());
  out.prefix = tokenizer_.encode(prefix, SpecialTokens::kPlain);
  for (const std::string& option : *options) {
    const std::vector<TokenId> ids = tokenizer_.encode(" " + option, SpecialTokens::kPlain);
    if (ids.size() != 1) return wrong("options", absl::StrCat("'", option, "' is not one token"));
    if (std::find(out.options.begin(), out.options.end(), ids.front()) != out.options.end()) {
      return wrong("options", absl::StrCat("'", option, "' is there twice"));
    }
    out.options.push_back(ids.front());
  }
  return absl::OkStatus();
}

absl::Status Reader::read_segments(const Json& json, const char* key) {
  const Json* segments = find(json, key);
  if (segments == nullptr || !segments->is_array() || segments->empty()) {
    return wrong(key, "must be a list of segments");
  }
  for (const Json& segment : *segments) {
    if (absl::Status status = read_segment(segment); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// With a role it is a whole message; the answer's opening and what is decoded after it have none.
absl::Status Reader::read_segment(const Json& json) {
  absl::StatusOr<std::string> region = text_at(json, "region");
  if (!region.ok()) return region.status();
  const std::optional<RegionId> known = region_from_name(*region);
  if (!known || *known >= kBuiltInRegions) return wrong("region", absl::StrCat("'", *region, "'?"));
  absl::StatusOr<std::vector<std::string>> padding = texts_at(json, "padding");
  if (!padding.ok()) return padding.status();
  const Json* blocks = find(json, "blocks");
  if (blocks == nullptr || !blocks->is_array()) return wrong("blocks", "must be a list");
  writer_.begin_segment(static_cast<Region>(*known), *std::move(padding));
  std::optional<reference::Role> role;
  if (find(json, "role") != nullptr) {
    absl::StatusOr<std::string> name = text_at(json, "role");
    if (!name.ok()) return name.status();
    role = reference::role_from_name(*name);
    if (!role) return wrong("role", absl::StrCat("'", *name, "'?"));
  }
  if (role) writer_.tokens(chat_.opening(*role));
  if (!role && out_.prefill_tokens == 0) {
    writer_.tokens(chat_.opening(reference::Role::kAssistant));
  }
  for (const Json& block : *blocks) {
    if (absl::Status status = read_block(block); !status.ok()) return status;
  }
  if (!writer_.fill_page(role ? chat_.closing() : std::vector<TokenId>{})) {
    return wrong("padding", "is too short");
  }
  writer_.end_segment();
  return absl::OkStatus();
}

absl::Status Reader::read_block(const Json& json) {
  if (find(json, "instruction") != nullptr) {
    return write_alone(instruction_text_, out_.instruction_pages);
  }
  for (const char* key : {"fact", "use"}) {
    const Json* index = find(json, key);
    if (index == nullptr) continue;
    if (!index->is_number_unsigned() || index->get<uint64_t>() >= out_.facts.size()) {
      return wrong(key, "must be the index of a fact");
    }
    const size_t which = index->get<size_t>();
    if (*key == 'f') return write_alone(fact_texts_[which], out_.facts[which].pages);
    if (out_.prefill_tokens == 0) return wrong(key, "is possible in what is decoded");
    out_.facts[which].used_at_step = writer_.position() - out_.prefill_tokens + 1;
  }
  absl::StatusOr<std::string> text = text_at(json, "text");
  if (!text.ok()) return text.status();
  writer_.text(*text);
  return absl::OkStatus();
}

absl::Status Reader::write_alone(const std::string& text, std::vector<PageIndex>& pages) {
  if (!writer_.fill_page()) return wrong("padding", "is too short");
  pages.push_back(writer_.page());
  const size_t begin = writer_.position();
  writer_.text(text);
  if (writer_.position() - begin > kPageTokens) {
    return wrong("a fact", absl::StrCat("does not fit into one page:", text));
  }
  return absl::OkStatus();
}

absl::Status Reader::check() const {
  for (const Fact& fact : out_.facts) {
    if (fact.pages.size() != 1) return wrong(fact.id, "must be planted once");
    if ((fact.use != "none") != fact.used_at_step.has_value()) {
      return wrong(fact.id, "and the decoded part disagree about its use");
    }
  }
  if (out_.instruction_pages.size() != 1) return wrong("instruction", "must be given once");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Scenario> parse_scenario(const std::string& json, const Tokenizer& tokenizer,
                                        const ChatTemplate& chat) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) return wrong("the file", "is not JSON");
  Reader reader(tokenizer, chat);
  if (absl::Status status = reader.read(parsed); !status.ok()) return status;
  return reader.take();
}

absl::StatusOr<Scenario> load_scenario(const std::string& path, const Tokenizer& tokenizer,
                                       const ChatTemplate& chat) {
  const absl::StatusOr<reference::MappedFile> file = reference::MappedFile::open(path);
  if (!file.ok()) return file.status();
  if (file->bytes().size() > kMaxFileBytes) {
    return wrong(path, absl::StrCat("is larger than ", kMaxFileBytes, " bytes"));
  }
  const auto* text = reinterpret_cast<const char*>(file->bytes().data());
  return parse_scenario(std::string(text, file->bytes().size()), tokenizer, chat);
}

}  // namespace memdecay::eval
