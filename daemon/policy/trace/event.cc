// Events as lines (see event.h). Written by hand: the format is small and a recorder is on the
// daemon's path. Masses have six significant digits, times milliseconds.
#include "daemon/policy/trace/event.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace memdecay::trace {
namespace {

void quote(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&out, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_text(const char* name, std::string_view text, std::string& out) {
  absl::StrAppend(&out, ",\"", name, "\":");
  quote(text, out);
}

void append_key(uint64_t key, std::string& out) {
  absl::StrAppend(&out, "\"", absl::Hex(key, absl::kZeroPad16), "\"");
}

// ,"name":[…] of whatever `append` writes for each item.
template <typename Item, typename Append>
void append_list(const char* name, const std::vector<Item>& items, std::string& out,
                 Append append) {
  absl::StrAppend(&out, ",\"", name, "\":[");
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    append(items[i]);
  }
  out += ']';
}

void append_runs(const std::vector<RegionRun>& runs, std::string& out) {
  append_list("r", runs, out, [&](const RegionRun& run) {
    absl::StrAppend(&out, "[", run.region, ",", run.tokens, "]");
  });
}

void append_pages(const std::vector<PageIndex>& pages, std::string& out) {
  append_list("p", pages, out, [&](PageIndex page) { absl::StrAppend(&out, page); });
}

// Writes what each kind has of its own, and knows its word.
struct Writer {
  std::string& out;

  void operator()(const Opened& e) const {
    absl::StrAppend(&out, ",\"tenant\":", e.tenant);
    append_text("mode", e.mode, out);
    append_text("policy", e.policy, out);
    if (e.born == Opened::Born::kOld) out += ",\"old\":1";
  }
  void operator()(const Sealed& e) const {
    absl::StrAppend(&out, ",\"p\":", e.page, ",\"n\":", e.tokens);
    append_runs(e.runs, out);
    if (e.key) {
      out += ",\"k\":";
      append_key(*e.key, out);
    }
    if (e.depth) absl::StrAppend(&out, ",\"d\":", *e.depth);
  }
  void operator()(const Tagged& e) const {
    absl::StrAppend(&out, ",\"p\":", e.page);
    append_runs(e.runs, out);
  }
  void operator()(const Observed& e) const {
    absl::StrAppend(&out, ",\"step\":", e.step, ",\"q\":", e.query_position, ",\"nq\":", e.queries);
    absl::StrAppend(&out, ",\"sink\":", e.sink, ",\"tail\":", e.tail, ",\"rest\":", e.rest);
    append_list("m", e.masses, out, [&](const PageMass& mass) {
      absl::StrAppend(&out, "[", mass.page, ",", mass.mass, "]");
    });
    if (!e.channel.empty()) append_text("c", e.channel, out);
  }
  void operator()(const Stepped& e) const { absl::StrAppend(&out, ",\"step\":", e.step); }
  void operator()(const Pinned& e) const { append_pages(e.pages, out); }
  void operator()(const Unpinned& e) const { append_pages(e.pages, out); }
  void operator()(const Left& e) const {
    append_pages(e.pages, out);
    append_text("why", e.why, out);
  }
  void operator()(const Returned& e) const { append_pages(e.pages, out); }
  void operator()(const Became& e) const { append_text("to", e.state, out); }
  void operator()(const Forked& e) const { absl::StrAppend(&out, ",\"of\":", e.of); }
  void operator()(const Cut& e) const { absl::StrAppend(&out, ",\"p\":", e.page); }
  void operator()(const Looked& e) const {
    append_list("k", e.keys, out, [&](uint64_t key) { append_key(key, out); });
    absl::StrAppend(&out, ",\"hit\":", e.hit);
    absl::StrAppend(&out, ",\"tail\":", e.tail == Looked::Tail::kPartial ? 1 : 0);
    if (e.taken == Looked::Taken::kPeek) out += ",\"peek\":1";
  }
  void operator()(const Ended&) const {}
  void operator()(const Lost& e) const { absl::StrAppend(&out, ",\"events\":", e.events); }
};

// In the order of What.
constexpr const char* kWords[] = {"open", "seal",  "tag",  "obs", "step", "pin", "unpin", "out",
                                  "in",   "state", "fork", "cut", "look", "end", "lost"};
static_assert(std::size(kWords) == std::variant_size_v<What>);

}  // namespace

std::string to_line(const Header& header) {
  std::string out =
      absl::StrCat("{\"memdecay_trace\":", kVersion, ",\"page_tokens\":", header.page_tokens,
                   ",\"sinks\":", header.sinks);
  append_list("regions", header.regions, out,
              [&](const std::string& region) { quote(region, out); });
  absl::StrAppend(&out, ",\"started_unix\":", header.started_unix, "}");
  return out;
}

void append_line(const Event& event, std::string& out) {
  absl::StrAppend(&out, "{\"t\":", event.at_ms / 1000, ".",
                  absl::Dec(event.at_ms % 1000, absl::kZeroPad3), ",\"e\":\"",
                  kWords[event.what.index()], "\"");
  if (event.session != 0) absl::StrAppend(&out, ",\"s\":", event.session);
  std::visit(Writer{out}, event.what);
  out += '}';
}

std::string to_line(const Event& event) {
  std::string out;
  append_line(event, out);
  return out;
}

}  // namespace memdecay::trace
