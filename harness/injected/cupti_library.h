// CUPTI within a program that is recorded: the one that the program has, or one that is found as
// launchgap finds it elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "harness/trace/cupti/abi.h"

namespace launchgap::injected {

struct CuptiLibrary : cupti::abi::CuptiFunctions {
  std::string path;
  std::uint32_t version = 0;  // as cuptiGetVersion has it

  /// In this order: the file that LAUNCHGAP_LIBCUPTI names; one that is loaded already, since two
  /// get into each other's way; the loader's own search, and then `folders` (separated by colons)
  /// one by one, each for the newest that serves CUDA `cuda_version`, and for later ones. False,
  /// and why in `reason`, if there is none that can be used.
  bool load(int cuda_version, const std::string& folders, std::string& reason);

  std::string describe(cupti::abi::Result code) const;
};

}  // namespace launchgap::injected
