// Files to events (see pass.h).
#include "client/ctl/calibrate/pass.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/replay/lines.h"
#include "daemon/policy/trace/parser.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr uint64_t kLookEvery = 256;  // lines between looks at the clock

absl::Status truncated(const absl::Status& refused, const Lines::Line& line) {
  if (line.ended != Lines::Ended::kByEndOfFile) return refused;
  ErrorDetail detail = error_detail(refused);
  detail.code = ErrorCode::kDataLoss;
  absl::StrAppend(&detail.there, ", and the file ends there: it is truncated");
  detail.todo = "record it again, or drop its last line";
  return make_error(std::move(detail));
}

absl::StatusOr<PassCounts> pass_over_file(const std::string& path, const std::string& what,
                                          const Interrupts& interrupts, PassCalls calls) {
  auto lines = Lines::open(path);
  if (!lines.ok()) return lines.status();
  trace::Parser parser(path);
  Progress progress(absl::StrCat("calibrate: ", what, " ", path, ", at"));
  PassCounts counts;
  while (true) {
    const absl::StatusOr<const Lines::Line*> line = lines->next();
    if (!line.ok()) return line.status();
    if (*line == nullptr) break;
    const bool had_header = parser.header() != nullptr;
    const absl::StatusOr<const trace::Event*> event = parser.take((*line)->text, (*line)->number);
    if (!event.ok()) return truncated(event.status(), **line);
    if (!had_header && parser.header() != nullptr) {
      if (absl::Status begun = calls.begin(*parser.header()); !begun.ok()) return begun;
    }
    if (*event != nullptr) {
      ++counts.events;
      if (absl::Status taken = calls.take(**event); !taken.ok()) return taken;
    }
    if ((*line)->number % kLookEvery != 0) continue;
    progress.at(counts.events, "events", *lines);
    if (interrupts.came()) {
      return absl::CancelledError(absl::StrCat("interrupted in ", path, " after ", counts.events,
                                               " events: nothing was written; start it again"));
    }
  }
  if (parser.header() == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("trace ", path),
                      "there is no line in it", "give a trace that memdecayd has recorded");
  }
  if (absl::Status ended = calls.end(); !ended.ok()) return ended;
  counts.ignored_fields = parser.ignored_fields();
  counts.ignored_events = parser.ignored_events();
  counts.an_ignored_name = parser.an_ignored_name();
  return counts;
}

}  // namespace

absl::StatusOr<PassCounts> pass_over(const std::vector<std::string>& files, const char* what,
                                     const Interrupts& interrupts, PassCalls calls) {
  PassCounts all;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string which =
        files.size() == 1 ? what : absl::StrCat(what, " file ", i + 1, " of ", files.size(), ",");
    const absl::StatusOr<PassCounts> one = pass_over_file(files[i], which, interrupts, calls);
    if (!one.ok()) return one.status();
    all.events += one->events;
    all.ignored_fields += one->ignored_fields;
    all.ignored_events += one->ignored_events;
    if (!one->an_ignored_name.empty()) all.an_ignored_name = one->an_ignored_name;
  }
  return all;
}

}  // namespace memdecay::ctl
