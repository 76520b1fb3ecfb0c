// Where the system's own files are: /proc, /sys and /dev, or a folder of the tests that stands for
// them.
#pragma once

#include <string>

namespace launchgap {

/// "/", or LAUNCHGAP_SYSTEM_ROOT, absolute and without a slash at its end.
std::string system_root();

/// `path`, which is absolute, below it.
std::string system_path(const std::string& path);

}  // namespace launchgap
