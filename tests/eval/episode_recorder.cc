// Forward passes in batches, told as single steps; see episode_recorder.h.
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

std::vector<Channel> head_channels(const reference::ModelShape& shape) {
  std::vector<Channel> out;
  for (size_t layer = 0; layer < shape.layers; ++layer) {
    for (size_t head = 0; head < shape.heads; ++head) {
      out.push_back({absl::StrCat("L", layer, "H", head), {{layer, head}}});
    }
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

EpisodeRecorder::EpisodeRecorder(reference::Decoder& decoder, const Scenario& scenario,
                                 std::vector<Channel> channels, std::vector<Channel> detail,
                                 Write write)
    : decoder_(decoder),
      scenario_(scenario),
      channels_(std::move(channels)),
      usual_(channels_.size()),
      write_(std::move(write)) {
  channels_.insert(channels_.end(), detail.begin(), detail.end());
}

void EpisodeRecorder::write(trace::What what) {
  write_({.at_ms = step_ * kStepMs, .session = kSession, .what = std::move(what)});
}

absl::Status EpisodeRecorder::record(reference::PageStore& store) {
  write(trace::Opened{.tenant = 1, .mode = "exact", .policy = "none"});
  absl::Status status = store.extend(static_cast<uint32_t>(scenario_.pages()));
  const size_t prefilled = scenario_.prefill_tokens;
  const size_t all = scenario_.tokens.size();
  for (size_t at = 0; status.ok() && at < prefilled; at += kChunkTokens) {
    const size_t end = std::min(at + kChunkTokens, prefilled);
    status = compute(store, at, end, end - at);
  }
  for (size_t at = prefilled; status.ok() && at < all; at += kChunkTokens) {
    status = compute(store, at, std::min(at + kChunkTokens, all), 1);
  }
  write(trace::Ended{});
  return status;
}

absl::Status EpisodeRecorder::compute(reference::PageStore& store, size_t begin, size_t end,
                                      size_t group) {
  reference::MassRequest request{
      .sealed_pages = begin / kPageTokens, .choices = {}, .group_queries = group};
  for (const Channel& channel : channels_) request.choices.push_back(channel.heads);
  const absl::StatusOr<reference::PageTable> table = store.table();
  if (!table.ok()) return table.status();
  const absl::StatusOr<reference::ForwardOutput> out =
      decoder_.forward({.tokens = std::span(scenario_.tokens).subspan(begin, end - begin),
                        .first_position = begin,
                        .pages = *table,
                        .logits = reference::LogitRows::kNone,
                        .masses = &request});
  if (!out.ok()) return out.status();
  const std::span<const reference::PageMasses> masses = out->masses;
  for (size_t at = begin; at < end; at += group) {
    const size_t first = (at - begin) / group * channels_.size();
    tell_step(at, at + group, masses.subspan(first, channels_.size()));
  }
  return absl::OkStatus();
}

void EpisodeRecorder::tell_step(size_t begin, size_t end,
                                std::span<const reference::PageMasses> masses) {
  const bool decoding = begin >= scenario_.prefill_tokens;
  if (decoding) ++step_;
  for (size_t page = begin / kPageTokens; page < end / kPageTokens; ++page) {
    seal(static_cast<PageIndex>(page));
  }
  const bool detailed = !decoding || step_ % kDetailEvery == 0;
  for (size_t i = 0; i < (detailed ? channels_.size() : usual_); ++i) {
    trace::Observed seen{.step = static_cast<trace::Step>(step_),
                         .query_position = end - 1,
                         .queries = static_cast<uint32_t>(masses[i].queries),
                         .sink = masses[i].sink,
                         .tail = masses[i].tail,
                         .rest = masses[i].rest,
                         .channel = channels_[i].name};
    for (const reference::PageMass& one : masses[i].listed) {
      seen.masses.push_back({one.page, one.mass});
    }
    write(std::move(seen));
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
