// What a small program of the system prints, within a limit of time and size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace launchgap::doctor {

/// The standard output of a program that ended with 0 within `seconds`; nothing otherwise, and when
/// it printed more than `limit` bytes. `argv[0]` is looked for in PATH unless it is a path. Its
/// standard input is empty, its errors are dropped, and so is LD_DEBUG.
std::optional<std::string> output_of(const std::vector<std::string>& argv,
                                     double seconds,
                                     std::size_t limit = 4 << 20);

}  // namespace launchgap::doctor
