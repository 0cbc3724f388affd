// See statements.h.
#include "tests/scenario/statements.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

constexpr std::string_view kNoSocket = "simulation has no sockets";
constexpr std::string_view kNoLater = "not built yet";

constexpr StatementKind kKinds[] = {
    {"daemon",
     "daemon device=8 host=16 policy=lru page=64KiB … (any config key) | daemon kill|restart|stop",
     "*"},
    {"config", "config device=50 … : reload", "*"},
    {"tenant", "tenant T1 [limit=10] [reservation=4] [priority=2] [uid=…] [gid=…]",
     "limit reservation priority uid gid"},
    {"engine",
     "engine E1 [layout=A] [dtype=bf16] [rev=2] [page=64KiB] [page_tokens=16] [tenant=T1] "
     "[version=1.1] [placement=engine] [blocks=8] [uid=65534] [adapter=…] [quantisation=…]",
     "layout dtype rev page page_tokens tenant version placement blocks uid gid adapter "
     "quantisation packing tokenizer rope tp scales window producer weights"},
    {"member",
     "member E1 worker : a further process of the engine; kill E1 worker",
     "",
     {},
     kNoLater},
    {"detach", "detach E1 : its sockets close, the process lives"},
    {"reattach", "reattach E1"},
    {"kill", "kill E1 [MEMBER] : SIGKILL"},
    {"freeze", "freeze E1 : SIGSTOP"},
    {"thaw", "thaw E1"},
    {"leave", "leave E1 : an orderly goodbye"},
    {"ack", "ack E1 : answers what waits, and from now on by itself"},
    {"noack", "noack E1 : answers nothing until `ack`"},
    {"session",
     "session S on E1 [budget=8] [mode=lossy] [priority=2] [policy=lru] "
     "[policy.KEY=VALUE …] [region=user] [resume=S0 [steal] | fork=S0]",
     "budget mode priority policy region resume fork steal epoch dtype layout rev page"},
    {"close", "close S keep|forget", "fence epoch"},
    {"truncate", "truncate S 4 : keeps 4 pages", "epoch"},
    {"park", "park S waiting_tool|waiting_user|preempted", "epoch"},
    {"unpark", "unpark S", "epoch"},
    {"setbudget", "setbudget S 4", "epoch"},
    {"setmode", "setmode S exact|lossy", "epoch"},
    {"repair", "repair S -> page=3 | none", "epoch"},
    {"fill", "fill S 4 [key=doc1] [region=user] [extra=image1] [claim=exact|holes]",
     "key region extra claim fence checksum epoch"},
    {"alloc", "alloc S 4 [key=doc1] [region=user]", "key region epoch"},
    {"write", "write S:0 [half=first|second] [key=other] : another key writes wrong bytes",
     "half key"},
    {"seal", "seal S:0 [fence=f] [claim=exact|holes] [checksum=none]",
     "fence claim checksum extra epoch key"},
    {"signal", "signal f"},
    {"readfence", "readfence S:0 r : an open fence of a reader", "epoch"},
    {"tag", "tag S:0..1 system [atomic] | tag S@24..87 tool_out", "epoch"},
    {"untag", "untag S@24..87", "epoch"},
    {"endgroup", "endgroup S [cut] | endgroup S@0..63 [cut]", "epoch"},
    {"pin", "pin S:2 [ttl=30s]", "ttl epoch"},
    {"unpin", "unpin S:2", "epoch"},
    {"hint", "hint S@0..63 0.8", "epoch"},
    {"supersede", "supersede S@0..63", "epoch"},
    {"attend", "attend S step=12 [sink=0.3] [tail=0.1] S:0=0.2 [rest=0.3] [queries=1]", "*"},
    {"steps", "steps S 100 : that many generated tokens without news", "epoch"},
    {"pressure", "pressure 2 [as P] [within=10ms] [tenant=T1] [-> 2]", "within tenant"},
    {"evict", "evict S:3", "epoch"},
    {"restore", "restore S:3..5 [as R] [-> 3]", "within epoch"},
    {"cancel", "cancel R"},
    {"lookup", "lookup E2 key=doc1 pages=4 [extra=…] -> 3 [missing=3] [pending]",
     "key pages extra from"},
    {"acquire", "acquire E2 key=doc1 pages=4 as L | acquire S key=doc1 pages=4 as L [-> 4]",
     "key pages extra epoch from"},
    {"release", "release L"},
    {"drop", "drop host|device|all [S:12..15] [-> host=4 device=2]", "tenant"},
    {"fragment", "fragment put F S:4..7 | fragment get F on S2 at=16", "*", kNoLater, kNoLater},
    {"tick", "tick 5s"},
    {"settle", "settle : until nothing is in flight"},
    {"hold", "hold evict|restore|store S:3 : the next copy of that page waits"},
    {"finish", "finish S:3"},
    {"fail", "fail S:3"},
    {"reorder", "reorder S:3 S:4 : their held copies end in the other order"},
    {"fault", "fault completion=lost p=0.1", "completion p"},
    {"hash", "hash bits=8 : keys are compared by so many bits", "bits"},
    {"disk", "disk flip|zero|unlink S:3 : of the lower replica"},
    {"remote", "remote down|slow=1s|reset|forget doc1|flap|ok", "*", kNoLater, kNoLater},
    {"memory", "memory limit=1MiB|fds=64|pinfail", "*", "simulation has no memory of its own",
     kNoLater},
    {"raw", "raw control|handles|ring hex=… | random=1000 seed=7", "*", kNoSocket, ""},
    {"repeat", "repeat 200 as i { … $i … $(2*i+1) … }"},
    {"parallel", "parallel { … } : its statements run at once; a block is one branch"},
    {"seed", "seed 1..100 { daemon … }"},
    {"expect",
     "expect S:0..3 granted|filling|sealing|mapped|asked|given_up|hole|restoring|dropped\n"
     "expect S:0 device|host|disk|remote|clean|quarantined|none\n"
     "expect P pending | done 1 | failed [code]\n"
     "expect bytes S:0..3 · expect same slot S:0 S2:0 · expect other slot S:0 S2:0\n"
     "expect exact S:5 · expect approximate S:6 · expect blank S:0 · expect count S mapped <= 10\n"
     "expect session S decoding|…|ready|waiting [position=64]\n"
     "expect victims S: 5 3 4 · expect score S:1 < S:2\n"
     "expect stat NAME{k=v} = 1 : also < <= >= >, ~ within 10 %\n"
     "expect reason S:3 leased\n"
     "expect event E1 evict|restore|lost|failed|… [S:3] [times=1]\n"
     "expect engine E1 dead|disconnected|silent|alive\n"
     "expect check · expect idle · expect rss < +16MiB",
     "times position step"},
};

