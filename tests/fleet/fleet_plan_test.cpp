#include "harness/fleet/fleet_plan.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "tests/error_of.h"

namespace launchgap::fleet {
namespace {

using namespace testing;

std::vector<std::string> nodes(const std::vector<std::string>& lists, int gpus = 8) {
  std::vector<std::string> all;
  for (const PlannedNode& node : parse_nodes(lists, gpus))
    all.push_back(fmt::format("{}:{}", node.name, node.gpus));
  return all;
}

TEST(NodeLists, AreWrittenAsSchedulersDo) {
  EXPECT_THAT(nodes({"n1"}), ElementsAre("n1:8"));
  EXPECT_THAT(nodes({"n[08-10]"}), ElementsAre("n08:8", "n09:8", "n10:8"));
  EXPECT_THAT(nodes({"n[1,3-4],m1:4", "r[1-2]c[0-1]:2"}),
              ElementsAre("n1:8", "n3:8", "n4:8", "m1:4", "r1c0:2", "r1c1:2", "r2c0:2", "r2c1:2"));
  EXPECT_THAT(nodes({"gpu-[1-2].cluster:4"}, 0), ElementsAre("gpu-1.cluster:4", "gpu-2.cluster:4"));
}

TEST(NodeLists, MistakesAreNamed) {
  for (const auto& [list, what] : std::vector<std::pair<std::string, std::string>>{
           {"n[1-2", "']' is missing"},
           {"n1]", "']' without '['"},
           {"n[1[2]]", "a bracket within brackets"},
           {"n[4-1]", "4-1 counts down"},
           {"n[1-x]", "'1-x' is no number"},
           {"n[]", "'' is no number"},
           {"n[-3]", "'-3' is no number"},
           {"n1,,n2", "a name is missing"},
           {"n1,", "a name is missing"},
           {"", "a name is missing"},
           {"n[1-3],n2", "n2 is named twice"},
           {"n[0-99999999]", "it has too many nodes"},
           {"n[0-999]m[0-999]", "it has too many nodes"},
           {"n 1", "'n 1' is no name of a node"},
           {"-n1", "'-n1' is no name of a node"},
           {"n1;reboot", "'n1;reboot' is no name of a node"},
           {"n1:0", "'0' is no number of GPUs"},
           {"n1:h100", "'h100' is no number of GPUs"}}) {
    EXPECT_THAT(error_of([&, one = list] { nodes({one}); }), HasSubstr(what)) << list;
    EXPECT_THROW(nodes({list}), UsageError) << list;
  }
  EXPECT_THAT(error_of([] { nodes({"n1"}, 0); }), HasSubstr("how many GPUs has n1?"));
  EXPECT_THROW(nodes({"n[1-2]", "n1"}), UsageError);
}

TEST(FleetPlan, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  PlanSettings settings;
  settings.plan = {{{"n1", 8}, {"n2", 4}}, 3};
  settings.output = "/shared/it's";
  write_plan(folder.path() / "plan", settings);
  const FleetPlan plan = read_plan(folder.path() / "plan/plan.json");
  EXPECT_THAT(plan.nodes, SizeIs(2));
  EXPECT_EQ(plan.nodes[1].gpus, 4);
  EXPECT_EQ(plan.sessions, 3);
  EXPECT_THROW(write_plan(folder.path() / "plan", settings), UsageError) << "one is there";
  write_file(folder.path() / "before.json",
             R"({"schema": "launchgap/1", "record": "fleet_plan", "replicates": 4,
                 "nodes": [{"name": "n1", "gpus": 8}]})");
  EXPECT_EQ(read_plan(folder.path() / "before.json").sessions, 4) << "as a file of before says it";
  write_file(folder.path() / "none.json", "{\"record\":\"session\"}");
  EXPECT_THAT(error_of([&] { read_plan(folder.path() / "none.json"); }), HasSubstr("no plan"));
}

}  // namespace
}  // namespace launchgap::fleet
