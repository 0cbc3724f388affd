// Lines and rows into files; see journal.h.
#include "adapters/reference/journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {

absl::StatusOr<Journal> Journal::open(const std::string& path, const std::string& raw, Echo echo) {
  File files[2];
  const std::string* const paths[2] = {&path, &raw};
  for (int i = 0; i < 2; ++i) {
    if (paths[i]->empty()) continue;
    files[i].reset(std::fopen(paths[i]->c_str(), "we"));
    if (files[i] != nullptr) continue;
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("write ", *paths[i]),
                      "it cannot be opened", "name a file in a folder that exists");
  }
  return Journal(std::move(files[0]), std::move(files[1]), echo);
}

void Journal::write(const Event& event) {
  // Text of a model need not be valid UTF-8; broken bytes are replaced.
  const std::string line =
      event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  for (std::FILE* to : {lines_.get(), echo_ == Echo::kStandardOutput ? stdout : nullptr}) {
    if (to == nullptr) continue;
    std::fwrite(line.data(), 1, line.size(), to);
    std::fflush(to);
  }
}

void Journal::write_row(std::span<const float> logits) {
  if (raw_ == nullptr) return;
  std::fwrite(logits.data(), sizeof(float), logits.size(), raw_.get());
  std::fflush(raw_.get());
}

}  // namespace memdecay::reference
