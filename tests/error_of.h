// What is said of what cannot be done.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {

/// The message of the Error that a call throws. Fails if it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "it is no error";
  return {};
}

}  // namespace launchgap
