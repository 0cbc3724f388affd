// Numbers, keys and regions of the events; see episode_recorder.h.
#include "tests/eval/episode_recorder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/reference/model.h"
#include "proto/contract/page_key.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::eval {
namespace {

constexpr trace::SessionNumber kSession = 1;
constexpr uint64_t kStepMs = 50;  // one decoded token in the trace's time

// A name of the page's content after its prefix, as a recorder of a daemon would salt it.
uint64_t content_key(uint64_t parent, std::span<const TokenId> tokens) {
  std::string bytes = absl::StrCat("evaluation ", parent);
  for (const TokenId token : tokens) absl::StrAppend(&bytes, " ", token);
  const Digest digest = sha256(bytes);
  uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

}  // namespace

std::vector<Channel> usual_channels(const reference::ModelShape& shape) {
  return {{"all", {}}, {"late", *reference::parse_heads("late", shape.layers, shape.heads)}};
}

std::vector<Channel> head_channels(const reference::ModelShape& shape,
                                   reference::HeadChoice heads) {
  if (heads.empty()) {
    for (size_t i = 0; i < shape.layers * shape.heads; ++i) {
      heads.push_back({i / shape.heads, i % shape.heads});
    }
  }
  std::vector<Channel> out;
  for (const reference::LayerHead& one : heads) {
    out.push_back({absl::StrCat("L", one.layer, "H", one.head), {one}});
  }
  return out;
}

trace::Header trace_header() {
  trace::Header header;
  header.page_tokens = kPageTokens;
  for (RegionId region = 0; region < kBuiltInRegions; ++region) {
    header.regions.emplace_back(region_name(region));
  }
  return header;
}

EpisodeRecorder::EpisodeRecorder(const Scenario& scenario, std::vector<Channel> channels,
                                 const Detail& detail, Write write)
    : scenario_(scenario),
      channels_(std::move(channels)),
      usual_(channels_.size()),
      detail_every_(detail.every),
      write_(std::move(write)) {
  for (const Channel& one : detail.channels) {
    const auto same = [&](const Channel& other) { return other.name == one.name; };
    if (std::none_of(channels_.begin(), channels_.end(), same)) channels_.push_back(one);
  }
}

std::vector<reference::HeadChoice> EpisodeRecorder::choices() const {
  std::vector<reference::HeadChoice> out;
  for (const Channel& channel : channels_) out.push_back(channel.heads);
  return out;
}

void EpisodeRecorder::write(trace::What what) {
  write_({.at_ms = step_ * kStepMs, .session = kSession, .what = std::move(what)});
}

void EpisodeRecorder::open() {
  write(trace::Opened{.tenant = 1, .mode = "exact", .policy = "none"});
}

void EpisodeRecorder::end() { write(trace::Ended{}); }

void EpisodeRecorder::take(const SeenStep& seen) {
  step_ = seen.step;
  for (size_t page = seen.begin / kPageTokens; page < seen.end / kPageTokens; ++page) {
    seal(static_cast<PageIndex>(page));
  }
  const size_t told = step_ % detail_every_ == 0 ? channels_.size() : usual_;
  for (size_t i = 0; i < told; ++i) {
    const reference::PageMasses& masses = seen.masses[i];
    trace::Observed event{.step = static_cast<trace::Step>(step_),
                          .query_position = seen.end - 1,
                          .queries = static_cast<uint32_t>(masses.queries),
                          .sink = masses.sink,
                          .tail = masses.tail,
                          .rest = masses.rest,
                          .channel = channels_[i].name};
    for (const reference::PageMass& one : masses.listed) {
      event.masses.push_back({one.page, one.mass});
    }
    write(std::move(event));
  }
}

void EpisodeRecorder::seal(PageIndex page) {
  const size_t begin = size_t{page} * kPageTokens;
  key_ = content_key(key_, std::span(scenario_.tokens).subspan(begin, kPageTokens));
  const auto owner =
      std::find_if(scenario_.spans.begin(), scenario_.spans.end(),
                   [&](const reference::RegionSpan& span) { return begin < span.end; });
  write(trace::Sealed{.page = page,
                      .tokens = kPageTokens,
                      .runs = {{region_id(owner->region), uint16_t{kPageTokens}}},
                      .key = key_});
}

}  // namespace memdecay::eval
