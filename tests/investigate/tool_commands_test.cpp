#include "harness/investigate/tool_commands.h"

#include <algorithm>
#include <regex>

#include <gmock/gmock.h>

#include "harness/run/filter.h"

namespace launchgap::investigate {
namespace {

using namespace testing;

Subject subject() {
  Subject subject;
  subject.session_id = "20261120T103455Z-783dd3";
  subject.case_name = "launch/null/api:driver/mode:idle";
  subject.device.uuid = "GPU-1";
  subject.profile = Profile::nightly;
  subject.seed = 18446744073709551615u;
  return subject;
}

std::vector<std::string> behind(const CommandLine& command, const std::string& word) {
  const auto found = std::ranges::find(command, word);
  return {found, command.end()};
}

TEST(ToolCommands, NsysCapturesTheBlocksOfTheCase) {
  const Places places = places_of(Tool::nsys, "out");
  const CommandLine command = profile_command(Tool::nsys, subject(), "/opt/launchgap", places);
  EXPECT_EQ(shell_line(command),
            "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --capture-range=nvtx "
            "--nvtx-capture=blocks@launchgap --capture-range-end=stop --kill=none "
            "--cuda-graph-trace=graph --output=out/nsys "
            "/opt/launchgap run --devices GPU-1 --filter '^launch/null/api:driver/mode:idle$' "
            "--runs 1 --seed 18446744073709551615 --profile nightly --trace off --under nsys "
            "--investigates 20261120T103455Z-783dd3 --no-report -o out/nsys-session");
  EXPECT_EQ(shell_line(export_command(places)),
            "nsys export --type=sqlite --output=out/nsys.sqlite out/nsys.nsys-rep");
  EXPECT_EQ(shell_line(join_command("launchgap", places)),
            "launchgap join out/nsys.sqlite out/nsys-session -o out/joined.csv");
}

TEST(ToolCommands, NcuProfilesSomeKernelsOfTheBlocks) {
  const Places places = places_of(Tool::ncu, "out");
  const CommandLine command = profile_command(Tool::ncu, subject(), "launchgap", places);
  EXPECT_THAT(shell_line(command),
              StartsWith("ncu --nvtx --nvtx-include launchgap@measure/ --launch-count 10 "
                         "--target-processes all --set full --export out/ncu "));
  EXPECT_THAT(behind(command, "--under"), Contains("ncu"));
  EXPECT_THAT(behind(command, "--timeout"), Contains("1800"));
  EXPECT_THAT(behind(command, "-o"), ElementsAre("-o", "out/ncu-session"));
  EXPECT_THAT(command, Not(Contains("out/nsys-session")));
}

TEST(ToolCommands, AFilterMatchesTheCaseAndNoOther) {
  const std::string names[] = {"launch/null/api:driver/mode:idle",
                               "a.b*c+d?e(f)[g]{h}|i^j$k\\l",
                               "matmul/library/size:256/type:fp32/cache:warm"};
  for (const std::string& name : names) {
    const std::regex filter(exact_filter(name));
    for (const std::string& other : names)
      EXPECT_EQ(std::regex_search(other, filter), other == name) << name << " for " << other;
    EXPECT_FALSE(std::regex_search(name + "x", filter));
    EXPECT_FALSE(std::regex_search("x" + name, filter));
  }
  EXPECT_FALSE(std::regex_search("aXb", std::regex(exact_filter("a.b"))));
}

TEST(ToolCommands, AreReadByAShellAsTheyWereMeant) {
  EXPECT_EQ(shell_line({"nsys", "--trace=cuda,nvtx", "a@b/", "x:y"}),
            "nsys --trace=cuda,nvtx a@b/ x:y");
  EXPECT_EQ(shell_line({"a b", "", "it's", "$HOME", "^x$", "a\nb"}),
            "'a b' '' 'it'\\''s' '$HOME' '^x$' 'a\nb'");
}

}  // namespace
}  // namespace launchgap::investigate
