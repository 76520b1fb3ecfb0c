#include "harness/core/process_config.h"

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(ProcessConfig, IsAFamilyAndTheSettingsThatAreNotUsual) {
  const ProcessConfig setup =
      ProcessConfig("launch").with("wait", "block").with_observer(TraceLevel::kernels);
  EXPECT_EQ(setup.text(), "launch+wait=block+trace=kernels");
  EXPECT_EQ(setup.family(), "launch");
  EXPECT_FALSE(setup.usual());
  EXPECT_EQ(setup.wait(), WaitMode::block);
  EXPECT_EQ(setup.loading(), std::nullopt);
  EXPECT_EQ(setup.observer(), TraceLevel::kernels);
  EXPECT_EQ(setup.unknown(), "");
  EXPECT_EQ(setup.gpus(), 1);
  EXPECT_EQ(setup.with("gpus", "2").gpus(), 2);
  EXPECT_EQ(ProcessConfig(setup.text()), setup);
}

TEST(ProcessConfig, OfAFamilyAloneIsTheUsualOne) {
  const ProcessConfig setup("launch");
  EXPECT_TRUE(setup.usual());
  EXPECT_EQ(setup.wait(), std::nullopt);
  EXPECT_EQ(setup.observer(), std::nullopt);
  EXPECT_EQ(setup.trace_level(), TraceLevel::all);
}

TEST(ProcessConfig, SaysWhichCodeALibraryIsToRun) {
  EXPECT_EQ(ProcessConfig("matmul").with("code", "haswell").code(), "haswell");
  EXPECT_EQ(ProcessConfig("convolution+code=avx512_core").code(), "avx512_core");
  EXPECT_EQ(ProcessConfig("matmul").code(), std::nullopt);
  EXPECT_EQ(ProcessConfig("matmul+code=").code(), std::nullopt);
}

TEST(ProcessConfig, OfTheObserverEffectSaysItsLevel) {
  for (const TraceLevel level :
       {TraceLevel::none, TraceLevel::launches, TraceLevel::kernels, TraceLevel::all}) {
    const ProcessConfig setup = ProcessConfig("launch").with_observer(level);
    EXPECT_EQ(setup.text(), "launch+trace=" + std::string(name_of(level)));
    EXPECT_EQ(setup.observer(), level);
    EXPECT_EQ(setup.trace_level(), level);
  }
  EXPECT_EQ(ProcessConfig("launch+wait=block").trace_level(), TraceLevel::all);
}

TEST(ProcessConfig, KeepsWhatItDoesNotKnow) {
  for (const char* setting : {"wait=sleep", "loading=", "loading", "gpus=3", "fan=off", ""}) {
    const ProcessConfig setup(std::string("launch+wait=yield+") + setting);
    EXPECT_EQ(setup.text(), std::string("launch+wait=yield+") + setting);
    EXPECT_EQ(setup.wait(), WaitMode::yield) << "the first of a setting counts";
    EXPECT_EQ(setup.unknown(), setting);
  }
}

TEST(ProcessConfig, OfAnUnknownLevelIsOfTheObserverEffectAllTheSame) {
  const ProcessConfig setup("launch+trace=memory");
  EXPECT_TRUE(setup.is_observer());
  EXPECT_EQ(setup.observer(), std::nullopt);
  EXPECT_FALSE(ProcessConfig("launch+wait=block").is_observer());
}

TEST(ProcessConfig, IsNotGivenASettingThatThereIsNot) {
  EXPECT_THROW(ProcessConfig("launch").with("wait", "sleep"), Error);
  EXPECT_THROW(ProcessConfig("launch").with("fan", "off"), Error);
  EXPECT_THROW(ProcessConfig("allocation").with("allocator", "a+b"), Error);
  EXPECT_THROW(ProcessConfig("allocation").with("allocator", ""), Error);
  EXPECT_THROW(ProcessConfig("matmul").with("code", "Haswell"), Error) << "no capitals";
  EXPECT_EQ(ProcessConfig("allocation").with("allocator", "pool_t0").text(),
            "allocation+allocator=pool_t0");
}

}  // namespace
}  // namespace launchgap
