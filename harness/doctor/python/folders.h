// Where a Python looks for packages.
#pragma once

#include <map>
#include <string>

#include "harness/doctor/python/packages.h"
#include "harness/doctor/system_files.h"

namespace launchgap::doctor {

/// The active Python and its folders, without packages.
ActivePython find_python(const SystemFiles& system,
                         const std::map<std::string, std::string>& environment);

}  // namespace launchgap::doctor
