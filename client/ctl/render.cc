// What people read; see render.h.
// Thread: pure functions, any.
#include "client/ctl/render.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ctl {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the first row is the heading.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      absl::StrAppend(&out, row[i], last ? "\n" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
  }
  return out;
}

std::string text(std::string_view view) { return std::string(view); }
std::string state_text(v1::SessionState state) {
  return text(session_state_name(static_cast<SessionState>(state)));
}
std::string mode_text(v1::Mode mode) {
  return text(mode_name(mode == v1::MODE_LOSSY ? Mode::kLossy : Mode::kExact));
}
std::string reason_text(int reason) {
  return reason >= 0 && reason < kReasons ? text(reason_name(static_cast<Reason>(reason))) : "?";
}

template <typename Counts>
std::string counts_text(const Counts& counts) {
  std::string out;
  for (const v1::Count& count : counts) {
    if (count.value() == 0) continue;
    absl::StrAppend(&out, out.empty() ? "" : ", ", count.value(), " ", count.name());
  }
  return out.empty() ? "none" : out;
}

std::string terms_text(const google::protobuf::RepeatedPtrField<v1::ScoreTerm>& terms) {
  std::string out;
  for (const v1::ScoreTerm& term : terms) {
    absl::StrAppendFormat(&out, "    %-24s %12.6g\n", term.name(), term.value());
  }
  return out;
}

std::string decision_text(const v1::Decision& decision) {
  std::string out = absl::StrFormat(
      "decision %d, %.1f s ago: %s page %d of session %d\n  why          %s\n  score        %g\n",
      decision.decision(), static_cast<double>(decision.age_ms()) / 1000.0, decision.kind(),
      decision.page(), decision.session(), reason_text(decision.reason()), decision.score());
  if (decision.terms_size() > 0) absl::StrAppend(&out, "  terms\n", terms_text(decision.terms()));
  if (!decision.pressure().empty())
    absl::StrAppend(&out, "  pressure     ", decision.pressure(), "\n");
  if (!decision.first_spared().empty()) {
    absl::StrAppend(&out, "  first spared ", decision.first_spared(), "\n");
  }
  if (!decision.saved_by().empty()) {
    absl::StrAppend(&out, "  saved by     ", decision.saved_by(), "\n");
  }
  return out;
}

std::string page_text(const v1::PageInfo& page) {
  std::string out =
      absl::StrCat("page ", page.view().page(), " is ",
                   as_absl(page_state_name(static_cast<PageState>(page.view().state()))),
                   page.view().approximate() ? ", approximate" : ", exact", "\n");
  if (page.view().has_slot()) {
    absl::StrAppend(&out, "  slot         slab ", page.view().slot().slab(), " index ",
                    page.view().slot().index(), " generation ", page.view().slot().generation(),
                    "\n");
  }
  absl::StrAppend(&out, "  bytes        ", page.on_device() ? "device " : "",
                  page.on_host() ? "host " : "", page.quarantined() ? "(slot quarantined)" : "",
                  page.on_device() || page.on_host() ? "\n" : "nowhere\n", "  regions     ");
  for (const v1::RegionTokens& part : page.regions()) {
    const std::string name = part.region() < kBuiltInRegions
                                 ? text(region_name(static_cast<RegionId>(part.region())))
                                 : absl::StrCat("custom ", part.region());
    absl::StrAppend(&out, " ", name, " ", part.tokens());
  }
  absl::StrAppendFormat(&out, " tokens\n  score        %g\n", page.score());
  if (page.spared_size() > 0) {
    out += "  spared for  ";
    for (const int reason : page.spared()) absl::StrAppend(&out, " ", reason_text(reason));
    out += "\n";
  }
  return out;
}

// A pool counted in pages has no size before the first layout names the page's.
std::string limit_text(const v1::TierStatus& tier) {
  const bool unknown = tier.limit_bytes() == 0 && tier.limit_pages() != 0;
  return unknown ? "-" : bytes_text(tier.limit_bytes());
}

// "device by decay (H 120 s), 12 hits, 3 misses": what lets go of pages that no session needs.
std::string retention_text(const v1::TierStatus& tier) {
  std::string out =
      absl::StrCat(text(tier_name(static_cast<Tier>(tier.tier()))), " by ", tier.retention());
  if (tier.retention_h_s() > 0) absl::StrAppendFormat(&out, " (H %g s)", tier.retention_h_s());
  absl::StrAppend(&out, ", ", tier.retention_hits(), " hits, ", tier.retention_misses(), " misses");
  if (tier.tier() == v1::TIER_HOST) absl::StrAppend(&out, "; admits ", tier.admission());
  return out;
}

