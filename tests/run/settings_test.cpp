#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/run/perform_job.h"

namespace launchgap {
namespace {

TEST(Settings, AFamilyAloneChangesNothing) {
  const OpenOptions options = open_options("launch", "");
  EXPECT_EQ(options.wait, WaitMode::spin);
  EXPECT_EQ(options.loading, CodeLoading::unchanged);
  EXPECT_EQ(options.code, "");
}

TEST(Settings, AreSpelledInTheSetup) {
  EXPECT_EQ(open_options("launch+wait=block", "").wait, WaitMode::block);
  EXPECT_EQ(open_options("launch+wait=yield", "").wait, WaitMode::yield);
  EXPECT_EQ(open_options("launch+loading=eager", "").loading, CodeLoading::eager);
  const OpenOptions both = open_options("launch+loading=jit_cached+wait=block", "/cache");
  EXPECT_EQ(both.loading, CodeLoading::jit_cached);
  EXPECT_EQ(both.wait, WaitMode::block);
  EXPECT_EQ(both.jit_cache, "/cache");
  EXPECT_EQ(open_options("matmul+code=haswell", "").code, "haswell");
}

TEST(Settings, WhatTheyCannotBeIsAnError) {
  EXPECT_THROW(open_options("launch+wait=sleep", ""), UsageError);
  EXPECT_THROW(open_options("launch+loading=", ""), UsageError);
}

}  // namespace
}  // namespace launchgap
