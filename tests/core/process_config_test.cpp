#include "harness/core/process_config.h"

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(ProcessConfig, IsAFamilyAndTheSettingsThatAreNotUsual) {
  const ProcessConfig process_config =
      ProcessConfig("launch").with("wait", "block").with_observer(TraceLevel::kernels);
  EXPECT_EQ(process_config.text(), "launch+wait=block+trace_level=kernels");
  EXPECT_EQ(process_config.family(), "launch");
  EXPECT_FALSE(process_config.usual());
  EXPECT_EQ(process_config.wait(), WaitMode::block);
  EXPECT_EQ(process_config.loading(), std::nullopt);
  EXPECT_EQ(process_config.observer(), TraceLevel::kernels);
  EXPECT_EQ(process_config.unknown(), "");
  EXPECT_EQ(process_config.gpus(), 1);
  EXPECT_EQ(process_config.with("gpus", "2").gpus(), 2);
  EXPECT_EQ(ProcessConfig(process_config.text()), process_config);
}

TEST(ProcessConfig, OfAFamilyAloneIsTheUsualOne) {
  const ProcessConfig process_config("launch");
  EXPECT_TRUE(process_config.usual());
  EXPECT_EQ(process_config.wait(), std::nullopt);
  EXPECT_EQ(process_config.observer(), std::nullopt);
  EXPECT_EQ(process_config.trace_level(), TraceLevel::all);
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
    const ProcessConfig process_config = ProcessConfig("launch").with_observer(level);
    EXPECT_EQ(process_config.text(), "launch+trace_level=" + std::string(name_of(level)));
    EXPECT_EQ(process_config.observer(), level);
    EXPECT_EQ(process_config.trace_level(), level);
  }
  EXPECT_EQ(ProcessConfig("launch+wait=block").trace_level(), TraceLevel::all);
}

TEST(ProcessConfig, KeepsWhatItDoesNotKnow) {
  for (const char* setting : {"wait=sleep", "loading=", "loading", "gpus=3", "fan=off", ""}) {
    const ProcessConfig process_config(std::string("launch+wait=yield+") + setting);
    EXPECT_EQ(process_config.text(), std::string("launch+wait=yield+") + setting);
    EXPECT_EQ(process_config.wait(), WaitMode::yield) << "the first of a setting counts";
    EXPECT_EQ(process_config.unknown(), setting);
  }
}

TEST(ProcessConfig, OfAnUnknownLevelIsOfTheObserverEffectAllTheSame) {
  const ProcessConfig process_config("launch+trace_level=memory");
  EXPECT_TRUE(process_config.is_observer());
  EXPECT_EQ(process_config.observer(), std::nullopt);
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
