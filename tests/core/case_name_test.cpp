#include "harness/core/case_name.h"

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(CaseName, IsABenchmarkAndItsAxes) {
  const CaseName name = CaseName::parse("launch/null/api:driver/mode:idle");
  EXPECT_EQ(name.benchmark, "launch/null");
  EXPECT_EQ(name.family(), "launch");
  EXPECT_EQ(name.params_text(), "api:driver/mode:idle");
  EXPECT_EQ(name.at("mode"), "idle");
}

TEST(CaseName, ReadsBackAsItWasWritten) {
  for (const char* text :
       {"launch", "launch/null", "matmul/library/size:256/type:fp32", "a/b:", "a/b:c:d"}) {
    EXPECT_EQ(CaseName::parse(text).text(), text);
  }
}

TEST(CaseName, HasWholeValues) {
  const CaseName large = CaseName::parse("allocation/latency/allocator:direct/bytes:10485760");
  EXPECT_TRUE(large.has(""));
  EXPECT_TRUE(large.has("bytes:10485760"));
  EXPECT_TRUE(large.has("bytes:10485760/allocator:direct"));
  EXPECT_FALSE(large.has("bytes:1048576"));
  EXPECT_FALSE(large.has("bytes:0485760"));
  EXPECT_FALSE(large.has("allocator:direct/bytes:1048576"));
  EXPECT_FALSE(large.has("order:direct"));
  EXPECT_THROW(large.has("direct"), Error);
}

TEST(CaseName, RefusesWhatIsNoName) {
  for (const char* text : {"", "/", "a//b", "api:driver", "a/:b", "a/x:1/b", "a/"}) {
    EXPECT_THROW(CaseName::parse(text), Error) << text;
  }
}

TEST(CaseName, NumbersAreWholeNumbers) {
  const CaseName name = CaseName::parse("m/size:256/type:fp32/huge:99999999999999999999");
  EXPECT_EQ(name.number("size"), 256);
  EXPECT_THROW(name.number("type"), Error);
  EXPECT_THROW(name.number("huge"), Error);
  EXPECT_THROW(name.at("absent"), Error);
}

TEST(CaseName, IsOrderedByBenchmarkThenBySizes) {
  std::istringstream texts(
      "a/b/n:01 a/b/n:1 a/b/n:1x a/b/n:2 a/b/n:10 a/b/n:2040x8 a/b/n:2040x16 "
      "a/b/n:10000000000000000000000 a/b/n:10000000000000000000001 a/b/n:b a/b/n:b/z:1 "
      "a/b/type:fp8 a/b/type:fp16 a/b/type:tf32 a/c/n:1");
  const std::vector<std::string> ordered{std::istream_iterator<std::string>(texts), {}};
  std::vector<CaseName> names;
  for (const std::string& text : ordered) names.push_back(CaseName::parse(text));
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < names.size(); ++j) {
      EXPECT_EQ(names[i] <=> names[j], i <=> j) << ordered[i] << " " << ordered[j];
      EXPECT_EQ(names[i] == names[j], i == j);
    }
  }
}

}  // namespace
}  // namespace launchgap
