#include "harness/run/filter.h"

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(Filter, IsGoogleBenchmarks) {
  const std::string name = "matmul/library/size:256/type:fp32/cache:warm";
  for (const char* expression :
       {"", ".", "matmul", "size:256", "^matmul.*warm$", "fp16|fp32", "-launch"}) {
    EXPECT_TRUE(Filter(expression).passes(name)) << expression;
  }
  for (const char* expression : {"launch", "size:25/", "-matmul", "^library"}) {
    EXPECT_FALSE(Filter(expression).passes(name)) << expression;
  }
}

TEST(Filter, TakesNoLongerThanAnybodyWaits) {
  const std::string name = "convolution/library/shape:conv5_1x1_2048/n:1/type:fp32/cache:warm";
  for (const char* expression : {"(.*)*#", "(a|a|a|a)*(a|aa)*#", "((((.*)*)*)*)*#"})
    EXPECT_FALSE(Filter(expression).passes(name)) << expression;
}

TEST(Filter, RefusesWhatIsTooLarge) {
  const std::string deep = std::string(400, '(') + "a" + std::string(400, ')');
  EXPECT_NO_THROW(Filter{deep});
  EXPECT_THROW(Filter{deep + std::string(300, 'a')}, UsageError);
  EXPECT_THROW(Filter{"(a{200}){200}"}, UsageError);
}

TEST(Filter, SaysWhatIsNotAnExpression) {
  for (const char* expression : {"(", "[", "*", "a{2,1}", "-("})
    EXPECT_THROW(Filter{expression}, UsageError) << expression;
}

}  // namespace
}  // namespace launchgap
