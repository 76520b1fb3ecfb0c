// Times of day as records have them: "2026-11-22T03:00:00Z".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace launchgap {

/// Of seconds since 1970.
std::string utc_text(std::int64_t unix_s);

/// Seconds since 1970; absent for what is no such text.
std::optional<std::int64_t> parse_utc(std::string_view text);

}  // namespace launchgap
