// Names and texts of the driver's codes.
#pragma once

namespace launchgap::fake {

struct ErrorName {
  int code;
  const char* name;
  const char* text;
};

/// Null for a code that CUDA does not know.
const ErrorName* find_error(int code);

}  // namespace launchgap::fake
