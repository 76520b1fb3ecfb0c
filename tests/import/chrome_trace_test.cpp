#include <string>

#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

struct ChromeTrace : TextFile {
  /// One call of the runtime, with these arguments.
  Recording read(const std::string& arguments) const {
    return read_chrome_trace(file(
        R"([{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,)"
        R"("args":{)" +
        arguments + "}}]"));
  }
};

TEST_F(ChromeTrace, ACorrelationThatIsNoNumberIsLeftOutAndNoneIsNot) {
  for (const char* const good : {R"("correlation":7)", R"("correlation":"7")", ""})
    EXPECT_TRUE(read(good).left_out.empty()) << good;
  const Recording recording = read(R"("correlation":"seven")");
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out[0].what, "correlation numbers that are none");
  EXPECT_EQ(recording.left_out[0].count, 1u);
}

}  // namespace
}  // namespace launchgap::recording
