#include "harness/import/text_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;

constexpr std::size_t kLongest = std::size_t{1} << 20;

struct TextLinesTest : TextFile {
  TextLines of(const std::string& text) const { return {file(text), kLongest}; }
  static std::vector<std::string> all(TextLines lines) {
    std::vector<std::string> found;
    for (std::string_view line; lines.next(line);) found.emplace_back(line);
    return found;
  }
};

TEST_F(TextLinesTest, EndsOfLinesAreLeftOut) {
  EXPECT_THAT(all(of("one\r\n\ntwo\n")), ElementsAre("one", "", "two"));
  EXPECT_THAT(all(of("")), ElementsAre());
}

TEST_F(TextLinesTest, TheLastLineMayHaveNoEnd) {
  TextLines lines = of("one\ntwo");
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_FALSE(lines.torn());
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_TRUE(lines.torn());
  EXPECT_FALSE(lines.next(line));
}

// Several times as long as what is read at once, and not at its beginning.
TEST_F(TextLinesTest, ALongLineIsWhole) {
  const std::string longest(kLongest, 'x');
  EXPECT_THAT(all(of("one\n" + longest + "\ntwo\n")), ElementsAre("one", longest, "two"));
  EXPECT_THAT(all(of(longest)), ElementsAre(longest));
}

// Behind more than is read at once.
TEST_F(TextLinesTest, BytesAndLinesAreCountedFromTheBeginning) {
  const std::string line(200'000, 'x');
  TextLines lines =
      of(line + "\n" + line + "\n" + line + "\n" + std::string(kLongest + 1, 'x') + "\n");
  std::string_view read;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_TRUE(lines.next(read));
    EXPECT_EQ(lines.number(), number);
    EXPECT_EQ(read.size(), line.size());
  }
  EXPECT_THAT(error_of([&] { lines.next(read); }), HasSubstr("line 4 (byte 600003) is longer"));
}

TEST_F(TextLinesTest, ALineThatIsTooLongIsNamed) {
  for (const std::string end : {"", "\ntwo\n"}) {
    TextLines lines = of("one\n" + std::string(kLongest + 1, 'x') + end);
    std::string_view line;
    ASSERT_TRUE(lines.next(line));
    EXPECT_THAT(error_of([&] { lines.next(line); }),
                HasSubstr("line 2 (byte 4) is longer than 1048576 bytes"));
  }
}

}  // namespace
}  // namespace launchgap::recording
