// memdecayctl's commands; see commands.h.
// Thread: one.
#include "client/ctl/commands.h"

#include <poll.h>

#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/admin.h"
#include "client/ctl/arguments.h"
#include "client/ctl/doctor.h"
#include "client/ctl/json.h"
#include "client/ctl/model_size.h"
#include "client/ctl/render.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ctl {
namespace {

int fail(const Options& options, const absl::Status& status) {
  if (options.format == Format::kJson) {
    std::cout << to_json(status).dump() << "\n";
  } else {
    std::cerr << "memdecayctl: " << std::string(status.message()) << "\n";
  }
  return 1;
}

// Prints a message as JSON, or as what `text` makes of it.
template <typename Message, typename Text>
int show(const Options& options, const absl::StatusOr<Message>& answer, Text text) {
  if (!answer.ok()) return fail(options, answer.status());
  if (options.format == Format::kJson) {
    std::cout << to_json(*answer).dump() << "\n";
  } else {
    std::cout << text(*answer);
  }
  return 0;
}

// Connects, asks, shows.
template <typename Ask, typename Text>
int ask(const Options& options, Ask question, Text text) {
  auto admin = Admin::connect(options.directory, options.timeout);
  if (!admin.ok()) return fail(options, admin.status());
  return show(options, question(**admin), text);
}

template <typename Message>
std::string rendered(const Message& message) {
  return render(message);
}
template <typename Message>
std::string done(const Message&) {
  return "done\n";
}

void set_pages(google::protobuf::RepeatedField<uint32_t>* out, const std::vector<uint32_t>& pages) {
  out->Add(pages.begin(), pages.end());
}

absl::StatusOr<v1::Tier> tier_of(const std::string& name) {
  for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk, Tier::kRemote}) {
    if (tier_name(tier) == name) return static_cast<v1::Tier>(tier);
  }
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("tier \"", name, "\""),
                    "there is no such tier", "use device, host, disk, remote or all");
}

}  // namespace

int run_status(const Options& options) {
  return ask(
      options, [](Admin& admin) { return admin.status(); }, rendered<v1::GetStatusResponse>);
}

int run_sessions(const Options& options) {
  return ask(
      options, [](Admin& admin) { return admin.sessions(); }, rendered<v1::ListSessionsResponse>);
}

int run_pages(const Options& options, const std::string& session) {
  v1::ListPagesRequest request;
  *request.mutable_session() = session_name(session);
  return ask(
      options, [&](Admin& admin) { return admin.pages(request); },
      [&](const v1::ListPagesResponse& pages) {
        return render(pages.session()) + page_map(pages, options.colour, options.columns);
      });
}

int run_explain(const Options& options, const std::string& target) {
  const absl::StatusOr<v1::ExplainRequest> request = explain_target(target);
  if (!request.ok()) return fail(options, request.status());
  return ask(
      options, [&](Admin& admin) { return admin.explain(*request); },
      rendered<v1::ExplainResponse>);
}

int run_check(const Options& options) {
  auto admin = Admin::connect(options.directory, options.timeout);
  if (!admin.ok()) return fail(options, admin.status());
  const auto answer = (*admin)->check();
  const int code = show(options, answer, rendered<v1::CheckResponse>);
  return code != 0 || answer->differences_size() > 0 ? 1 : 0;
}

int run_decisions(const Options& options, uint32_t last, const std::string& session) {
  v1::ListDecisionsRequest request;
  request.set_last(last);
  if (!session.empty()) *request.mutable_session() = session_name(session);
  return ask(
      options, [&](Admin& admin) { return admin.decisions(request); },
      rendered<v1::ListDecisionsResponse>);
}

int run_doctor(const Options& options) {
  auto admin = Admin::connect(options.directory, options.timeout);
  if (!admin.ok()) return fail(options, admin.status());
  const auto figures = (*admin)->figures();
  if (!figures.ok()) return fail(options, figures.status());
  const std::vector<Finding> findings = diagnose(*figures);
  if (options.format == Format::kText) {
    std::cout << render(findings, *figures);
    return findings.empty() ? 0 : 1;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"symptom", finding.symptom},
                    {"seen", finding.seen},
                    {"advice", finding.advice},
                    {"key", finding.key}});
  }
  std::cout << nlohmann::ordered_json{{"healthy", findings.empty()},
                                      {"findings", std::move(list)},
                                      {"figures", to_json(*figures)}}
                   .dump()
            << "\n";
  return findings.empty() ? 0 : 1;
}

