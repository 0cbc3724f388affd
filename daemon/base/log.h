// The daemon's log: lines of a message and named fields, as text or JSON, to stderr or a file.
// spdlog is behind it, in log.cc only. Given by the constructor like everything else; Log() is
// silent.
// Thread: any. A write never blocks longer than the write(2) behind it, and never fails a caller.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace memdecay::base {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
std::optional<LogLevel> log_level_from_name(std::string_view name);  // debug info warning error off

enum class LogForm : uint8_t { kText, kJson };

struct LogField {
  std::string_view name;
  std::string value;
};

class Log {
 public:
  Log();  // silent
  static Log to_stderr(LogLevel level, LogForm form);
  // unavailable: the file cannot be opened for appending.
  static absl::StatusOr<Log> to_file(const std::string& path, LogLevel level, LogForm form);
  ~Log();
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;

  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields = {}) const;
  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kDebug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kInfo, message, fields);
  }
  void warning(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kWarning, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kError, message, fields);
  }

 private:
  struct Sink;
  explicit Log(std::unique_ptr<Sink> sink);

  std::unique_ptr<Sink> sink_;
};

}  // namespace memdecay::base
