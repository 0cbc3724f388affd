// Encoding of the handle socket's frames (see handle_frames.h).
// Each payload struct has one visit() that names its fields in wire order; encoder and decoder walk
// the same list, so they cannot disagree.
#include "proto/contract/handle_frames.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace memdecay {
namespace {

template <typename Number>
concept WireNumber = std::is_unsigned_v<Number>;

class Encoder {
 public:
  template <WireNumber Number>
  void operator()(const Number& value) {
    for (size_t i = 0; i < sizeof(Number); ++i) {
      out_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
    }
  }
  template <typename Tag, typename Number>
  void operator()(const Id<Tag, Number>& id) {
    (*this)(id.value);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const Enum& value) { (*this)(static_cast<std::underlying_type_t<Enum>>(value)); }
  void operator()(const Token& token) { out_.append(token.begin(), token.end()); }
  void operator()(const std::string& text) {
    (*this)(static_cast<uint16_t>(text.size()));
    out_.append(text);
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <WireNumber Number>
  void operator()(Number& value) {
    value = 0;
    const std::span<const std::byte> bytes = take(sizeof(Number));
    for (size_t i = 0; i < bytes.size(); ++i) {
      value = static_cast<Number>(value | (static_cast<Number>(bytes[i]) << (8 * i)));
    }
  }
  template <typename Tag, typename Number>
  void operator()(Id<Tag, Number>& id) {
    (*this)(id.value);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum& value) {
    std::underlying_type_t<Enum> number = 0;
    (*this)(number);
    value = static_cast<Enum>(number);
  }
  void operator()(Token& token) {
    const std::span<const std::byte> bytes = take(token.size());
    std::transform(bytes.begin(), bytes.end(), token.begin(),
                   [](std::byte b) { return static_cast<uint8_t>(b); });
  }
  void operator()(std::string& text) {
    uint16_t length = 0;
    (*this)(length);
    const std::span<const std::byte> bytes = take(length);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // Everything was there and nothing was left over.
  bool exact() const { return enough_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) enough_ = false;
    if (!enough_) return {};
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::byte> rest_;
  bool enough_ = true;
};

template <typename T, typename Frame>
concept IsFrame = std::is_same_v<std::remove_const_t<T>, Frame>;

// The wire order of every payload.
template <typename Coder>
void visit(Coder& code, IsFrame<Hello> auto& f) {
  code(f.major);
  code(f.minor);
  code(f.role);
  code(f.engine_name);
  code(f.engine);
  code(f.epoch);
  code(f.token);
  code(f.page_tokens);
  code(f.page_bytes);
  code(f.pages);
}
template <typename Coder>
void visit(Coder& code, IsFrame<Welcome> auto& f) {
  code(f.engine);
  code(f.epoch);
  code(f.token);
  code(f.member);
  code(f.major);
  code(f.minor);
  code(f.death_confirmation);
  code(f.control_path);
}
template <typename Coder>
void visit(Coder& code, IsFrame<Refused> auto& f) {
  code(f.code);
  code(f.text);
}
template <typename Coder>
void visit(Coder& code, IsFrame<SlabFd> auto& f) {
  code(f.slab);
  code(f.bytes);
  code(f.page_bytes);
  code(f.slots);
  code(f.access);
}
template <typename Coder>
void visit(Coder& code, IsFrame<SlabGone> auto& f) {
  code(f.slab);
}
template <typename Coder>
void visit(Coder& code, IsFrame<TimelineFd> auto& f) {
  code(f.member);
}
template <typename Coder>
void visit(Coder& code, IsFrame<ShadowFd> auto& f) {
  code(f.bytes);
}
template <typename Coder>
void visit(Coder&, IsFrame<Goodbye> auto&) {}
template <typename Coder>
void visit(Coder& code, IsFrame<HandBack> auto& f) {
  code(f.slab);
  code(f.bytes);
}

template <typename Enum>
bool within(Enum value, Enum first, Enum last) {
  return value >= first && value <= last;
}

// What is wrong with the values, or nothing. `const char*` names the field.
using Fault = std::optional<const char*>;

Fault text_fault(const std::string& text, const char* field) {
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (control || text.size() > kMaxFrameTextBytes) return field;
  return std::nullopt;
}

Fault fault(const Hello& f) {
  if (!within(f.role, MemberRole::kScheduler, MemberRole::kOperator)) return "role";
  if (static_cast<bool>(f.engine) != static_cast<bool>(f.epoch)) return "engine and epoch";
  return text_fault(f.engine_name, "engine_name");
}
Fault fault(const Welcome& f) {
  if (!f.engine || !f.epoch) return "engine and epoch";
  if (!within(f.death_confirmation, DeathConfirmation::kPeerPidfd,
              DeathConfirmation::kSocketOnly)) {
    return "death_confirmation";
  }
  return text_fault(f.control_path, "control_path");
}
Fault fault(const Refused& f) {
  if (!within(f.code, ErrorCode::kInvalidArgument, ErrorCode::kInternal)) return "code";
  return text_fault(f.text, "text");
}
Fault fault(const SlabFd& f) {
  if (!f.slab) return "slab";
  if (!within(f.access, SlabAccess::kReadOnly, SlabAccess::kWritable)) return "access";
  if (f.bytes == 0 || f.page_bytes == 0 || f.slots == 0) return "sizes";
  if (f.slots > f.bytes / f.page_bytes) return "slots";
  return std::nullopt;
}
Fault fault(const SlabGone& f) { return f.slab ? Fault() : Fault("slab"); }
Fault fault(const TimelineFd&) { return std::nullopt; }
Fault fault(const ShadowFd& f) { return f.bytes > 0 ? Fault() : Fault("bytes"); }
Fault fault(const Goodbye&) { return std::nullopt; }
Fault fault(const HandBack& f) { return f.bytes > 0 ? Fault() : Fault("bytes"); }

absl::Status refused(FrameType type, std::string there) {
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat("frame of type ", static_cast<int>(type)), std::move(there),
                    "see proto/README.md, Handle socket");
}

template <typename Payload>
absl::StatusOr<Frame> decode_as(FrameType type, std::span<const std::byte> bytes) {
  Payload payload;
  Decoder decoder(bytes);
  visit(decoder, payload);
  if (!decoder.exact()) {
    return refused(type, absl::StrCat("payload of ", bytes.size(), " bytes does not fit"));
  }
  if (const Fault found = fault(payload); found.has_value()) {
    return refused(type, absl::StrCat("bad ", *found));
  }
  return Frame(std::move(payload));
}

}  // namespace

FrameType frame_type(const Frame& frame) {
  static_assert(std::variant_size_v<Frame> == static_cast<size_t>(FrameType::kHandBack));
  return static_cast<FrameType>(frame.index() + 1);
}

size_t frame_fds(FrameType type) {
  switch (type) {
    case FrameType::kSlabFd:
    case FrameType::kTimelineFd:
    case FrameType::kShadowFd:
    case FrameType::kHandBack:
      return 1;
    case FrameType::kHello:
    case FrameType::kWelcome:
    case FrameType::kRefused:
    case FrameType::kSlabGone:
    case FrameType::kGoodbye:
      return 0;
  }
  return 0;
}

absl::StatusOr<std::string> encode_frame(const Frame& frame) {
  const FrameType type = frame_type(frame);
  const Fault found = std::visit([](const auto& payload) { return fault(payload); }, frame);
  if (found.has_value()) return refused(type, absl::StrCat("bad ", *found));
  Encoder payload;
  std::visit([&payload](const auto& fields) { visit(payload, fields); }, frame);
  const std::string bytes = payload.take();
  Encoder header;
  header(kFrameMagic);
  header(type);
  header(uint16_t{0});
  header(static_cast<uint32_t>(bytes.size()));
  return header.take() + bytes;
}

absl::StatusOr<FrameHeader> decode_frame_header(std::span<const std::byte> bytes) {
  uint32_t magic = 0;
  uint16_t type = 0;
  uint16_t reserved = 0;
  uint32_t payload_bytes = 0;
  Decoder decoder(bytes.first(std::min(bytes.size(), kFrameHeaderBytes)));
  decoder(magic);
  decoder(type);
  decoder(reserved);
  decoder(payload_bytes);
  const bool sound = decoder.exact() && magic == kFrameMagic && reserved == 0 && type >= 1 &&
                     type <= static_cast<uint16_t>(FrameType::kHandBack) &&
                     payload_bytes <= kMaxFramePayloadBytes;
  if (!sound) {
    return make_error(ErrorCode::kInvalidArgument, "frame header",
                      absl::StrCat("magic ", magic, ", type ", type, ", ", payload_bytes, " bytes"),
                      "close the connection and attach again");
  }
  return FrameHeader{.type = static_cast<FrameType>(type), .payload_bytes = payload_bytes};
}

absl::StatusOr<Frame> decode_frame(FrameType type, std::span<const std::byte> payload) {
  switch (type) {
    case FrameType::kHello:
      return decode_as<Hello>(type, payload);
    case FrameType::kWelcome:
      return decode_as<Welcome>(type, payload);
    case FrameType::kRefused:
      return decode_as<Refused>(type, payload);
    case FrameType::kSlabFd:
      return decode_as<SlabFd>(type, payload);
    case FrameType::kSlabGone:
      return decode_as<SlabGone>(type, payload);
    case FrameType::kTimelineFd:
      return decode_as<TimelineFd>(type, payload);
    case FrameType::kShadowFd:
      return decode_as<ShadowFd>(type, payload);
    case FrameType::kGoodbye:
      return decode_as<Goodbye>(type, payload);
    case FrameType::kHandBack:
      return decode_as<HandBack>(type, payload);
  }
  return refused(type, "unknown type");
}

absl::StatusOr<ProtocolVersion> agree_version(uint16_t major, uint16_t minor) {
  const int apart = static_cast<int>(minor) - static_cast<int>(kProtocolMinor);
  if (major == kProtocolMajor && apart >= -1 && apart <= 1) {
    return ProtocolVersion{.major = major, .minor = std::min(minor, kProtocolMinor)};
  }
  return make_error(
      ErrorCode::kVersionMismatch, absl::StrCat("memdecay protocol ", major, ".", minor),
      absl::StrCat("this daemon speaks ", kProtocolMajor, ".", kProtocolMinor,
                   " and one minor version to either side"),
      major != kProtocolMajor || apart < 0 ? "upgrade the older of the two" : "upgrade the daemon");
}

}  // namespace memdecay
