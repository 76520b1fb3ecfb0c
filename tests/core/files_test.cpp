#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string text_of(const fs::path& path) {
  return InputFile(path).text(1 << 22);
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

struct Files : ::testing::Test {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
};

TEST_F(Files, LinesAreReadUpToTheTornOne) {
  const std::string wide(300'000, 'x');  // more than is read at once
  write_file(path, "one\n\n" + wide + "\ntorn");
  InputFile in(path);
  std::string_view line;
  bool torn = false;
  std::vector<std::string> lines;
  while (in.next_line(line, torn, 1 << 20)) lines.emplace_back(line);
  EXPECT_THAT(lines, ElementsAre("one", "", wide, "torn"));
  EXPECT_TRUE(torn);
}

TEST_F(Files, ALineThatIsTooLongIsRefusedBeforeItFillsTheMemory) {
  write_file(path, "short\n" + std::string(3'000'000, 'x') + "\n");
  InputFile in(path);
  std::string_view line;
  bool torn = false;
  ASSERT_TRUE(in.next_line(line, torn, 1000));
  EXPECT_THAT([&] { in.next_line(line, torn, 1000); },
              ThrowsMessage<Error>(HasSubstr("longer than 1000 bytes")));
  EXPECT_THAT([&] { InputFile(path).text(1000); },
              ThrowsMessage<Error>(HasSubstr("longer than 1000 bytes")));
}

TEST_F(Files, WhatIsNoFileIsNamedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT([&] { InputFile{path}; }, ThrowsMessage<Error>(HasSubstr("it is a pipe")));
  EXPECT_THAT([&] { InputFile{folder.path()}; }, ThrowsMessage<Error>(HasSubstr("a folder")));
  EXPECT_THAT([] { InputFile{"/dev/zero"}; }, ThrowsMessage<Error>(HasSubstr("a device")));
  EXPECT_THAT([&] { InputFile{path / "x"}; }, ThrowsMessage<Error>(HasSubstr("Not a directory")));
}

TEST_F(Files, WhatIsNotCommittedLeavesNothing) {
  write_file(path, "before");
  {
    OutputFile out(path);
    out.write(std::string(1 << 20, 'x'));
    EXPECT_EQ(text_of(path), "before");
  }
  EXPECT_EQ(text_of(path), "before");
  EXPECT_EQ(entries(folder.path()), 1u);
  check_output_place(path);
  check_output_place(folder.path() / "other");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST_F(Files, WhatALinkLeadsToIsReplaced) {
  fs::create_symlink("target", path);
  for (const char* text : {"one", "two"}) {
    write_file(path, text);
    EXPECT_TRUE(fs::is_symlink(path));
    EXPECT_EQ(text_of(folder.path() / "target"), text);
  }
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST_F(Files, WhatCannotBeWrittenIsNamed) {
  EXPECT_THAT([&] { write_file(folder.path(), "x"); },
              ThrowsMessage<WriteError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { write_file("/dev/full", "x"); },
              ThrowsMessage<WriteError>(HasSubstr("/dev/full cannot be written: No space")));
  EXPECT_THAT([&] { write_file(path / "x" / "y", "x"); },
              ThrowsMessage<WriteError>(HasSubstr("No such file")));
}

TEST(Printable, LinesStayAndColoursWhereTheyAreWanted) {
  EXPECT_EQ(printable_lines("a\x1b[31mb\n\xff\n"), "a\\x1b[31mb\n\\xff\n");
  EXPECT_EQ(printable_lines("a\x1b[31mb\x1b[2J", true), "a\x1b[31mb\\x1b[2J");
}

TEST(FileNamePart, IsOneNameInOneFolder) {
  EXPECT_EQ(file_name_part("n1.GPU-a0.r0.traced.launch+trace_level=kernels.jsonl"),
            "n1.GPU-a0.r0.traced.launch+trace_level=kernels.jsonl");
  EXPECT_EQ(file_name_part("../../evil\xff\n"), "_._.._evil__");
}

}  // namespace
}  // namespace launchgap
