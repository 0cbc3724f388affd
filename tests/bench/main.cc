// memdecay-bench: flags, the choice of sections, the table. What is measured is in the sections
// (sections.h). Not part of the tests but for a quick run that shows that it works.
// Thread: main. Exit codes: 0 everything was measured (whatever the figures), 1 something could not
// be measured, 2 wrong usage.
#include <signal.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/bench/echo.h"
#include "tests/bench/processes.h"
#include "tests/bench/sections.h"

namespace memdecay::bench {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  memdecay-bench host\n"
    "  memdecay-bench host --only memory,ledger --json > figures.json\n"
    "  memdecay-bench policy --policy memdecay_n,norm_sum\n"
    "  memdecay-bench calibration --replications 200\n"
    "Nothing else should run meanwhile: the load before and after stands under the table.";

struct Section {
  const char* name;
  absl::Status (*measure)(const BenchOptions&, Report&);
};
constexpr Section kSections[] = {{"memory", measure_memory},
                                 {"ledger", measure_ledger},
                                 {"stream", measure_stream},
                                 {"engine", measure_engine}};

struct Flags {
  bool json = false;
  bool quick = false;
  std::vector<std::string> only;
  std::string model;
  int threads = 2;
  std::string echo_socket;
  std::vector<std::string> policies = {"memdecay_n", "memdecay"};
  uint32_t replications = 200;
};

std::string load() {
  double averages[3] = {};
  ::getloadavg(averages, 3);
  return absl::StrFormat("%.2f (1 min), %.2f (5 min)", averages[0], averages[1]);
}

// The demo model; fetched if it is not there.
absl::StatusOr<std::string> find_model() {
  auto fetch = ChildProcess::start({"/bin/bash", MEMDECAY_SOURCE_DIR "/deploy/fetch_model.sh"});
  if (!fetch.ok()) return fetch.status();
  absl::StatusOr<std::string> path = (*fetch)->read_line();
  (*fetch)->wait();
  return path;
}

absl::Status measure(const Section& section, BenchOptions& options, Report& report) {
  if (section.measure == measure_engine && options.model.empty()) {
    absl::StatusOr<std::string> model = find_model();
    if (!model.ok()) return model.status();
    options.model = *std::move(model);
  }
  return section.measure(options, report);
}

BenchOptions::Size size_of(const Flags& flags) {
  return flags.quick ? BenchOptions::Size::kQuick : BenchOptions::Size::kWhole;
}

int conclude(const Flags& flags, Report& report) {
  report.context("load after", load());
  if (flags.quick) report.context("note", "a quick run: its figures mean nothing");
  std::cout << (flags.json ? report.json() : report.text()) << std::flush;
  return report.complete() ? 0 : 1;
}

int run_host(const Flags& flags) {
  BenchOptions options{.model = flags.model, .threads = flags.threads};
  options.size = size_of(flags);
  options.programs = std::filesystem::canonical("/proc/self/exe").parent_path().string();
  Report report;
  report.context("cores", std::to_string(std::thread::hardware_concurrency()));
  report.context("load before", load());
  for (const Section& section : kSections) {
    const bool wanted = flags.only.empty() || std::find(flags.only.begin(), flags.only.end(),
                                                        section.name) != flags.only.end();
    if (!wanted) continue;
    std::cerr << "memdecay-bench: " << section.name << " …" << std::endl;
    const absl::Status status = measure(section, options, report);
    if (!status.ok()) report.missing(section.name, std::string(status.message()));
  }
  return conclude(flags, report);
}

int run_policy(const Flags& flags) {
  BenchOptions options;
  options.size = size_of(flags);
  Report report;
  report.context("load before", load());
  const absl::Status status = measure_policy(options, flags.policies, report);
  if (!status.ok()) report.missing("policy", std::string(status.message()));
  return conclude(flags, report);
}

int run_calibration(const Flags& flags) {
  BenchOptions options;
  options.size = size_of(flags);
  std::cout << calibration_table(options, flags.quick ? 2 : flags.replications);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Measures memdecay on this machine; goals stand beside the figures.");
  app.footer(kExample);
  app.require_subcommand(1);
  Flags flags;
  std::vector<std::string> names;
  for (const Section& section : kSections) names.emplace_back(section.name);
  CLI::App* const host = app.add_subcommand("host", "pages in plain memory, engines on CPUs");
  host->footer(kExample);
  host->add_flag("--json", flags.json, "JSON instead of the table");
  host->add_flag("--quick", flags.quick, "seconds instead of minutes; the figures mean nothing");
  host->add_option("--only", flags.only, "sections: " + absl::StrJoin(names, ","))
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  host->add_option("--model", flags.model, "GGUF file; default: deploy/fetch_model.sh")
      ->check(CLI::ExistingFile);
  host->add_option("--threads", flags.threads, "threads of the engine")->check(CLI::Range(1, 64));
  CLI::App* const policy = app.add_subcommand("policy", "scores and victims, up to 10M pages");
  policy->footer(kExample);
  policy->add_flag("--json", flags.json, "JSON instead of the table");
  policy->add_flag("--quick", flags.quick, "seconds instead of minutes; the figures mean nothing");
  policy->add_option("--policy", flags.policies, "names; default: memdecay_n,memdecay")
      ->delimiter(',');
  CLI::App* const calibration =
      app.add_subcommand("calibration", "half-lives of simulated agents against the truth");
  calibration->footer(kExample);
  calibration->add_flag("--quick", flags.quick, "two small replications");
  calibration->add_option("--replications", flags.replications, "agents anew, so many times")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  CLI::App* const echo = app.add_subcommand("echo-server", "the echo's other end")->group("");
  echo->add_option("socket", flags.echo_socket)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (echo->parsed()) return serve_echo(flags.echo_socket);
  if (calibration->parsed()) return run_calibration(flags);
  return policy->parsed() ? run_policy(flags) : run_host(flags);
}

}  // namespace
}  // namespace memdecay::bench

int main(int argc, char** argv) { return memdecay::bench::run(argc, argv); }
