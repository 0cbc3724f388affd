// Traces of requests, one JSON object a line: those that memdecayd records (recorded.h), and two
// formats that are published:
//
//   Mooncake  {"timestamp": ms, "input_length": tokens, "output_length": tokens,
//              "hash_ids": [block, ...]}                     blocks of 512 tokens
//   Bailian   {"chat_id": n, "parent_chat_id": n, "timestamp": s, "input_length": tokens,
//              "output_length": tokens, "type": text, "turn": n,
//              "hash_ids": [block, ...]}                     blocks of 16 tokens
//
// Equal block ids mean equal content after equal prefixes. Which one it is, the first line says (a
// header, or `chat_id`). timestamp and hash_ids must be there; a last block that input_length does
// not fill is a partial tail. Other fields are ignored and counted. Times never go back. Memory:
// one line. Thread: one. Not here: gzip (lines.h), what is done with it (replay.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/replay/lines.h"
#include "client/ctl/replay/recorded.h"
#include "client/ctl/replay/request.h"
#include "proto/contract/clock.h"

namespace memdecay::ctl {

class TraceReader {
 public:
  enum class Layout : uint8_t { kMooncake, kBailian, kMemdecay };

  static absl::StatusOr<TraceReader> open(const std::string& path);
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;

  // The next request, valid until the next call; null at the end. invalid_argument, with file and
  // line: no JSON object, a field is missing, of the wrong kind or negative, the time goes back.
  // data_loss: the file ends inside a line, or its gzip stream early. An empty file is an error.
  absl::StatusOr<const TraceRequest*> next();

  std::optional<Layout> layout() const { return layout_; }  // known after the first line
  uint64_t ignored_fields() const {
    return recorded_ ? recorded_->ignored_fields() : ignored_fields_;
  }
  // The last field or event that was ignored.
  const std::string& an_ignored_name() const {
    return recorded_ ? recorded_->an_ignored_name() : an_ignored_field_;
  }
  const Recorded* recorded() const { return recorded_ ? &*recorded_ : nullptr; }
  const Lines& lines() const { return lines_; }

 private:
  struct Parsed;
  explicit TraceReader(Lines lines);
  absl::Status take(const Lines::Line& line);
  absl::Status nothing_in_it() const;
  absl::Status refuse(const Lines::Line& line, const std::string& there,
                      const std::string& todo) const;

  Lines lines_;
  std::unique_ptr<Parsed> parsed_;
  TraceRequest request_;
  std::optional<Layout> layout_;
  std::optional<Recorded> recorded_;
  uint64_t requests_ = 0;  // that somebody asked for
  uint64_t ignored_fields_ = 0;
  std::string an_ignored_field_;  // the last one's name
};

}  // namespace memdecay::ctl
