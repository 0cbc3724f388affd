// Line: a name and its fields, joined. The private half of trace.cc: how each type of field looks.
// Thread: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "proto/contract/error.h"

namespace memdecay::reactor {

class Line {
 public:
  explicit Line(std::string_view name) : text_(name) {}

  template <typename Value>
  Line& with(std::string_view name, const Value& value) {
    text_ += ' ';
    text_ += name;
    text_ += '=';
    add(value);
    return *this;
  }
  Line& with(const ledger::Origin& origin) {
    if (origin.request) with("request", origin.request);
    if (origin.tenant) with("tenant", origin.tenant);
    if (origin.engine) with("engine", origin.engine);
    if (origin.epoch) with("epoch", origin.epoch);
    return *this;
  }
  std::string text() && { return std::move(text_); }

 private:
  template <typename Number>
  requires std::is_integral_v<Number>
  void add(Number value) { text_ += std::to_string(value); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void add(Enum value) { text_ += std::to_string(static_cast<int64_t>(value)); }
  template <typename Tag, typename Number>
  void add(const Id<Tag, Number>& id) {
    text_ += std::to_string(id.value);
  }
  // Doubles come from inputs or the project's own arithmetic: equal bits, equal text.
  void add(double value) { text_ += std::to_string(value); }
  void add(const std::string& value) { text_ += value; }
  void add(std::string_view value) { text_ += value; }
  void add(const absl::Status& status) { text_ += error_name(error_code(status)); }
  void add(ErrorCode code) { text_ += error_name(code); }
  void add(const Fence& fence) {
    text_ += std::to_string(fence.member) + ":" + std::to_string(fence.word) +
             ">=" + std::to_string(fence.value);
  }
  void add(const SlotRef& slot) {
    text_ += std::to_string(slot.slab.value) + "/" + std::to_string(slot.index) + "g" +
             std::to_string(slot.generation);
  }
  void add(const ledger::Span& span) {
    text_ += std::to_string(span.begin) + ".." + std::to_string(span.end);
  }
  void add(const ledger::TaggedSpan& span) {
    add(span.span);
    text_ += ":" + std::to_string(span.region);
    if (span.atomic == ledger::TaggedSpan::Atomic::kYes) text_ += "a";
  }
  void add(const ledger::PageView& view) {
    text_ += std::to_string(view.page) + ":" + std::to_string(static_cast<int>(view.state)) + "@";
    add(view.slot);
    if (view.exactness == ledger::PageView::Exactness::kApproximate) text_ += "~";
  }
  void add(const Digest& digest) { fold(digest.data(), digest.size()); }
  void add(const PageKey& key) { add(key.bytes); }
  void add(const NamespaceId& space) { add(space.bytes); }
  void add(const Checksum& checksum) { text_ += std::to_string(checksum.low ^ checksum.high); }
  void add(Duration duration) { text_ += std::to_string(duration.nanoseconds) + "ns"; }
  void add(Instant instant) { text_ += std::to_string(instant.nanoseconds); }
  template <typename First, typename Second>
  void add(const std::pair<First, Second>& pair) {
    add(pair.first);
    text_ += ':';
    add(pair.second);
  }
  template <typename Value>
  void add(const std::optional<Value>& value) {
    if (value)
      add(*value);
    else
      text_ += '-';
  }
  template <typename Value>
  void add(const std::vector<Value>& values) {
    text_ += '[';
    bool first = true;
    for (const Value& value : values) {
      if (!std::exchange(first, false)) text_ += ' ';
      add(value);
    }
    text_ += ']';
  }

 public:
  // For bulk: how many and one number for all (FNV-1a).
  template <typename Value>
  Line& folded(std::string_view name, const std::vector<Value>& values) {
    if (values.empty()) return *this;
    text_ += ' ';
    text_ += name;
    text_ += '=';
    text_ += std::to_string(values.size()) + "x";
    fold(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(Value));
    return *this;
  }

 private:
  void fold(const uint8_t* bytes, size_t count) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 16777619u;
    text_ += std::to_string(hash);
  }

  std::string text_;
};

}  // namespace memdecay::reactor
