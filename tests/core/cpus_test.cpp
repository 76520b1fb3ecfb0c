#include "harness/core/cpus.h"

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(CpuListText, GoesBothWays) {
  const std::pair<CpuList, const char*> cases[] = {
      {{}, ""}, {{3}, "3"}, {{0, 1}, "0-1"}, {{0, 1, 2, 3, 8}, "0-3,8"}, {{1, 3, 5}, "1,3,5"}};
  for (const auto& [cpus, text] : cases) {
    EXPECT_EQ(cpu_list_text(cpus), text);
    EXPECT_EQ(parse_cpu_list(text), cpus);
  }
}

TEST(CpuListText, RefusesOtherText) {
  for (const char* text : {"a", "1-", "-1", "1;2", "1 2", "99999999"})
    EXPECT_THROW(parse_cpu_list(text), Error) << text;
}

TEST(AllowedCpus, FollowTheThreadsBinding) {
  const CpuList all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  ASSERT_TRUE(bind_thread({all.back()}));
  EXPECT_EQ(allowed_cpus(), CpuList{all.back()});
  EXPECT_TRUE(bind_thread(all));
}

TEST(BindThread, SaysWhenTheSystemRefuses) {
  EXPECT_FALSE(bind_thread({}));
  EXPECT_FALSE(bind_thread({1 << 19}));
}

}  // namespace
}  // namespace launchgap
