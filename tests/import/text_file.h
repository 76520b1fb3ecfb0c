// A file that a test writes, and a reader reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "harness/core/output_file.h"

namespace launchgap::recording {

class TextFile : public testing::Test {
 protected:
  /// The file with this content.
  std::filesystem::path file(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "file";
};

}  // namespace launchgap::recording
