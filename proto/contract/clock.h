// Time as the project speaks of it: signed nanoseconds on a monotonic scale that starts anywhere.
// Only daemon/base/real_clock and the client's clock read the machine's clock; everything else is
// given an Instant. Why not std::chrono: one type on the wire, in logs and in simulation.
// Thread: values, any.
#pragma once

#include <compare>
#include <cstdint>

namespace memdecay {

struct Duration {
  int64_t nanoseconds = 0;

  static constexpr Duration from_milliseconds(int64_t value) { return {value * 1'000'000}; }
  static constexpr Duration from_seconds(int64_t value) { return {value * 1'000'000'000}; }
  constexpr int64_t milliseconds() const { return nanoseconds / 1'000'000; }
  constexpr double seconds() const { return static_cast<double>(nanoseconds) * 1e-9; }
  constexpr auto operator<=>(const Duration&) const = default;
};

struct Instant {
  int64_t nanoseconds = 0;

  constexpr auto operator<=>(const Instant&) const = default;
};

constexpr Instant operator+(Instant instant, Duration duration) {
  return {instant.nanoseconds + duration.nanoseconds};
}
constexpr Duration operator-(Instant later, Instant earlier) {
  return {later.nanoseconds - earlier.nanoseconds};
}

}  // namespace memdecay