// "regret    user 3 of 12, plan 0 of 4 evictions were wanted again within 64 steps"
std::string regret_text(const v1::GetStatusResponse& status) {
  if (status.regions().empty()) return "";
  std::string out = "regret    ";
  for (const v1::RegionFigures& region : status.regions()) {
    absl::StrAppend(&out, &region == &status.regions(0) ? "" : ", ", region.name(), " ",
                    region.regrets(), " of ", region.evictions());
  }
  return absl::StrCat(out, " evictions were wanted again within ", status.regret_steps(),
                      " steps\n");
}

}  // namespace

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string render(const v1::GetStatusResponse& status) {
  std::string out = absl::StrFormat(
      "memdecayd %s, up %.1f s, device %s, deaths seen by %s\n", status.version(),
      static_cast<double>(status.uptime_ms()) / 1000.0, status.device(), status.death_notice());
  std::vector<Row> rows = {{"tier", "pages", "limit", "bytes", "limit"}};
  for (const v1::TierStatus& tier : status.tiers()) {
    rows.push_back({text(tier_name(static_cast<Tier>(tier.tier()))),
                    absl::StrCat(tier.used_pages()), absl::StrCat(tier.limit_pages()),
                    bytes_text(tier.used_bytes()), limit_text(tier)});
  }
  out += table(rows);
  for (const v1::TierStatus& tier : status.tiers()) {
    if (tier.limit_pages() + tier.limit_bytes() == 0) continue;  // there is no such tier
    absl::StrAppend(&out, "keeps     ", retention_text(tier), "\n");
  }
  absl::StrAppend(&out, "slots     ", counts_text(status.slots()), "\nengines   ",
                  counts_text(status.engines()), "\nsessions  ", status.sessions(), ", entries ",
                  status.entries(), ", leases ", status.leases(), ", pinned pages ",
                  status.pinned_pages(), "\nat work   ", status.copies_in_flight(),
                  " copies in flight, ", status.waiting_requests(), " requests waiting\n");
  absl::StrAppend(&out, regret_text(status));
  return out;
}

std::string render(const v1::ListSessionsResponse& sessions) {
  std::vector<Row> rows = {{"id", "name", "tenant", "engine", "state", "mode", "policy", "budget",
                            "pages", "resident", "holes", "dropped", "approximate", "position"}};
  for (const v1::SessionInfo& s : sessions.sessions()) {
    rows.push_back({absl::StrCat(s.session()), s.name(), s.tenant(), absl::StrCat(s.engine()),
                    state_text(s.state()), mode_text(s.mode()), s.policy(),
                    s.budget_pages() == 0 ? "-" : absl::StrCat(s.budget_pages()),
                    absl::StrCat(s.pages()), absl::StrCat(s.resident_pages()),
                    absl::StrCat(s.hole_pages()), absl::StrCat(s.dropped_pages()),
                    absl::StrCat(s.approximate_pages()), absl::StrCat(s.position())});
  }
  return rows.size() == 1 ? "no sessions\n" : table(rows);
}

std::string render(const v1::SessionInfo& s) {
  return absl::StrFormat(
      "session %d %s: %s, %s, %d pages (%d resident, %d holes, %d dropped, %d approximate)\n",
      s.session(), s.name(), state_text(s.state()), mode_text(s.mode()), s.pages(),
      s.resident_pages(), s.hole_pages(), s.dropped_pages(), s.approximate_pages());
}

std::string render(const v1::ExplainResponse& answer) {
  std::string out;
  if (answer.has_page()) out += page_text(answer.page());
  if (answer.terms_size() > 0) absl::StrAppend(&out, "  terms now\n", terms_text(answer.terms()));
  for (const v1::Decision& decision : answer.decisions()) out += decision_text(decision);
  if (answer.decisions_size() == 0) out += "no decision about it is remembered\n";
  return out;
}

std::string render(const v1::ListDecisionsResponse& answer) {
  std::vector<Row> rows = {{"decision", "ago", "kind", "session", "page", "why", "score"}};
  for (const v1::Decision& d : answer.decisions()) {
    rows.push_back({absl::StrCat(d.decision()),
                    absl::StrFormat("%.1f s", static_cast<double>(d.age_ms()) / 1000.0), d.kind(),
                    absl::StrCat(d.session()), absl::StrCat(d.page()), reason_text(d.reason()),
                    absl::StrFormat("%.4g", d.score())});
  }
  if (rows.size() == 1) return "no decisions\n";
  return absl::StrCat(table(rows), "the last ", rows.size() - 1, " of ", answer.kept(),
                      " that are kept; memdecayctl explain DECISION tells more\n");
}

std::string render(const v1::CheckResponse& check) {
  if (check.differences_size() == 0) return "check: every counter agrees with the page states\n";
  std::string out;
  for (const std::string& difference : check.differences()) {
    absl::StrAppend(&out, "difference: ", difference, "\n");
  }
  return out;
}

std::string render(const v1::RestoreReply& restored) {
  std::string out = absl::StrCat("resident ", restored.resident(), "\n");
  for (const v1::FailedPage& failed : restored.failed()) {
    absl::StrAppend(&out, "page ", failed.page(),
                    " failed: ", as_absl(error_name(static_cast<ErrorCode>(failed.code()))), "\n");
  }
  return out;
}

std::string render(const v1::DropResponse& dropped) {
  std::string out;
  for (const v1::ClearedTier& tier : dropped.cleared()) {
    absl::StrAppend(&out, as_absl(tier_name(static_cast<Tier>(tier.tier()))), " ", tier.pages(),
                    " pages\n");
  }
  return out.empty() ? "nothing to drop\n" : out;
}

std::string render(const ModelSize& size) {
  return absl::StrFormat(
      "%s (%s): %d layers, %d KV heads of %d, %s\n"
      "a token  %d bytes\na page   %d bytes (%s) of %d tokens\n"
      "1000 tokens need %s; 1 GiB holds %d tokens\n",
      size.name, size.architecture, size.layers, size.kv_heads, size.head_dim, size.dtype,
      size.token_bytes, size.page_bytes, bytes_text(size.page_bytes), size.page_tokens,
      bytes_text(size.token_bytes * 1000),
      size.token_bytes == 0 ? 0 : (uint64_t{1} << 30) / size.token_bytes);
}

}  // namespace memdecay::ctl
