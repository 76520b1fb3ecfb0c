// Small real programs, watched: what they did with the (fake) GPU, and that they notice nothing of
// it.
#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <poll.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/doctor/programs/process_files.h"
#include "harness/doctor/programs/program_verdict.h"
#include "harness/doctor/programs/watch_program.h"
#include "harness/record/finding_json.h"
#include "tests/doctor/folder.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

const std::string kPrograms = LAUNCHGAP_DOCTOR_PROGRAMS;
const std::string kFakeCuda = LAUNCHGAP_FAKE_CUDA_FOLDER;
const std::string kActs = kPrograms + "/doctor_acts";

/// A system whose /dev has the nodes of one GPU.
class Root {
 public:
  Root() {
    for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia0"})
      folder_.write(std::string("dev/") + node);
    folder_.write("proc/driver/nvidia/version", "NVRM version: …");
  }
  std::string path() const { return folder_.path(); }

 private:
  Folder folder_;
};

struct Watched {
  int exit_code = -1;
  std::string output, errors;
  Json said;  // use, finding, facts
};

/// Watches a program in a process of its own, so that its environment and its descriptors are those
/// of a user.
class Watcher {
 public:
  Watcher(std::vector<std::string> command,
          const Environment& environment,
          const Root& root,
          const std::string& input) {
    for (auto* ends : {&input_, &output_, &errors_, &said_})
      EXPECT_EQ(pipe2(ends->data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      for (int i = 0; i < 3; ++i) dup2(i == 0 ? input_[0] : i == 1 ? output_[1] : errors_[1], i);
      for (auto* ends : {&input_, &output_, &errors_}) close((*ends)[0]), close((*ends)[1]);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      setenv("LAUNCHGAP_SYSTEM_ROOT", root.path().c_str(), 1);
      setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/one_a100.json", 1);
      _exit(watch(std::move(command)));
    }
    close(input_[0]), close(output_[1]), close(errors_[1]), close(said_[1]);
    EXPECT_EQ(write(input_[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
    close(input_[1]);
  }

  pid_t pid() const { return pid_; }
  int output() const { return output_[0]; }

  Watched result() {
    Watched watched;
    std::string said;
    std::map<int, std::string*> open = {
        {output_[0], &watched.output}, {errors_[0], &watched.errors}, {said_[0], &said}};
    while (!open.empty()) {
      std::vector<pollfd> descriptors;
      for (const auto& [descriptor, text] : open) descriptors.push_back({descriptor, POLLIN, 0});
      poll(descriptors.data(), descriptors.size(), 1000);
      for (const pollfd& ready : descriptors) {
        char chunk[65536];
        if (ready.revents == 0) continue;
        const ssize_t n = read(ready.fd, chunk, sizeof(chunk));
        if (n > 0) open[ready.fd]->append(chunk, static_cast<std::size_t>(n));
        if (n <= 0) close(ready.fd), open.erase(ready.fd);
      }
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    watched.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    watched.said = Json::parse(said, nullptr, false);
    return watched;
  }

 private:
  int watch(std::vector<std::string> command) {
    Json said;
    int code = 99;
    try {
      const SystemFiles system = SystemFiles::of_this_system();
      const WatchResult result = watch_program({std::move(command), {}}, system);
      const ProgramVerdict verdict =
          judge_program(result.facts, {system, LoaderCache::of(SystemFiles()), {}});
      code = result.exit_code;
      said = {{"use", name_of(verdict.use)},
              {"finding", to_json(verdict.finding)},
              {"facts", to_json(result.facts)},
              {"not_started", result.not_started}};
    } catch (const std::exception& failed) {
      said = {{"failed", failed.what()}};
    }
    const std::string text = to_line(said);
    (void)!write(said_[1], text.data(), text.size());
    return code;
  }

  std::array<int, 2> input_{}, output_{}, errors_{}, said_{};
  pid_t pid_ = -1;
};

Watched watch(std::vector<std::string> command,
              const Environment& environment = {},
              const std::string& input = "") {
  const Root root;
  return Watcher(std::move(command), environment, root, input).result();
}

std::string code_of(const Watched& watched) {
  return watched.said.is_object() && watched.said.contains("finding")
             ? watched.said["finding"]["code"].get<std::string>()
             : watched.said.dump();
}

TEST(Watch, TellsProgramsApart) {
  struct Case {
    const char* name;
    std::string command;  // doctor_acts unless it begins with a path
    Environment environment;
    const char* outcome;  // the exit code, what it used, the finding
    const char* evidence;
  };
  const auto libraries_in = [](const std::string& folders) -> Environment {
    return {{"LD_LIBRARY_PATH", folders}};
  };
  const Environment fake = libraries_in(kFakeCuda);
  const Case cases[] = {
      {"uses the GPU",
       "init context sleep 300",
       fake,
       "0 on-gpu program-uses-gpu",
       "has /dev/nvidia-uvm, /dev/nvidia0 in its memory"},
      {"misses an optional library and uses the GPU",
       "open libcupti.so.99 open libcusolver.so.10 init context sleep 300",
       fake,
       "0 on-gpu program-uses-gpu",
       "libcuda.so.1 is"},
      {"a library is missing",
       "init open libcupti.so.99 open libcusolver.so.10 sleep 100",
       fake,
       "0 on-cpu-silently program-library-missing",
       "opens libcusolver.so.10"},
      {"a library is missing and it says so",
       "init need libcusolver.so.10",
       fake,
       "3 on-cpu program-library-missing",
       "libcusolver.so.10 was not found"},
      {"the driver is missing, of which the rest follows",
       "open libcudnn.so.99 open libcuda.so.1 sleep 50",
       libraries_in("/nonexistent"),
       "0 on-cpu-silently program-library-missing",
       "libcuda.so.1 was not found"},
      {"a linked library is missing",
       kPrograms + "/doctor_linked",
       {},
       "127 on-cpu program-library-missing",
       "is linked with libcudart.so.10.1"},
      {"what a library needs is missing",
       "init open libcudnn.so.7 sleep 60",
       libraries_in(kFakeCuda + ":" + kPrograms + "/cudnn"),
       "0 on-cpu-silently program-library-missing",
       "cudnn/libcudnn.so.7 is linked with libcudart.so.10.1"},
      {"shadowed by the stub",
       "init sleep 100",
       libraries_in(kPrograms + "/stubs:" + kFakeCuda),
       "0 on-cpu-silently program-library-shadowed",
       "without it the loader takes"},
      {"never tries", "sleep 50", fake, "0 on-cpu program-never-asks", "looked for none"},
      {"never tries, at once", "", fake, "0 on-cpu program-never-asks", ""},
      {"loads the runtime and never the driver",
       "open libcudart.so.10.1 sleep 50",
       libraries_in(kPrograms + "/runtime"),
       "0 on-cpu program-never-asks",
       "never asked for the driver"},
      {"creates no context",
       "init sleep 200",
       fake,
       "0 on-cpu-silently program-has-no-context",
       "it held /dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl open"},
      {"its GPUs are hidden",
       "init context sleep 200",
       {{"LD_LIBRARY_PATH", kFakeCuda}, {"CUDA_VISIBLE_DEVICES", ""}},
       "0 on-cpu-silently program-has-no-context",
       "CUDA_VISIBLE_DEVICES hides all"},
      {"its children do the work",
       "fork 2 init context sleep 300",
       fake,
       "0 on-gpu program-uses-gpu",
       "libcuda.so.1 is"},
      {"killed", "init context sleep 100 signal 9", fake, "137 on-gpu program-uses-gpu", ""},
      {"aborts without a GPU",
       "init sleep 100 signal 6",
       fake,
       "134 on-cpu program-has-no-context",
       ""},
      {"static",
       kPrograms + "/doctor_still_static 150",
       fake,
       "0 on-cpu program-never-asks",
       "statically linked"},
      {"static, at once",
       kPrograms + "/doctor_still_static",
       fake,
       "0 unknown program-not-seen",
       ""},
      {"the loader is being traced already",
       "init context sleep 300",
       {{"LD_LIBRARY_PATH", kFakeCuda}, {"LD_DEBUG", "none"}},
       "0 on-gpu program-uses-gpu",
       "was left alone"},
  };
  const auto expect = [](const Watched& watched, const char* outcome, const char* evidence) {
    EXPECT_EQ(
        fmt::format("{} {} {}", watched.exit_code, watched.said.value("use", ""), code_of(watched)),
        outcome)
        << watched.errors << watched.said.dump(2);
    EXPECT_THAT(watched.said["finding"].dump(), HasSubstr(evidence));
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::istringstream words((c.command.starts_with("/") ? "" : kActs + " ") + c.command);
    expect(watch({std::istream_iterator<std::string>(words), {}}, c.environment),
           c.outcome,
           c.evidence);
  }
  SCOPED_TRACE("behind a shell");
  expect(watch({"sh", "-c", kActs + " init context sleep 300; exit 7"}, fake),
         "7 on-gpu program-uses-gpu",
         "libcuda.so.1 is");
}

TEST(Watch, SaysWhatToDoAboutAStub) {
  const Watched watched = watch({kActs, "init", "sleep", "100"},
                                {{"LD_LIBRARY_PATH", kPrograms + "/stubs:" + kFakeCuda}});
  const Json& finding = watched.said["finding"];
  EXPECT_EQ(finding["severity"], "prevents");
  EXPECT_THAT(finding["sentence"].get<std::string>(), HasSubstr(kPrograms + "/stubs/libcuda.so.1"));
  EXPECT_THAT(finding["remedy"].get<std::string>(),
              HasSubstr("export LD_LIBRARY_PATH=" + kFakeCuda));
  EXPECT_THAT(watched.errors, HasSubstr("cuInit: 34"));
}

TEST(Watch, LeavesOutputInputAndDescriptorsAlone) {
  const Watched big = watch({kActs, "print", "1048576"});
  EXPECT_EQ(big.output.size(), 1048576);
  EXPECT_EQ(big.errors, "");
  EXPECT_EQ(watch({kActs, "copy"}, {}, "in and out\n").output, "in and out\n");
  const Watched shell = watch({"sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(shell.output, "out\n");
  EXPECT_EQ(shell.errors, "err\n");
}

TEST(Watch, TheLoadersWordsNeverGetIntoAProgramsFiles) {
  for (const char* program : {"sh", "bash"}) {
    if (std::system(fmt::format("command -v {} >/dev/null", program).c_str()) != 0) continue;
    for (int descriptor = 3; descriptor < 10; ++descriptor) {
      const Folder folder;
      const std::string file = folder.path() / "data";
      const Watched watched =
          watch({program,
                 "-c",
                 fmt::format("exec {0}>{1}; echo data >&{0}; true | cat", descriptor, file)});
      EXPECT_EQ(watched.exit_code, 0);
      EXPECT_EQ(folder.copy_of(file), "data\n") << program << " " << descriptor;
    }
  }
}

TEST(Watch, LeavesNothingBehind) {
  const Folder folder;
  const Watched watched =
      watch({kActs, "open", "libcuda.so.1"}, {{"TMPDIR", folder.path().string()}});
  EXPECT_EQ(watched.exit_code, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Watch, EndsAsAShellWould) {
  const Folder folder;
  const std::string script = folder.write("script", "echo started\n");
  const struct {
    std::string command;
    int exit_code;
    const char* why;
  } cases[] = {
      {"no-such-command-at-all", 127, "command not found"},
      {folder.path() / "none", 127, "No such file"},
      {script, 126, "Permission denied"},
      {folder.path(), 126, "Permission denied"},
      {"bad\nname", 127, "bad\\nname: command not found"},
  };
  for (const auto& c : cases) {
    const Watched watched = watch({c.command});
    EXPECT_EQ(watched.exit_code, c.exit_code) << c.command;
    EXPECT_THAT(watched.said.value("not_started", ""), HasSubstr(c.why));
  }
  EXPECT_THROW(watch_program({}, SystemFiles()), UsageError);
  EXPECT_THROW(watch_program({{""}, {}}, SystemFiles()), UsageError);
  // A script without a first line is the shell's, as for a shell.
  chmod(script.c_str(), 0755);
  EXPECT_EQ(watch({script}).output, "started\n");
}

TEST(Watch, HandsSignalsOn) {
  const auto exit_code_after = [](int signal, std::vector<std::string> command) {
    const Root root;
    Watcher watcher(std::move(command), {}, root, "");
    char ready[6];
    EXPECT_EQ(read(watcher.output(), ready, sizeof(ready)), 6);
    kill(watcher.pid(), signal);
    return watcher.result().exit_code;
  };
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
    EXPECT_EQ(exit_code_after(signal, {kActs, "await", std::to_string(signal)}), 40 + signal);
  // A program that does not handle it ends by it.
  EXPECT_EQ(exit_code_after(SIGTERM, {"sh", "-c", "echo ready; exec sleep 30"}), 128 + SIGTERM);
}

TEST(Watch, PythonByCtypes) {
  if (std::system("python3 -c 'import ctypes' >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const std::string opens =
      "import ctypes,time\n"
      "cuda = ctypes.CDLL('libcuda.so.1')\n"
      "print(cuda.cuInit(0))\n";
  const std::string context =
      "handle = ctypes.c_void_p()\n"
      "print(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0))\n"
      "time.sleep(0.3)\n";
  const Environment fake = {{"LD_LIBRARY_PATH", kFakeCuda}};
  const Watched on_gpu = watch({"python3", "-c", opens + context}, fake);
  EXPECT_EQ(on_gpu.output, "0\n0\n");
  EXPECT_EQ(code_of(on_gpu), "program-uses-gpu");
  const Watched missing =
      watch({"python3",
             "-c",
             "import ctypes\ntry: ctypes.CDLL('libcusolver.so.10')\nexcept OSError: pass"},
            fake);
  EXPECT_EQ(code_of(missing), "program-library-missing");
  EXPECT_EQ(missing.said["use"], "on-cpu-silently");
}

TEST(Watch, TellsOnlyVariablesThatConcernTheGpu) {
  const Watched watched =
      watch({kActs, "sleep", "50"}, {{"SECRET_TOKEN", "hush"}, {"CUDA_VISIBLE_DEVICES", "0"}});
  EXPECT_THAT(watched.said.dump(), Not(HasSubstr("hush")));
  EXPECT_EQ(watched.said["facts"]["processes"][0]["environment"]["CUDA_VISIBLE_DEVICES"], "0");
}

TEST(ProcessId, IsAPositiveNumberOfLinux) {
  EXPECT_EQ(parse_pid("1"), 1);
  EXPECT_EQ(parse_pid("4194304"), 4194304);
  const auto expect_refused = [](const char* text, const char* why) {
    EXPECT_THAT([&] { parse_pid(text); }, ThrowsMessage<UsageError>(HasSubstr(why))) << text;
  };
  for (const char* const text : {"0", "-1", "abc", "", "12x", " 12", "1.5"})
    expect_refused(text, "a positive number is");
  for (const char* const text : {"4194305", "99999999999999999999"})
    expect_refused(text, "they go up to 4194304");
  expect_refused("\x1b[2J", "\\x1b");
}

void expect_refused(pid_t pid, const SystemFiles& system, const char* why) {
  EXPECT_THAT([&] { look_at_program(pid, system, {}); }, ThrowsMessage<Error>(HasSubstr(why)));
}

TEST(RunningProcess, OfATestsRoot) {
  const Folder root;
  const auto process = [&](int pid, const std::string& status, const std::string& maps) {
    const std::string folder = fmt::format("proc/{}", pid);
    root.write(folder + "/status", status);
    root.write(folder + "/maps", maps);
    root.write(folder + "/cmdline", std::string("python\0train\x1b.py\0", 17));
    root.write(folder + "/environ", std::string("CUDA_VISIBLE_DEVICES=1\0HOME=/x\0torn", 35));
    root.make_folder(folder + "/fd");
  };
  const std::string alive = "State:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmSize:\t1 kB\n";
  process(10,
          alive,
          "7f00-7f01 rw-s 00000000 00:05 620    /dev/nvidia0\n"
          "7f02-7f03 r-xp 00000000 08:01 55     /usr/lib/libcuda.so.580.65.06\n"
          "7f04-7f05 r-xp 00000000 08:01 56     /opt/a b/libcublas.so.12 (deleted)\n"
          "7f06-7f07 rw-p 00000000 00:00 0      [heap]\n7f08\n\n- - -\n");
  fs::create_symlink("/dev/nvidiactl", root.path() / "proc/10/fd/5");
  fs::create_symlink("/dev/null", root.path() / "proc/10/fd/6");
  fs::create_symlink("socket:[12]", root.path() / "proc/10/fd/7");
  process(11, "State:\tZ (zombie)\n", "");
  process(12, "State:\tI (idle)\nKthread:\t1\n", "");
  process(13, alive, "");
  process(14, alive, std::string("\0\xff\n\n   ", 7) + std::string(1 << 20, '/'));
  const SystemFiles system(root.path());

  const ProgramFacts program = look_at_program(10, system, [] { return std::set<pid_t>{9}; });
  const ProcessFacts& facts = program.processes.at(0);
  EXPECT_EQ(facts.command, "python train\\x1b.py");
  EXPECT_TRUE(facts.had_context());
  EXPECT_FALSE(facts.listed_by_nvml);
  EXPECT_EQ(facts.looks_with_driver, 2);
  EXPECT_THAT(facts.nodes_open, ElementsAre("/dev/nvidiactl"));
  ASSERT_EQ(facts.libraries.size(), 2);
  EXPECT_EQ(facts.libraries[1].path, "/opt/a b/libcublas.so.12");
  EXPECT_TRUE(facts.libraries[1].deleted);
  EXPECT_EQ(facts.environment, (Environment{{"CUDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_TRUE(look_at_program(14, system, [] { return std::set<pid_t>{14}; }).had_context());

  // As one that calls execve just then.
  process(16, alive, "");
  std::thread execve([&] {
    usleep(20'000);
    root.write("proc/16/maps", "7f00-7f01 r-xp 00000000 08:01 56     /opt/program\n");
  });
  EXPECT_NO_THROW(look_at_program(16, system, {}));
  execve.join();

  for (const auto& [pid, why] : {std::pair(11, "process 11 has ended; it is a zombie"),
                                 std::pair(12, "process 12 is a thread of the kernel"),
                                 std::pair(13, "process 13"),
                                 std::pair(15, "there is no process 15")})
    expect_refused(pid, system, why);
}

TEST(RunningProcess, OfThisMachine) {
  // A root that has no processes of its own describes a driver: the real ones are meant.
  const Root root;
  const SystemFiles system(root.path());
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", kFakeCuda.c_str(), 1);
    setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/one_a100.json", 1);
    setenv("LAUNCHGAP_SYSTEM_ROOT", root.path().c_str(), 1);
    execl(kActs.c_str(), "acts", "init", "context", "sleep", "30000", nullptr);
    _exit(9);
  }
  ProgramFacts facts;
  for (int i = 0; i < 20 && !facts.had_context(); ++i) facts = look_at_program(child, system, {});
  EXPECT_TRUE(facts.had_context());
  EXPECT_EQ(judge_program(facts, {system, {}, {}}).finding.code, "program-uses-gpu");
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, child, &info, WEXITED | WNOWAIT);
  expect_refused(child, system, "zombie");
  waitpid(child, nullptr, 0);
  EXPECT_THROW(look_at_program(child, system, {}), Error);
}

}  // namespace
}  // namespace launchgap::doctor
