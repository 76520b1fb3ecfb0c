#include "harness/measure/shapes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/device/shape_text.h"

namespace launchgap {
namespace {

using namespace testing;

TEST(ShapeText, SaysAllOfAShapeAndNothingThatIsUsual) {
  for (const char* text : {"4096x16x2048", "8x9x10-nt", "8x9x10-tn", "1x2x3-tt-b96", "1x1x1-b2"})
    EXPECT_EQ(shape_text(matmul_shape(text)), text);
  for (const char* text :
       {"32x64x56x56-128x3x3", "8x512x14x14-512x3x3-s2-p1-d1x2-g64", "1x3x9x8-4x2x1-s2x1-p0x3"})
    EXPECT_EQ(shape_text(convolution_shape(text)), text);
}

TEST(ShapeText, EveryShapeOfTheTablesReadsBack) {
  for (const auto& named : matmul_shapes())
    EXPECT_EQ(shape_text(matmul_shape(shape_text(named.shape))), shape_text(named.shape));
  for (const auto& named : convolution_shapes())
    EXPECT_EQ(shape_text(convolution_shape(shape_text(named.shape))), shape_text(named.shape));
}

TEST(ShapeText, NamesWhatIsWrong) {
  const auto refused = [](auto&& parse, const char* text, const char* why) {
    EXPECT_THAT([&] { parse(text); }, ThrowsMessage<Error>(HasSubstr(why))) << text;
  };
  for (const auto& [text, why] : {std::pair{"", "'' is not a whole number"},
                                  {"1x2", "has 2 numbers and must have 3"},
                                  {"0x2x3", "'0' is not a whole number from 1"},
                                  {"-1x2x3", "is not a whole number from 1"},
                                  {"2147483648x2x3", "'2147483648' is not a whole number"},
                                  {"1x2x3-", "'' says nothing of a product"},
                                  {"1x2x3-nn", "'nn' says nothing of a product"},
                                  {"1x2x3-b0", "'0' is not a whole number from 1"},
                                  {"1x2x3x4", "has 4 numbers and must have 3"},
                                  {"2147483647x2147483647x1", "C would have more bytes than any"}})
    refused(matmul_shape, text, why);
  for (const auto& [text, why] :
       {std::pair{"1x2x3x4", "is not n x c x h x w of an input"},
        {"1x2x3x4-5x6", "has 2 numbers and must have 3"},
        {"1x2x3x4-5x4x1", "larger than the input with its padding"},
        {"1x2x3x4-5x1x1-g3", "3 groups do not divide 2 channels and 5 filters"},
        {"1x2x3x4-5x1x1-s0", "'0' is not a whole number from 1"},
        {"1x2x3x4-5x1x1-p-1", "'' is not a whole number from 0"},
        {"1x2x3x4-5x1x1-p2147483647", "the padded input would have more bytes"},
        {"1x2x3x4-5x1x1-q2", "'q2' says nothing of a convolution"}})
    refused(convolution_shape, text, why);
}

TEST(Shapes, OfResnet50AreItsFiftyThreeConvolutions) {
  int count = 0;
  for (const auto& layer : convolution_set("resnet50")) count += layer.count;
  EXPECT_EQ(count, 53);
  EXPECT_EQ(convolution_set("resnet50").size(), 23u);
}

TEST(Shapes, OfAProfileGrowAndLeaveOutWhatACpuTakesLongFor) {
  DeviceFacts host, gpu;
  host.backend = "host", gpu.backend = "cuda";
  std::size_t before = 0;
  for (const Profile profile : {Profile::quick, Profile::nightly, Profile::full}) {
    const auto of_gpu = matmul_shape_axis(profile, gpu), of_host = matmul_shape_axis(profile, host);
    EXPECT_GT(of_gpu.size(), before);
    before = of_gpu.size();
    EXPECT_FALSE(of_host.empty());
    EXPECT_TRUE(std::ranges::includes(of_gpu, of_host) || of_host.size() <= of_gpu.size());
    EXPECT_FALSE(convolution_shape_axis(profile, host).empty());
  }
  for (const std::string& text : matmul_shape_axis(Profile::quick, host))
    EXPECT_LE(matmul_shape(text).operations(), 2e9) << text;
}

struct ReadShapes : ::testing::Test {
  ShapeTables read(const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return read_shapes(file);
  }
  void expect_refused(const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<UsageError>(HasSubstr(why))) << text;
  }
  void TearDown() override { std::filesystem::remove(file); }
  std::filesystem::path file = std::filesystem::path(::testing::TempDir()) /
                               ("launchgap_" + std::to_string(getpid()) + "_shapes_test.csv");
};

TEST_F(ReadShapes, TakesTheColumnsThatThereAre) {
  const ShapeTables products = read("k,m,n,transpose_b,name\n3,1,2,1,mine\n30,10,20,,\n");
  ASSERT_EQ(products.matmul.size(), 2u);
  EXPECT_EQ(products.matmul[0].name, "mine");
  EXPECT_EQ(shape_text(products.matmul[0].shape), "1x2x3-nt");
  EXPECT_EQ(products.matmul[1].name, "10x20x30");
  const ShapeTables convolutions =
      read("n,c,h,w,k,r,s,pad_h,pad_w,groups\r\n1,4,8,8,4,3,3,1,1,4\r\n");
  ASSERT_EQ(convolutions.convolution.size(), 1u);
  EXPECT_EQ(shape_text(convolutions.convolution[0].shape), "1x4x8x8-4x3x3-p1-g4");
}

TEST_F(ReadShapes, NamesFileLineAndColumnOfWhatIsWrong) {
  expect_refused("", "the header is missing");
  expect_refused("a,b\n1,2\n", "neither the columns m, n, k of products");
  expect_refused("m,n,k\n", "no shape is in it");
  expect_refused("m,n,k\n1,2,3\n1,x,3\n", "_shapes_test.csv, line 3, column n: 'x' is not");
  expect_refused("m,n,k\n1,2,0\n", "line 2, column k: '0' is not a whole number from 1");
  expect_refused("m,n,k\n1,2,-3\n", "line 2, column k: '-3' is not a whole number from 1");
  expect_refused("m,n,k\n1,2,4294967296\n", "line 2, column k: '4294967296' is not");
  expect_refused("m,n,k\n1,2\n", "line 2: 2 cells under 3 columns");
  expect_refused("m,n,k\n1,2,\"3\n", "line 2: a quote that is never closed");
  expect_refused("m,n,k\n1,2,3\n4,5,6\n1,2,3\n", "line 4: '1x2x3' is in line 2 already");
  expect_refused("name,m,n,k\na,1,2,3\na,4,5,6\n", "line 3: 'a' is in line 2 already");
  expect_refused("m,n,k,colour\n1,2,3,red\n", "column 'colour' is not known");
  expect_refused("m,n,m\n1,2,3\n", "names a column twice");
  expect_refused("m,n\n1,2\n", "has no column 'k'");
  expect_refused("m,n,k,transpose_a\n1,2,3,2\n", "line 2, column transpose_a: '2' is not 0 or 1");
  expect_refused("m,n,k\n1,2,3\n\xff,2,3\n", "line 3: not UTF-8");
  expect_refused("n,c,h,w,k,r,s\n1,1,1,1,1,3,1\n", "line 2: the filters are larger");
  expect_refused("m,n,k\n" + std::string(kLongestShapes, '1'), "_shapes_test.csv");
}

TEST_F(ReadShapes, TakesNothingThatIsNoFile) {
  EXPECT_THROW(read_shapes("/absent.csv"), UsageError);
  EXPECT_THROW(read_shapes("/dev/zero"), UsageError);
}

}  // namespace
}  // namespace launchgap
