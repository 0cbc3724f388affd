// memdecay-scenario-engine: see real_engine.h. The settings of the engine are words on the command
// line: dir=… name=… page_bytes=… page_tokens=… and the fields of its layout.
#include "tests/scenario/real_engine.h"

#include <cstdio>
#include <iostream>
#include <utility>

namespace memdecay::scenario {
namespace {

struct Verb {
  const char* name;
  enum class May : uint8_t { kReturnAtOnce, kWait } may;
};

}  // namespace

EngineHost::Answer EngineHost::failed(memdecay_code code) {
  Answer answer{.code = code};
  const memdecay_error* error = memdecay_last_error();
  answer.message = error->code == code ? error->message : memdecay_code_name(code);
  for (char& c : answer.message) {
    if (c == '\n') c = ' ';
  }
  return answer;
}

memdecay_session* EngineHost::session(const WireWords& words) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(words.number("session"));
  return found == sessions_.end() ? nullptr : found->second;
}

EngineHost::Command EngineHost::find(const std::string& verb) {
  static const std::map<std::string, Command> kCommands = {
      {"open", &EngineHost::open},
      {"resume", &EngineHost::resume},
      {"fork", &EngineHost::fork},
      {"close", &EngineHost::close},
      {"truncate", &EngineHost::truncate},
      {"park", &EngineHost::park},
      {"unpark", &EngineHost::unpark},
      {"repair", &EngineHost::repair},
      {"budget", &EngineHost::budget},
      {"mode", &EngineHost::mode},
      {"tag", &EngineHost::tag},
      {"untag", &EngineHost::untag},
      {"endgroup", &EngineHost::endgroup},
      {"hint", &EngineHost::hint},
      {"supersede", &EngineHost::supersede},
      {"pin", &EngineHost::pin},
      {"unpin", &EngineHost::unpin},
      {"observe", &EngineHost::observe},
      {"extend", &EngineHost::extend},
      {"table", &EngineHost::table},
      {"read", &EngineHost::read},
      {"write", &EngineHost::write},
      {"written", &EngineHost::written},
      {"seal", &EngineHost::seal},
      {"readfence", &EngineHost::readfence},
      {"evict", &EngineHost::evict},
      {"restore", &EngineHost::restore},
      {"cancel", &EngineHost::cancel},
      {"lookup", &EngineHost::lookup},
      {"acquire", &EngineHost::acquire},
      {"release", &EngineHost::release},
      {"fence", &EngineHost::fence},
      {"signal", &EngineHost::signal},
      {"ack", &EngineHost::ack},
      {"detach", &EngineHost::detach},
      {"reattach", &EngineHost::reattach},
      {"leave", &EngineHost::leave},
      {"events", &EngineHost::events},
      {"pass", &EngineHost::pass},
  };
  const auto found = kCommands.find(verb);
  return found == kCommands.end() ? nullptr : found->second;
}

void EngineHost::respond(const std::string& id, const Answer& answer) {
  const std::lock_guard lock(mutex_);
  std::cout << id << ' ' << memdecay_code_name(answer.code);
  if (!answer.words.empty()) std::cout << ' ' << answer.words;
  if (!answer.message.empty()) std::cout << " | " << answer.message;
  std::cout << std::endl;
}

void EngineHost::obey(const std::string& line) {
  const WireWords words(line);
  if (words.plain().size() < 2) return;
  const std::string id = words.plain()[0];
  const Command command = find(words.plain()[1]);
  if (command == nullptr) {
    respond(id, {.code = MEMDECAY_UNSUPPORTED, .message = words.plain()[1]});
    return;
  }
  working_.remove_if([](Working& earlier) {
    if (!earlier.done) return false;
    earlier.thread.join();
    return true;
  });
  Working& now = working_.emplace_back();
  now.thread = std::thread([this, &now, id, command, words] {
    respond(id, (this->*command)(words));
    now.done = true;
  });
}

int EngineHost::serve(const WireWords& settings) {
  for (const char* field :
       {"model", "weights", "revision", "adapter", "tokenizer", "dtype", "quantization", "scales",
        "packing", "inv_freq", "rope", "pairing", "producer"}) {
    texts_[field] = settings.text(field);
  }
  const auto text = [this](const char* field) { return texts_.at(field).c_str(); };
  group_ = {static_cast<uint32_t>(settings.number("layers")),
            static_cast<uint32_t>(settings.number("kv_heads")),
            static_cast<uint32_t>(settings.number("head_dim")),
            static_cast<uint32_t>(settings.number("page_tokens")),
            text("packing"),
            static_cast<uint32_t>(settings.number("window")),
            settings.number("page_bytes")};
  layout_ = {sizeof layout_,
             text("model"),
             text("weights"),
             text("revision"),
             text("adapter"),
             text("tokenizer"),
             text("dtype"),
             text("quantization"),
             text("scales"),
             &group_,
             1,
             static_cast<uint32_t>(settings.number("tp")),
             text("inv_freq"),
             text("rope"),
             settings.real("attention_factor"),
             text("pairing"),
             static_cast<uint32_t>(settings.number("n_rot")),
             text("producer")};
  const std::string folder = settings.text("dir");
  const std::string name = settings.text("name");
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = folder.c_str();
  options.engine_name = name.c_str();
  options.grants_ahead = MEMDECAY_NO_GRANTS;
  options.observe_every = 1;
  options.lockstep = 1;  // a refused observation is an answer
  options.timeout_ms = 60'000;
  options.protocol_major = static_cast<uint16_t>(settings.number("major"));
  options.protocol_minor = static_cast<uint16_t>(settings.number("minor"));
  options.page_tokens = static_cast<uint32_t>(settings.number("daemon_page_tokens"));
  Answer hello = result(memdecay_connect(&options, &client_));
  if (hello.code == MEMDECAY_OK) {
    // The layout is checked where it is first said: a look-up of nothing has no other effect.
    memdecay_lookup_result nothing{};
    const uint32_t token = 0;
    hello = result(memdecay_lookup(client_, &layout_, &token, 0, nullptr, 0, &nothing));
    hello.words = "engine=" + std::to_string(memdecay_get_identity(client_).engine);
  }
  respond("0", hello);
  std::string line;
  while (hello.code == MEMDECAY_OK && std::getline(std::cin, line)) obey(line);
  for (Working& last : working_) last.thread.join();
  if (client_ != nullptr) memdecay_disconnect(client_);
  return hello.code == MEMDECAY_OK ? 0 : 1;
}

}  // namespace memdecay::scenario

int main(int argc, char** argv) {
  std::string line;
  for (int i = 1; i < argc; ++i) line += (i > 1 ? " " : "") + std::string(argv[i]);
  return memdecay::scenario::EngineHost().serve(memdecay::scenario::WireWords(line));
}
