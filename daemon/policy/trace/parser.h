// Lines of a trace as events (see event.h). A parser belongs to one trace: it knows the header and
// that time never goes back.
// Thread: the owner's. Pure. Memory: one event. Bounds: event.h's; a longer list or text is
// refused. Errors: invalid_argument names the trace and the line, what was there and what to do: no
// JSON object, no header first, a field of an event is missing, of the wrong kind, negative or out
// of range, time goes back. Unknown fields and unknown kinds of events are ignored and counted. Not
// here: whether events fit together (a page that was never sealed): who uses them knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::trace {

class Parser {
 public:
  explicit Parser(std::string name);  // of the trace, for refusals
  ~Parser();
  Parser(Parser&&) noexcept;

  // Whether this text is a header of such a trace: for tools that read several kinds.
  static bool is_header(std::string_view text);

  // What line `number` (from 1) says, valid until the next call; null: the header, an empty line,
  // or a kind that is not known.
  absl::StatusOr<const Event*> take(std::string_view text, uint64_t number);

  // Null before the header has come.
  const Header* header() const { return has_header_ ? &header_ : nullptr; }
  uint64_t ignored_fields() const { return ignored_fields_; }
  uint64_t ignored_events() const { return ignored_events_; }
  const std::string& an_ignored_name() const { return an_ignored_name_; }  // the last one's

 private:
  struct Fields;
  absl::Status refuse(uint64_t number, std::string there, std::string todo) const;
  absl::Status take_header(uint64_t number);

  std::string name_;
  std::unique_ptr<Fields> fields_;
  Header header_;
  bool has_header_ = false;
  Event event_;
  uint64_t ignored_fields_ = 0;
  uint64_t ignored_events_ = 0;
  std::string an_ignored_name_;
};

}  // namespace memdecay::trace