constexpr std::string_view kExpectations[] = {
    "blank", "count", "bytes",  "same",  "other",  "exact", "approximate", "session", "victims",
    "score", "stat",  "reason", "event", "engine", "check", "idle",        "rss"};

bool known_option(const StatementKind& kind, std::string_view name) {
  if (kind.options == "*") return true;
  for (const auto known : absl::StrSplit(as_absl(kind.options), ' ', absl::SkipEmpty())) {
    if (std::string_view(known.data(), known.size()) == name) return true;
  }
  return false;
}

absl::Status bad(const Statement& statement, std::string what, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("'", statement.text, "'"),
                    std::move(what), std::move(todo));
}

absl::Status check_expectation(const Statement& statement) {
  if (statement.words.size() < 2) return bad(statement, "expects nothing", "see --list-statements");
  const std::string& what = statement.words[1];
  if (std::find(std::begin(kExpectations), std::end(kExpectations), what) !=
      std::end(kExpectations)) {
    return absl::OkStatus();
  }
  // Pages in a state, or the name of something pending with its outcome.
  if (statement.words.size() >= 3 &&
      (looks_like_pages(what) || statement.words[2] == "pending" || statement.words[2] == "done" ||
       statement.words[2] == "failed")) {
    return absl::OkStatus();
  }
  return bad(statement, absl::StrCat("unknown expectation '", what, "'"), "see --list-statements");
}

