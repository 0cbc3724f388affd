// See log.h. Fields are joined here, so that spdlog's own formatting sees one string and nothing a
// peer sent is ever taken for a format. Control characters are escaped: a line stays a line.
#include "daemon/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <utility>

#include "proto/contract/error.h"

namespace memdecay::base {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
}

std::string as_text(std::string_view message, std::initializer_list<LogField> fields) {
  std::string out;
  append_escaped(out, message);
  for (const LogField& field : fields) {
    out += ' ';
    out += field.name;
    out += '=';
    const bool plain = !field.value.empty() && field.value.find(' ') == std::string::npos;
    if (!plain) out += '"';
    append_escaped(out, field.value);
    if (!plain) out += '"';
  }
  return out;
}

std::string as_json(std::string_view message, std::initializer_list<LogField> fields) {
  std::string out = "\"message\":\"";
  append_escaped(out, message);
  out += '"';
  for (const LogField& field : fields) {
    out += ",\"";
    append_escaped(out, field.name);
    out += "\":\"";
    append_escaped(out, field.value);
    out += '"';
  }
  return out;
}

}  // namespace

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return std::nullopt;
}

struct Log::Sink {
  Sink(spdlog::sink_ptr sink, LogLevel level, LogForm chosen)
      : form(chosen), logger("memdecayd", std::move(sink)) {
    logger.set_level(to_spdlog(level));
    logger.flush_on(spdlog::level::warn);
    logger.set_pattern(form == LogForm::kJson
                           ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                           : "%Y-%m-%dT%H:%M:%S.%e %L %v");
  }

  LogForm form;
  spdlog::logger logger;
};

Log::Log() = default;
Log::Log(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}
Log::~Log() = default;
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;

Log Log::to_stderr(LogLevel level, LogForm form) {
  return Log(
      std::make_unique<Sink>(std::make_shared<spdlog::sinks::stderr_sink_mt>(), level, form));
}

absl::StatusOr<Log> Log::to_file(const std::string& path, LogLevel level, LogForm form) {
  try {  // spdlog reports a file that cannot be opened by throwing
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    return Log(std::make_unique<Sink>(std::move(sink), level, form));
  } catch (const spdlog::spdlog_ex& error) {
    return make_error(ErrorCode::kUnavailable, "log file " + path, error.what(),
                      "name a file in a writable folder in log.file");
  }
}

void Log::write(LogLevel level, std::string_view message,
                std::initializer_list<LogField> fields) const {
  if (sink_ == nullptr || !sink_->logger.should_log(to_spdlog(level))) return;
  const std::string line =
      sink_->form == LogForm::kJson ? as_json(message, fields) : as_text(message, fields);
  sink_->logger.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace memdecay::base
