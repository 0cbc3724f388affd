// Commands about pages, content, fences and the connection. See real_engine.h.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/scenario/real_engine.h"

namespace memdecay::scenario {
namespace {

constexpr char kNotOurs[] = "not this engine's";

memdecay_fence fence_of(const std::string& text) {
  const auto parts = WireWords::split(text, ':');
  if (parts.size() != 3) return MEMDECAY_NO_FENCE;
  return {static_cast<uint32_t>(std::stoul(parts[0])), static_cast<uint32_t>(std::stoul(parts[1])),
          std::stoull(parts[2])};
}

// Extras as the C interface wants them; the bytes live as long as the object.
struct ExtraBytes {
  explicit ExtraBytes(const WireWords& words) {
    for (const std::string& item : words.list("extras")) values.push_back(WireWords::bytes(item));
    for (const std::string& value : values) list.push_back({value.data(), value.size()});
  }
  std::vector<std::string> values;
  std::vector<memdecay_bytes> list;
};

}  // namespace

// What a broken kernel of this process could do to memory that it should only read: possible in
// slabs that it may write, impossible where its descriptor is read-only.
EngineHost::Answer EngineHost::stray_write(const char* to, const std::string& bytes) {
  const auto address = reinterpret_cast<uintptr_t>(to);
  const uintptr_t machine_page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = address / machine_page * machine_page;
  void* const start = reinterpret_cast<void*>(begin);
  const size_t length = address + bytes.size() - begin;
  if (::mprotect(start, length, PROT_READ | PROT_WRITE) != 0) {
    return {.code = MEMDECAY_PERMISSION, .message = "this process maps the page read-only"};
  }
  std::memcpy(reinterpret_cast<char*>(address), bytes.data(), bytes.size());
  ::mprotect(start, length, PROT_READ);
  return {};
}

EngineHost::Answer EngineHost::extend(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const auto pages = static_cast<uint32_t>(words.number("pages"));
  const memdecay_code code = memdecay_extend(s, pages, 0);
  if (code != MEMDECAY_OK) return failed(code);
  const std::lock_guard reading(reading_);
  const memdecay_page* table = nullptr;
  uint32_t count = 0;
  const memdecay_code listed = memdecay_page_table(s, &table, &count);
  if (listed != MEMDECAY_OK) return failed(listed);
  return {.words = "first=" + std::to_string(count - pages) + " pages=" + std::to_string(pages)};
}

// page:slab:slot:generation:state:approximate:readable for every page.
EngineHost::Answer EngineHost::table(const WireWords& words) {
  const std::lock_guard reading(reading_);
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const memdecay_page* pages = nullptr;
  uint32_t count = 0;
  const memdecay_code code = memdecay_page_table(s, &pages, &count);
  if (code != MEMDECAY_OK) return failed(code);
  Answer answer{.words = "table="};
  for (uint32_t i = 0; i < count; ++i) {
    const memdecay_page& page = pages[i];
    const bool readable = page.read != nullptr || page.write != nullptr;
    if (i > 0) answer.words.push_back(',');
    for (const uint32_t number :
         {page.page, page.slab, page.slot, page.generation, uint32_t{page.state},
          uint32_t{page.approximate}, uint32_t{readable}}) {
      answer.words += std::to_string(number) + ":";
    }
    answer.words.pop_back();
  }
  return answer;
}

EngineHost::Answer EngineHost::read(const WireWords& words) {
  const std::lock_guard reading(reading_);
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const memdecay_page* pages = nullptr;
  uint32_t count = 0;
  const memdecay_code code = memdecay_page_table(s, &pages, &count);
  if (code != MEMDECAY_OK) return failed(code);
  const uint64_t page = words.number("page");
  const void* from = page >= count                 ? nullptr
                     : pages[page].read != nullptr ? pages[page].read
                                                   : pages[page].write;
  if (from == nullptr) return {.code = MEMDECAY_UNKNOWN_PAGE, .message = "not mapped"};
  const uint64_t bytes = memdecay_info(s).page_bytes;
  return {.words = "bytes=" + WireWords::hex({static_cast<const char*>(from), bytes})};
}

EngineHost::Answer EngineHost::write(const WireWords& words) {
  const std::lock_guard reading(reading_);
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const memdecay_page* pages = nullptr;
  uint32_t count = 0;
  const memdecay_code code = memdecay_page_table(s, &pages, &count);
  if (code != MEMDECAY_OK) return failed(code);
  const uint64_t page = words.number("page");
  if (page >= count) return {.code = MEMDECAY_UNKNOWN_PAGE, .message = "never granted"};
  const std::string bytes = WireWords::bytes(words.text("bytes"));
  if (pages[page].write == nullptr) {
    return pages[page].read == nullptr
               ? Answer{.code = MEMDECAY_UNKNOWN_PAGE, .message = "not mapped"}
               : stray_write(static_cast<const char*>(pages[page].read) + words.number("offset"),
                             bytes);
  }
  std::memcpy(static_cast<char*>(pages[page].write) + words.number("offset"), bytes.data(),
              bytes.size());
  return {};
}

EngineHost::Answer EngineHost::written(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  return result(memdecay_written(s, static_cast<uint32_t>(words.number("position"))));
}

EngineHost::Answer EngineHost::seal(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const std::vector<uint32_t> tokens = words.numbers("tokens");
  const ExtraBytes extras(words);
  memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
  seal.first_page = static_cast<uint32_t>(words.number("first"));
  seal.pages = static_cast<uint32_t>(words.number("pages"));
  seal.tokens = tokens.data();
  seal.token_count = static_cast<uint32_t>(tokens.size());
  seal.fence = fence_of(words.text("fence"));
  seal.had_holes = static_cast<int32_t>(words.whole("holes"));
  seal.extras = extras.list.data();
  seal.extra_count = static_cast<uint32_t>(extras.list.size());
  return result(memdecay_seal(s, &seal));
}

EngineHost::Answer EngineHost::readfence(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const std::vector<uint32_t> pages = words.numbers("pages");
  return result(memdecay_read_fence(s, pages.data(), static_cast<uint32_t>(pages.size()),
                                    fence_of(words.text("fence"))));
}

EngineHost::Answer EngineHost::evict(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const std::vector<uint32_t> pages = words.numbers("pages");
  return result(memdecay_evict(s, pages.data(), static_cast<uint32_t>(pages.size())));
}

EngineHost::Answer EngineHost::restore(const WireWords& words) {
  memdecay_session* s = session(words);
  if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  const std::vector<uint32_t> pages = words.numbers("pages");
  uint64_t request = 0;
  const memdecay_code started =
      memdecay_restore_start(s, pages.data(), static_cast<uint32_t>(pages.size()), &request);
  if (started != MEMDECAY_OK) return failed(started);
  {
    const std::lock_guard lock(mutex_);
    restores_[words.text("ticket")] = {s, request};
  }
  std::vector<memdecay_failed_page> failures(pages.size());
  memdecay_restore_result outcome{};
  outcome.failed = failures.data();
  outcome.failed_capacity = static_cast<uint32_t>(failures.size());
  const memdecay_code code = memdecay_restore_wait(s, request, 60'000, &outcome);
  if (code != MEMDECAY_OK) return failed(code);
  Answer answer{.words = "resident=" + std::to_string(outcome.resident) + " failed="};
  for (uint32_t i = 0; i < outcome.failed_count && i < failures.size(); ++i) {
    if (i > 0) answer.words.push_back(',');
    answer.words += std::to_string(failures[i].page) + ":" + memdecay_code_name(failures[i].code);
  }
  return answer;
}

EngineHost::Answer EngineHost::cancel(const WireWords& words) {
  std::pair<memdecay_session*, uint64_t> restore{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = restores_.find(words.text("of"));
    if (found == restores_.end()) return {.code = MEMDECAY_NOT_FOUND, .message = "no such restore"};
    restore = found->second;
  }
  return result(memdecay_restore_cancel(restore.first, restore.second));
}

EngineHost::Answer EngineHost::lookup(const WireWords& words) {
  const std::vector<uint32_t> tokens = words.numbers("tokens");
  const ExtraBytes extras(words);
  memdecay_lookup_result found{};
  const memdecay_code code =
      memdecay_lookup(client_, &layout_, tokens.data(), static_cast<uint32_t>(tokens.size()),
                      extras.list.data(), static_cast<uint32_t>(extras.list.size()), &found);
  if (code != MEMDECAY_OK) return failed(code);
  return {.words = "pages=" + std::to_string(found.pages) +
                   " device=" + std::to_string(found.device_pages) +
                   " host=" + std::to_string(found.host_pages) +
                   " missing=" + std::to_string(found.first_missing) +
                   " pending=" + std::to_string(found.pending)};
}

EngineHost::Answer EngineHost::acquire(const WireWords& words) {
  memdecay_session* s = nullptr;
  if (words.number("session") != 0) {
    s = session(words);
    if (s == nullptr) return {.code = MEMDECAY_UNKNOWN_SESSION, .message = kNotOurs};
  }
  const std::vector<uint32_t> tokens = words.numbers("tokens");
  const ExtraBytes extras(words);
  memdecay_lease lease{};
  const memdecay_code code =
      memdecay_acquire(client_, &layout_, s, tokens.data(), static_cast<uint32_t>(tokens.size()),
                       extras.list.data(), static_cast<uint32_t>(extras.list.size()), &lease);
  if (code != MEMDECAY_OK) return failed(code);
  return {.words = "lease=" + std::to_string(lease.id) + " pages=" + std::to_string(lease.pages)};
}

EngineHost::Answer EngineHost::release(const WireWords& words) {
  return result(memdecay_release(client_, words.number("lease")));
}

EngineHost::Answer EngineHost::fence(const WireWords&) {
  memdecay_fence made = MEMDECAY_NO_FENCE;
  uint32_t word = 0;
  {
    const std::lock_guard lock(mutex_);
    word = next_word_++ % 256;
  }
  const memdecay_code code = memdecay_fence_next(client_, word, &made);
  if (code != MEMDECAY_OK) return failed(code);
  return {.words = "fence=" + std::to_string(made.member) + ":" + std::to_string(made.word) + ":" +
                   std::to_string(made.value)};
}

EngineHost::Answer EngineHost::signal(const WireWords& words) {
  return result(memdecay_fence_signal(client_, fence_of(words.text("fence"))));
}

EngineHost::Answer EngineHost::ack(const WireWords& words) {
  const bool manual = words.number("manual") != 0;
  const memdecay_code set = memdecay_set_manual_ack(client_, manual ? 1 : 0);
  if (set != MEMDECAY_OK || manual) return result(set);
  const memdecay_fence none = MEMDECAY_NO_FENCE;
  return result(memdecay_acknowledge(client_, none));  // what has waited so far
}

EngineHost::Answer EngineHost::detach(const WireWords&) { return result(memdecay_detach(client_)); }

EngineHost::Answer EngineHost::reattach(const WireWords&) {
  return result(memdecay_reattach(client_, 10'000));
}

// A message without effect, on the stream: what the daemon said before has been done when its
// answer is here. Without a session there is nothing that the daemon could say.
EngineHost::Answer EngineHost::pass(const WireWords&) {
  const std::lock_guard closing(closing_);
  if (client_ == nullptr) return {.words = "engine=0 messages=0"};
  std::map<uint64_t, memdecay_session*> sessions;
  {
    const std::lock_guard lock(mutex_);
    sessions = sessions_;
  }
  const std::string engine = "engine=" + std::to_string(memdecay_get_identity(client_).engine);
  for (const auto& [id, session] : sessions) {
    if (not_ours_.contains(id)) continue;
    const memdecay_code code = memdecay_read_fence(session, nullptr, 0, MEMDECAY_NO_FENCE);
    if (code == MEMDECAY_OK) return {.words = engine + " messages=1" + unmapped(sessions)};
    if (code == MEMDECAY_UNAVAILABLE) return failed(code);
    not_ours_.insert(id);
    return failed(code);
  }
  return {.words = engine + " messages=0" + unmapped(sessions)};
}

// Whether a page is ours whose slab is still on its way: slabs come on another socket.
std::string EngineHost::unmapped(const std::map<uint64_t, memdecay_session*>& sessions) {
  const std::lock_guard reading(reading_);
  uint32_t unmapped = 0;
  for (const auto& [id, session] : sessions) {
    const memdecay_page* pages = nullptr;
    uint32_t count = 0;
    if (memdecay_page_table(session, &pages, &count) != MEMDECAY_OK) continue;
    for (uint32_t i = 0; i < count; ++i) {
      const bool ours = pages[i].state <= MEMDECAY_PAGE_ASKED;
      unmapped += ours && pages[i].read == nullptr && pages[i].write == nullptr ? 1 : 0;
    }
  }
  return " unmapped=" + std::to_string(unmapped);
}

EngineHost::Answer EngineHost::leave(const WireWords&) {
  const std::lock_guard closing(closing_);
  memdecay_disconnect(client_);
  client_ = nullptr;
  const std::lock_guard lock(mutex_);
  sessions_.clear();
  return {};
}

// kind:session:page:code for all events since the last call.
EngineHost::Answer EngineHost::events(const WireWords&) {
  Answer answer{.words = "events="};
  memdecay_event event{};
  while (client_ != nullptr && memdecay_next_event(client_, 1, &event) == MEMDECAY_OK) {
    if (answer.words.back() != '=') answer.words.push_back(',');
    answer.words += std::string(memdecay_event_name(event.kind)) + ":" +
                    std::to_string(event.session) + ":" + std::to_string(event.page) + ":" +
                    memdecay_code_name(event.code);
  }
  return answer;
}

}  // namespace memdecay::scenario