std::optional<std::string> lacks_tier(const Statement& statement) {
  for (const std::string& word : statement.words) {
    for (const std::string_view tier : {"disk", "remote"}) {
      const std::string prefix = absl::StrCat(as_absl(tier), "=");
      if (word.rfind(prefix, 0) == 0 && word != absl::StrCat(prefix, "0")) {
        return absl::StrCat("no ", as_absl(tier), " tier yet");
      }
      if (word.rfind(absl::StrCat(as_absl(tier), "."), 0) == 0) {
        return absl::StrCat("no ", as_absl(tier), " tier yet");
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> lacks_sim_feature(const Statement& statement) {
  const std::string& verb = statement.words[0];
  if (verb == "daemon" && statement.words.size() > 1 && statement.words[1] == "restart") {
    return "simulation keeps nothing over a restart";
  }
  if (verb == "daemon" && statement.words.size() > 1 &&
      (statement.words[1] == "kill" || statement.words[1] == "stop")) {
    return "a daemon that dies needs processes";
  }
  if (verb != "engine" && verb != "tenant") return std::nullopt;
  for (const std::string& word : statement.words) {
    if (word.rfind("uid=", 0) == 0 || word.rfind("gid=", 0) == 0) {
      return "credentials need processes";
    }
  }
  return std::nullopt;
}

std::optional<std::string> lacks_real_feature(const Statement& statement) {
  const std::string& verb = statement.words[0];
  if (verb == "tenant" && ::geteuid() != 0) return "tenants are users, which only root can be";
  for (const std::string& word : statement.words) {
    if (word == "placement=engine") return "the C interface has no engine placement";
    if (word.rfind("epoch=", 0) == 0) return "the C interface says its own epoch";
    if (word == "checksum=none") return "the C interface sums what it seals";
    if (verb == "close" && word.rfind("fence=", 0) == 0) return "the C interface closes unfenced";
  }
  return std::nullopt;
}

}  // namespace

absl::Span<const StatementKind> statement_kinds() { return kKinds; }

const StatementKind* find_statement(std::string_view name) {
  for (const StatementKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

absl::Status check_statement(const Statement& statement) {
  const StatementKind* kind = find_statement(statement.words[0]);
  if (kind == nullptr) {
    return bad(statement, absl::StrCat("unknown statement '", statement.words[0], "'"),
               "see --list-statements");
  }
  if (kind->name == "expect") {
    if (absl::Status checked = check_expectation(statement); !checked.ok()) return checked;
    if (statement.words[1] == "stat" || statement.words[1] == "score" ||
        statement.words[1] == "rss" || statement.words[1] == "count") {
      return absl::OkStatus();
    }
  }
  for (size_t i = 1; i < statement.words.size(); ++i) {
    const std::string& word = statement.words[i];
    if (word == "->") break;  // what is answered has names of its own
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    if (kind->name == "session" && word.rfind("policy.", 0) == 0) continue;  // the daemon judges
    if (!known_option(*kind, word.substr(0, equals))) {
      return bad(statement, absl::StrCat("unknown option '", word.substr(0, equals), "'"),
                 absl::StrCat("known: ", as_absl(kind->options)));
    }
  }
  return absl::OkStatus();
}

std::optional<std::string> lacking(const Statement& statement, WorldKind world) {
  for (const Statement& inner : statement.body) {
    if (auto reason = lacking(inner, world)) return reason;
  }
  if (statement.block != Block::kNone) return std::nullopt;
  const StatementKind* kind = find_statement(statement.words[0]);
  if (kind == nullptr) return std::nullopt;
  const std::string_view lacks = world == WorldKind::kSim ? kind->sim_lacks : kind->real_lacks;
  const auto say = [&](std::string_view reason) {
    return absl::StrCat("line ", statement.line, ", ", statement.words[0], ": ", as_absl(reason));
  };
  if (!lacks.empty()) return say(lacks);
  if (kind->name == "daemon" || kind->name == "config") {
    if (const auto tier = lacks_tier(statement)) return say(*tier);
  }
  if (kind->name == "disk" && (statement.words.size() < 2 ||
                               (statement.words[1] != "flip" && statement.words[1] != "zero" &&
                                statement.words[1] != "unlink"))) {
    return say("no disk tier yet");
  }
  if (kind->name == "expect" && statement.words.size() > 2 &&
      (statement.words[2] == "disk" || statement.words[2] == "remote")) {
    return say("no such tier yet");
  }
  if (world == WorldKind::kSim) {
    if (const auto feature = lacks_sim_feature(statement)) return say(*feature);
  } else if (const auto feature = lacks_real_feature(statement)) {
    return say(*feature);
  }
  return std::nullopt;
}

std::string list_statements() {
  std::string out;
  for (const StatementKind& kind : kKinds) {
    absl::StrAppend(&out, as_absl(kind.usage), "\n");
    if (!kind.sim_lacks.empty()) {
      absl::StrAppend(&out, "    not in sim: ", as_absl(kind.sim_lacks), "\n");
    }
    if (!kind.real_lacks.empty()) {
      absl::StrAppend(&out, "    not in real: ", as_absl(kind.real_lacks), "\n");
    }
  }
  absl::StrAppend(
      &out,
      "\nAny statement: `!code` must fail with that code, `!?` may fail; `-> …` what it "
      "answers;\n`as NAME` does not wait and names what is pending; `# …` a comment.\n");
  return out;
}

}  // namespace memdecay::scenario