int run_pin(const Options& options, const std::string& session, const std::string& pages,
            const std::string& ttl) {
  const absl::StatusOr<PageRun> run = page_run(pages);
  if (!run.ok()) return fail(options, run.status());
  v1::AdminPinRequest request;
  *request.mutable_session() = session_name(session);
  request.mutable_pin()->set_first_page(run->first);
  request.mutable_pin()->set_pages(run->count);
  if (!ttl.empty()) {
    const absl::StatusOr<Duration> time = duration(ttl);
    if (!time.ok()) return fail(options, time.status());
    request.mutable_pin()->set_ttl_ms(time->milliseconds());
  }
  return ask(
      options, [&](Admin& admin) { return admin.pin(request); }, done<v1::AdminPinResponse>);
}

int run_unpin(const Options& options, const std::string& session, const std::string& pages) {
  const absl::StatusOr<PageRun> run = page_run(pages);
  if (!run.ok()) return fail(options, run.status());
  v1::AdminUnpinRequest request;
  *request.mutable_session() = session_name(session);
  request.mutable_unpin()->set_first_page(run->first);
  request.mutable_unpin()->set_pages(run->count);
  return ask(
      options, [&](Admin& admin) { return admin.unpin(request); }, done<v1::AdminUnpinResponse>);
}

int run_evict(const Options& options, const std::string& session, const std::string& pages) {
  const auto list = page_list(pages);
  if (!list.ok()) return fail(options, list.status());
  v1::AdminEvictRequest request;
  *request.mutable_session() = session_name(session);
  set_pages(request.mutable_pages(), *list);
  return ask(
      options, [&](Admin& admin) { return admin.evict(request); }, done<v1::AdminEvictResponse>);
}

int run_restore(const Options& options, const std::string& session, const std::string& pages) {
  const auto list = page_list(pages);
  if (!list.ok()) return fail(options, list.status());
  v1::AdminRestoreRequest request;
  *request.mutable_session() = session_name(session);
  set_pages(request.mutable_pages(), *list);
  return ask(
      options, [&](Admin& admin) { return admin.restore(request); },
      [](const v1::AdminRestoreResponse& answer) { return render(answer.result()); });
}

int run_drop(const Options& options, const std::string& session, const std::string& pages,
             const std::string& tier) {
  v1::DropRequest request;
  if (!session.empty()) *request.mutable_session() = session_name(session);
  if (!pages.empty()) {
    const auto list = page_list(pages);
    if (!list.ok()) return fail(options, list.status());
    set_pages(request.mutable_pages(), *list);
  }
  request.set_all_tiers(tier == "all");
  if (tier != "all") {
    const absl::StatusOr<v1::Tier> known = tier_of(tier);
    if (!known.ok()) return fail(options, known.status());
    request.set_tier(*known);
  }
  return ask(
      options, [&](Admin& admin) { return admin.drop(request); }, rendered<v1::DropResponse>);
}

int run_config(const Options& options) {
  return ask(
      options, [](Admin& admin) { return admin.config(); },
      [](const v1::GetConfigResponse& answer) { return answer.yaml(); });
}

int run_size(const Options& options, const std::string& model, uint32_t page_tokens,
             const std::string& dtype) {
  const absl::StatusOr<ModelSize> size = size_of_file(model, page_tokens, dtype);
  if (!size.ok()) return fail(options, size.status());
  if (options.format == Format::kText) {
    std::cout << render(*size);
    return 0;
  }
  const nlohmann::ordered_json out = {{"name", size->name},
                                      {"architecture", size->architecture},
                                      {"layers", size->layers},
                                      {"kv_heads", size->kv_heads},
                                      {"head_dim", size->head_dim},
                                      {"dtype", size->dtype},
                                      {"page_tokens", size->page_tokens},
                                      {"token_bytes", size->token_bytes},
                                      {"page_bytes", size->page_bytes}};
  std::cout << out.dump() << "\n";
  return 0;
}

int run_top(const Options& options, Duration every) {
  auto admin = Admin::connect(options.directory, options.timeout);
  if (!admin.ok()) return fail(options, admin.status());
  for (;;) {
    const auto status = (*admin)->status();
    const auto sessions = (*admin)->sessions();
    if (!status.ok()) return fail(options, status.status());
    if (!sessions.ok()) return fail(options, sessions.status());
    if (options.format == Format::kJson) {
      std::cout << nlohmann::ordered_json{{"status", to_json(*status)},
                                          {"sessions", to_json(*sessions)["sessions"]}}
                       .dump();
    } else {
      if (options.colour == Colour::kYes) std::cout << "\x1b[H\x1b[2J";
      std::cout << render(*status) << render(*sessions);
    }
    std::cout << std::endl;
    if (!std::cout) return 0;
    ::poll(nullptr, 0, static_cast<int>(every.milliseconds()));
  }
}

}  // namespace memdecay::ctl
