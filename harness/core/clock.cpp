#include "harness/core/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace launchgap {

std::string utc_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

std::optional<std::int64_t> parse_utc(std::string_view text) {
  std::tm time{};
  char zone = 0, rest = 0;
  const std::string copy(text.substr(0, 32));
  if (std::sscanf(copy.c_str(),
                  "%4d-%2d-%2dT%2d:%2d:%2d%c%c",
                  &time.tm_year,
                  &time.tm_mon,
                  &time.tm_mday,
                  &time.tm_hour,
                  &time.tm_min,
                  &time.tm_sec,
                  &zone,
                  &rest) != 7 ||
      zone != 'Z')
    return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  const std::int64_t unix_s = timegm(&time);
  // A 31st of February is put right by timegm, and is no time.
  return utc_text(unix_s) == text ? std::optional(unix_s) : std::nullopt;
}

}  // namespace launchgap
