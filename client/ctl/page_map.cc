// The page map; see page_map.h.
// Thread: pure functions, any.
#include "client/ctl/page_map.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/text.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ctl {
namespace {

constexpr uint32_t kShades = 4;
constexpr char kLetters[] = "SPUiors";  // in the order of Region; others are '.'

// xterm's 256 colours, dark to bright: the brighter, the higher the score.
struct RegionColours {
  std::array<int, kShades> shades;
};
constexpr std::array<RegionColours, kBuiltInRegions + 1> kColours = {{
    {{52, 88, 124, 160}},    // system: red
    {{53, 90, 127, 164}},    // plan: magenta
    {{17, 19, 26, 33}},      // user: blue
    {{22, 28, 34, 40}},      // tool_in: green
    {{23, 30, 37, 44}},      // tool_out: cyan
    {{58, 100, 142, 184}},   // retrieval: yellow
    {{236, 240, 244, 248}},  // scratchpad: grey
    {{94, 130, 166, 202}},   // user-defined: orange
}};

// The region with the most tokens in the page.
uint32_t main_region(const v1::PageInfo& page) {
  uint32_t region = region_id(Region::kUser);
  uint32_t most = 0;
  for (const v1::RegionTokens& part : page.regions()) {
    if (part.tokens() <= most) continue;
    most = part.tokens();
    region = part.region();
  }
  return region;
}

char region_letter(uint32_t region) { return region < kBuiltInRegions ? kLetters[region] : '.'; }

// 0 (lowest) … kShades - 1: the page's rank among the scores, so that outliers do not flatten it.
std::vector<uint32_t> shades_of(const v1::ListPagesResponse& pages) {
  std::vector<double> scores;
  for (const v1::PageInfo& page : pages.pages()) scores.push_back(page.score());
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint32_t> out;
  for (const double score : scores) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), score) - sorted.begin();
    const auto rank = static_cast<uint32_t>(below) * kShades / static_cast<uint32_t>(sorted.size());
    out.push_back(std::min(rank, kShades - 1));
  }
  return out;
}

std::string cell(const v1::PageInfo& page, uint32_t shade, Colour colour) {
  const uint32_t region = main_region(page);
  const char mark = place_mark(page);
  const char approximate = page.view().approximate() ? '~' : ' ';
  if (colour == Colour::kNo) return {region_letter(region), mark, approximate};
  const size_t row = std::min<size_t>(region, kBuiltInRegions);
  return absl::StrFormat("\x1b[97;48;5;%dm%c%c\x1b[0m", kColours[row].shades[shade], mark,
                         approximate);
}

std::string legend(Colour colour) {
  std::string out = "regions";
  for (uint32_t region = 0; region < kBuiltInRegions; ++region) {
    const std::string_view name = region_name(static_cast<RegionId>(region));
    if (colour == Colour::kNo) {
      absl::StrAppend(&out, " ", std::string(1, kLetters[region]), "=", as_absl(name));
    } else {
      out += absl::StrFormat(" \x1b[97;48;5;%dm %s \x1b[0m", kColours[region].shades[2],
                             as_absl(name));
    }
  }
  absl::StrAppend(&out, "\nplaces  # device  = device and host  o host  x dropped  w being written",
                  "  ? on its way  ~ approximate");
  if (colour == Colour::kYes) out += "  (bright: high score)";
  return out + "\n";
}

}  // namespace

char place_mark(const v1::PageInfo& page) {
  switch (page.view().state()) {
    case v1::PAGE_STATE_GRANTED:
    case v1::PAGE_STATE_FILLING:
    case v1::PAGE_STATE_SEALING:
      return 'w';
    case v1::PAGE_STATE_ASKED:
    case v1::PAGE_STATE_GIVEN_UP:
    case v1::PAGE_STATE_RESTORING:
      return '?';
    case v1::PAGE_STATE_DROPPED:
      return 'x';
    default:
      break;
  }
  if (page.on_device()) return page.on_host() ? '=' : '#';
  return page.on_host() ? 'o' : ' ';
}

std::string page_map(const v1::ListPagesResponse& pages, Colour colour, uint32_t columns) {
  const uint32_t width = colour == Colour::kYes ? 2 : 3;
  // Rows of 8, 16, 32 … cells, so that page numbers are easy to find.
  uint32_t row = 8;
  while (row * 2 * width + 8 <= columns && row < 64) row *= 2;
  const std::vector<uint32_t> shades = shades_of(pages);
  std::string out;
  for (int i = 0; i < pages.pages_size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    if (index % row == 0) absl::StrAppendFormat(&out, "%6d ", pages.pages(i).view().page());
    out += cell(pages.pages(i), shades[index], colour);
    if (index % row == row - 1 || i + 1 == pages.pages_size()) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += '\n';
    }
  }
  return out + legend(colour);
}

}  // namespace memdecay::ctl
