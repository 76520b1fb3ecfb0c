#include "harness/measure/cpu_counters.h"

#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/output_file.h"

namespace launchgap {
namespace {

using namespace testing;
namespace fs = std::filesystem;

/// Files of a system, as a kernel writes them.
struct RecordedSystem {
  void file(const std::string& path, const std::string& text) const {
    const fs::path place = folder.path().string() + path;
    fs::create_directories(place.parent_path());
    write_file(place, text);
  }
  void cpu(int number, const std::string& name, const std::string& text) const {
    file("/sys/devices/system/cpu/cpu" + std::to_string(number) + "/" + name, text + "\n");
  }
  /// /proc/stat of two cores with two threads each: of CPU 2, whose sibling is CPU 0.
  void stat(long sibling_user, long stolen) const {
    file("/proc/stat",
         "cpu  100 0 50 10000 5 0 1 " + std::to_string(stolen) + " 0 0\n" + "cpu0 " +
             std::to_string(sibling_user) + " 10 20 9000 1 2 3 0 0 0\n" +
             "cpu1 0 0 0 0 0 0 0 0 0 0\n" + "cpu2 5000 0 0 10 0 0 0 " + std::to_string(stolen) +
             " 0 0\n" + "cpu20 1 1 1 1 1 1 1 999999 0 0\nintr 1\n");
  }
  SystemFiles system() const { return SystemFiles(folder.path()); }

  const TemporaryFolder folder;
};

/// A server whose cores have two threads and four idle states, beside its polling.
struct Server : RecordedSystem {
  Server() {
    stat(100, 7);
    cpu(2, "topology/thread_siblings_list", "0,2");
    cpu(2, "cpufreq/scaling_cur_freq", "3400123");
    int state = 0;
    for (const auto& [name, time_us] :
         {std::pair("POLL", 11), {"C1", 222}, {"C1E", 3'000}, {"C6", 40'000'000}}) {
      cpu(2, "cpuidle/state" + std::to_string(state) + "/name", name);
      cpu(2, "cpuidle/state" + std::to_string(state++) + "/time", std::to_string(time_us));
    }
  }
};

TEST(CpuCounters, AreOfTheCpuItsCoreAndItsIdleStates) {
  const Server server;
  const double tick_ms = 1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const CpuCounters counters = read_cpu_counters(server.system(), 2);
  EXPECT_EQ(counters.stolen_ms, 7 * tick_ms);
  EXPECT_EQ(counters.sibling_busy_ms, (100 + 10 + 20 + 2 + 3) * tick_ms);
  EXPECT_EQ(counters.deep_idle_us, 3'000 + 40'000'000) << "deeper than C1";
  EXPECT_EQ(counters.mhz, 3400.123);
  EXPECT_THAT(missing_cpu_counters(server.system(), 2), IsEmpty());
}

TEST(CpuCounters, OfASiblingGrowAsItWorks) {
  const Server server;
  const double before = *read_cpu_counters(server.system(), 2).sibling_busy_ms;
  server.stat(100 + 25, 7);
  const double tick_ms = 1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(*read_cpu_counters(server.system(), 2).sibling_busy_ms - before, 25 * tick_ms);
}

TEST(CpuCounters, ThatAVirtualMachineDoesNotHaveAreMissingWithTheReason) {
  const RecordedSystem machine;
  machine.stat(100, 7);
  machine.cpu(2, "topology/thread_siblings_list", "2");
  const CpuCounters counters = read_cpu_counters(machine.system(), 2);
  EXPECT_TRUE(counters.stolen_ms);
  EXPECT_FALSE(counters.sibling_busy_ms || counters.deep_idle_us || counters.mhz);
  EXPECT_THAT(
      missing_cpu_counters(machine.system(), 2),
      ElementsAre(Pair("cpu_mhz", HasSubstr("cpu2/cpufreq is not there")),
                  Pair("deep_idle_us", HasSubstr("cpu2/cpuidle is not there: the kernel, or")),
                  Pair("sibling_busy_ms", "CPU 2 shares its core with no other")));
}

TEST(CpuCounters, OfNothingAreNone) {
  const RecordedSystem nothing;
  EXPECT_THAT(missing_cpu_counters(nothing.system(), 0), SizeIs(4));
}

TEST(CpuCounters, ThatMakeNoSenseAreMissing) {
  const Server server;
  server.cpu(2, "topology/thread_siblings_list", "0,2,5-");
  server.cpu(2, "cpuidle/state2/time", "-3");
  server.cpu(2, "cpufreq/scaling_cur_freq", "<unknown>");
  server.file("/proc/stat", "cpu2 a b c\n");
  const CpuCounters counters = read_cpu_counters(server.system(), 2);
  EXPECT_FALSE(counters.stolen_ms || counters.sibling_busy_ms || counters.deep_idle_us ||
               counters.mhz);
  EXPECT_THAT(missing_cpu_counters(server.system(), 2),
              Contains(Pair("deep_idle_us", HasSubstr("has no idle state that is deeper"))));
}

}  // namespace
}  // namespace launchgap
