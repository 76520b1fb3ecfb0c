#include "harness/gap/gpu_columns.h"

#include <gmock/gmock.h>

#include "harness/gap/shared_cases.h"
#include "harness/summary/generations.h"
#include "tests/gap/two_gpus.h"

namespace launchgap::gap {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> titles(const std::vector<GpuColumn>& columns) {
  std::vector<std::string> all;
  for (const GpuColumn& column : columns) all.push_back(column.title);
  return all;
}

constexpr const char* kLaunch = "launch/null/api:driver/mode:burst";

TEST(GpuColumns, StandInTheOrderOfRelease) {
  Sessions sessions;
  for (const char* name : {"NVIDIA H100 80GB HBM3", "Tesla K40m", "NVIDIA A100-SXM4-80GB", "M40"}) {
    sessions.add(name);
    sessions.measured(kLaunch, "per_launch_ns", {1, 1});
  }
  sessions.add("Prototype", "8.6");  // of no table: with the first of its compute capability
  sessions.measured(kLaunch, "per_launch_ns", {1, 1});
  EXPECT_THAT(titles(sessions.columns()),
              ElementsAre("K40m", "M40", "A100-SXM4-80GB", "Prototype", "H100 80GB HBM3"));
}

std::optional<Release> released(const char* name, const char* capability = "") {
  DeviceFacts gpu = a_device("", name);
  if (*capability) gpu.compute_capability = capability;
  return release_of(gpu);
}

TEST(Releases, AreOfTheNameOrElseOfTheCapability) {
  struct Known {
    const char *name, *capability, *month;
    bool by_name;
  };
  for (const Known& known : {Known{"NVIDIA H200", "9.0", "2023-11", true},
                             Known{"NVIDIA A100-SXM4-80GB", "8.0", "2020-05", true},
                             Known{"Tesla K40m", "", "2013-10", true},
                             Known{"NVIDIA GeForce GTX 980", "", "2014-09", true},
                             Known{"Mystery", "8.6", "2020-09", false},
                             Known{"Mystery", "1.0", "0000-00", false}}) {
    const auto found = released(known.name, known.capability);
    ASSERT_TRUE(found) << known.name;
    EXPECT_EQ(found->month, known.month) << known.name << known.capability;
    EXPECT_EQ(found->by_name, known.by_name) << known.name;
  }
  EXPECT_GT(released("Mystery", "99.0")->month, "2024") << "the last of the nearest older one";
  EXPECT_FALSE(released("Mystery"));
  EXPECT_FALSE(released("Mystery", "eight"));
}

TEST(GpuColumns, OfOneNameAreToldApartByTheirClockThenByTheirFolder) {
  Sessions sessions;
  for (const int clock : {1380, 1530, 1530}) {
    sessions.add("Tesla V100-SXM2-16GB").devices[0].clock_mhz = clock;
    sessions.measured(kLaunch, "per_launch_ns", {1, 1});
  }
  const std::vector<GpuColumn> columns = sessions.columns();
  EXPECT_THAT(titles(columns),
              ElementsAre("V100-SXM2-16GB (1380 MHz)",
                          "V100-SXM2-16GB (1530 MHz) (folder2)",
                          "V100-SXM2-16GB (1530 MHz) (folder3)"));
  EXPECT_EQ(one_of_each(columns).size(), 2) << "clocks make another GPU, sessions do not";
}

TEST(GpuColumns, AreNotOfWhatMeasuredNothing) {
  Sessions sessions;
  sessions.add("Tesla K40m");
  sessions.add("Tesla M40").devices[0].usable = false;
  sessions.measured(kLaunch, "per_launch_ns", {1});
  EXPECT_TRUE(sessions.columns().empty());
}

TEST(ShapeClasses, AreOfTheSidesOfAProduct) {
  const auto of = [](const char* name) { return shape_class_of(CaseName::parse(name)); };
  EXPECT_EQ(of("matmul/library/size:1024/type:fp32"), "large");
  EXPECT_EQ(of("matmul/library/size:256/type:fp32"), "small");
  EXPECT_EQ(of("matmul/shapes/shape:4096x16x4096/type:fp32"), "skinny");
  EXPECT_EQ(of("matmul/shapes/shape:4096x512x4096/type:fp32"), "skinny");
  EXPECT_EQ(of("matmul/shapes/shape:4096x513x4096/type:fp32"), "small");
  EXPECT_EQ(of("matmul/shapes/shape:512x512x128-nt-b32/type:fp32"), "batched");
  EXPECT_EQ(of("matmul/shapes/shape:nonsense/type:fp32"), "");
  EXPECT_EQ(of("convolution/library/layer:conv1_7x7/n:8/type:fp16"), "convolution");
  EXPECT_EQ(of(kLaunch), "");
}

}  // namespace
}  // namespace launchgap::gap
