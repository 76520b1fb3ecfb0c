// A report as JUnit's XML, which CI systems show: a test case per metric, case, device and node.
#pragma once

#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// What fails the command is a <failure>; else what is invalid or has no baseline is <skipped>,
/// with its reason. A session that is invalid as a whole is an <error> of a test case of its own.
std::string junit_xml(const Report& report);

}  // namespace launchgap::regression
