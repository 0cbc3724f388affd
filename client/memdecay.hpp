// memdecay.hpp: ownership for memdecay.h, header-only, nothing else. A factory gives an empty
// object when the daemon refuses; memdecay_last_error() then says why and what to do next. Calls
// return the C codes; everything else of memdecay.h is used through get().
// Thread: as memdecay.h. Invariant: sessions go before their client.
// Not here: anything that the C interface does not have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/memdecay.h"

namespace memdecay::engine {

enum class AtEnd : uint8_t { kKeep, kForget };

class Session {
 public:
  Session() = default;
  explicit Session(memdecay_session* session) : session_(session) {}
  Session(Session&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), at_end_(other.at_end_) {}
  Session& operator=(Session&& other) noexcept {
    if (this == &other) return *this;
    close();
    session_ = std::exchange(other.session_, nullptr);
    at_end_ = other.at_end_;
    return *this;
  }
  ~Session() { close(); }

  explicit operator bool() const { return session_ != nullptr; }
  memdecay_session* get() const { return session_; }
  // What happens to the session's content when this object goes: kept and resumable, unless said.
  void at_end(AtEnd what) { at_end_ = what; }
  memdecay_code close() {
    if (session_ == nullptr) return MEMDECAY_OK;
    return memdecay_close(std::exchange(session_, nullptr), at_end_ == AtEnd::kForget ? 1 : 0);
  }

  memdecay_session_info info() const { return memdecay_info(session_); }
  // Valid until the next call on the session.
  std::span<const memdecay_page> pages() const {
    const memdecay_page* pages = nullptr;
    uint32_t count = 0;
    if (memdecay_page_table(session_, &pages, &count) != MEMDECAY_OK) return {};
    return {pages, count};
  }
  memdecay_code extend(uint32_t pages) const { return memdecay_extend(session_, pages, 0); }
  memdecay_code seal(uint32_t first_page, std::span<const uint32_t> tokens) const {
    memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
    const uint32_t page_tokens = info().page_tokens;
    seal.first_page = first_page;
    seal.pages = page_tokens == 0 ? 0 : static_cast<uint32_t>(tokens.size()) / page_tokens;
    seal.tokens = tokens.data();
    seal.token_count = static_cast<uint32_t>(tokens.size());
    return memdecay_seal(session_, &seal);
  }
  memdecay_code tag(std::span<const memdecay_tagged_span> spans) const {
    return memdecay_tag(session_, spans.data(), static_cast<uint32_t>(spans.size()));
  }
  memdecay_code park(memdecay_pause why) const { return memdecay_park(session_, why); }
  memdecay_code unpark(int32_t timeout_ms) const { return memdecay_unpark(session_, timeout_ms); }
  Session fork(const std::string& name) const {
    memdecay_session* child = nullptr;
    memdecay_fork(session_, name.c_str(), &child);
    return Session(child);
  }

 private:
  memdecay_session* session_ = nullptr;
  AtEnd at_end_ = AtEnd::kKeep;
};

// The bracket of one step; a step that is not ended explicitly ends without an observation.
class Step {
 public:
  explicit Step(const Session& session) : session_(session.get()) {
    memdecay_begin_step(session_);
    done_.step = memdecay_info(session_).step;
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    if (session_ != nullptr) end(done_);
  }

  bool wants_masses() const { return memdecay_wants_masses(session_) != 0; }
  memdecay_code end(const memdecay_step& step) {
    return memdecay_end_step(std::exchange(session_, nullptr), &step);
  }

 private:
  memdecay_session* session_;
  memdecay_step done_ = MEMDECAY_STEP_INIT;
};

class Client {
 public:
  static Client connect(const memdecay_options& options) {
    Client client;
    memdecay_connect(&options, &client.client_);
    return client;
  }
  Client() = default;
  Client(Client&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    if (this == &other) return *this;
    memdecay_disconnect(client_);
    client_ = std::exchange(other.client_, nullptr);
    return *this;
  }
  ~Client() { memdecay_disconnect(client_); }

  explicit operator bool() const { return client_ != nullptr; }
  memdecay_client* get() const { return client_; }

  Session open(const memdecay_layout& layout, const memdecay_open_options& options) const {
    memdecay_session* session = nullptr;
    memdecay_open(client_, &layout, &options, &session);
    return Session(session);
  }
  Session resume(const memdecay_layout& layout, uint64_t id) const {
    memdecay_session* session = nullptr;
    memdecay_resume(client_, &layout, id, nullptr, 0, &session);
    return Session(session);
  }
  Session resume(const memdecay_layout& layout, const std::string& name) const {
    memdecay_session* session = nullptr;
    memdecay_resume(client_, &layout, 0, name.c_str(), 0, &session);
    return Session(session);
  }

 private:
  memdecay_client* client_ = nullptr;
};

}  // namespace memdecay::engine
