// Verdicts from facts: what can hardly be made to happen here.
#include "harness/doctor/programs/program_verdict.h"

#include <csignal>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/record/finding_json.h"
#include "tests/doctor/folder.h"
#include "tests/sentences/said.h"

namespace launchgap::doctor {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

const fs::path kPrograms = LAUNCHGAP_DOCTOR_PROGRAMS;
using Rule = PathOrigin::Rule;

LoaderSearch found(const std::string& name,
                   const std::string& path,
                   PathOrigin origin = {Rule::cache, "", ""}) {
  LoaderSearch search;
  search.wanted = name;
  search.requested_by = "./train";
  search.dlopened = search.searched = true;
  search.attempts = {{path, origin}};
  search.found = path;
  search.origin = origin;
  return search;
}

LoaderSearch missing(const std::string& name) {
  LoaderSearch search;
  search.wanted = name;
  search.requested_by = "./train";
  search.dlopened = search.searched = true;
  search.attempts = {{"/usr/lib/" + name, {Rule::default_folder, "/usr/lib", ""}}};
  return search;
}

/// A program of one process that was looked at ten times, with the driver loaded.
ProgramFacts program() {
  ProgramFacts facts;
  facts.command = "./train";
  facts.traced = true;
  facts.exit_code = 0;
  ProcessFacts& process = facts.processes.emplace_back();
  process.pid = 1;
  process.looks = process.looks_with_driver = 10;
  process.loader_told = true;
  process.searches = {found("libcuda.so.1", "/usr/lib/libcuda.so.1")};
  process.libraries = {
      {"libcuda.so.1", "/usr/lib/libcuda.so.580.65.06", {Rule::cache, "", ""}, false}};
  return facts;
}

const Surroundings kNowhere{SystemFiles("/nonexistent"), {}, {}};

/// The same, and it has nothing to do with the driver.
ProgramFacts program_without_driver() {
  ProgramFacts facts = program();
  ProcessFacts& process = facts.processes[0];
  process.looks_with_driver = 0;
  process.libraries.clear();
  process.searches.clear();
  return facts;
}

ProgramVerdict judged(const ProgramFacts& facts, const Surroundings& surroundings = kNowhere) {
  ProgramVerdict verdict = judge_program(facts, surroundings);
  verdict.finding = said({verdict.finding}).front();
  const std::string shown = text(facts, verdict, {});
  const std::size_t begin = shown.find(": ") + 2;
  said("program", name_of(verdict.use), shown.substr(begin, shown.find('\n', begin) - begin));
  return verdict;
}

std::string verdict_of(const ProgramFacts& facts) {
  const ProgramVerdict verdict = judged(facts);
  return fmt::format("{} {}", name_of(verdict.use), verdict.finding.code);
}

TEST(ProgramVerdict, ContextIsMappedOrListed) {
  struct Case {
    const char* node;
    bool context;
  };
  for (const Case& c : {Case{"/dev/nvidia0", true},
                        {"/dev/nvidia15", true},
                        {"/dev/nvidia-uvm", true},
                        {"/dev/nvidiactl", false},
                        {"/dev/nvidia-uvm-tools", false},
                        {"/dev/nvidia", false},
                        {"/dev/nvidia-modeset", false}}) {
    ProgramFacts facts = program();
    facts.processes[0].nodes_mapped = {c.node};
    EXPECT_EQ(verdict_of(facts),
              c.context ? "on-gpu program-uses-gpu" : "on-cpu-silently program-has-no-context")
        << c.node;
  }
  ProgramFacts facts = program();
  facts.processes[0].listed_by_nvml = true;
  EXPECT_EQ(verdict_of(facts), "on-gpu program-uses-gpu");
}

TEST(ProgramVerdict, SaysWhetherItStillRuns) {
  for (const char* const node : {"/dev/nvidia0", ""}) {
    ProgramFacts facts = *node ? program() : program_without_driver();
    facts.exit_code.reset();
    if (*node) facts.processes[0].nodes_mapped = {node};
    EXPECT_THAT(text(facts, judged(facts), {}),
                HasSubstr(*node ? "It is on the GPU." : "It is on the CPU."));
  }
}

TEST(ProgramVerdict, SilentIsWhatDidNotFailByItself) {
  const struct {
    std::optional<int> exit_code, signal;
    const char* use;
  } cases[] = {
      {0, {}, "on-cpu-silently"},
      {{}, {}, "on-cpu-silently"},  // it still runs
      {1, {}, "on-cpu"},
      {{}, SIGABRT, "on-cpu"},
      {{}, SIGINT, "on-cpu-silently"},
      {130, {}, "on-cpu-silently"},  // the user stopped it
      {{}, SIGSEGV, "on-cpu"},
  };
  for (const auto& c : cases) {
    ProgramFacts facts = program();
    facts.exit_code = c.exit_code;
    facts.signal = c.signal;
    EXPECT_EQ(verdict_of(facts), fmt::format("{} program-has-no-context", c.use));
  }
}

TEST(ProgramVerdict, AMissingLibraryIsTheCauseOnlyIfNothingTakesItsPlace) {
  struct Case {
    std::vector<LoaderSearch> searches;
    const char *verdict, *cause;
  };
  const std::string missing_code = "on-cpu-silently program-library-missing";
  LoaderSearch linked = missing("libcupti.so.12");
  linked.dlopened = false;
  LoaderSearch given_back = found("libcudnn.so.8", "/opt/libcudnn.so.8");
  given_back.unloaded = true;
  LoaderSearch zlib = missing("libz.so.1");
  zlib.requested_by = "/opt/libcudnn.so.8";
  zlib.dlopened = false;
  const Case cases[] = {
      {{missing("libcusolver.so.10")}, missing_code.c_str(), "libcusolver.so.10"},
      // In the order of need, not of asking.
      {{missing("libcusolver.so.10"), missing("libcudart.so.11.0")},
       missing_code.c_str(),
       "libcudart.so.11.0"},
      // Probed for: another version, another place, optional ones.
      {{missing("libcudnn.so.9"), found("libcudnn.so.8", "/usr/lib/libcudnn.so.8")},
       "on-cpu-silently program-has-no-context",
       ""},
      {{missing("libnvinfer.so.7"), missing("libcupti.so.12")},
       "on-cpu-silently program-has-no-context",
       ""},
      {{linked}, missing_code.c_str(), "libcupti.so.12"},
      {{given_back, zlib}, missing_code.c_str(), "libz.so.1"},
  };
  for (const Case& c : cases) {
    ProgramFacts facts = program();
    for (const LoaderSearch& search : c.searches) facts.processes[0].searches.push_back(search);
    EXPECT_EQ(verdict_of(facts), c.verdict);
    EXPECT_THAT(judged(facts).finding.sentence, HasSubstr(c.cause));
  }
}

TEST(ProgramVerdict, TellsWhereAMissingLibraryWouldBe) {
  const Folder root;
  const std::string library = root.copy_of(kPrograms / "stubs/libcuda.so.1");
  root.write("usr/local/cuda-11.0/lib64/libcusolver.so.10", library);
  chmod(root.write("venv/bin/python3").c_str(), 0755);
  root.write("venv/pyvenv.cfg", "home = /usr/bin\n");
  root.write("venv/lib/python3.9/site-packages/nvidia/cusolver/lib/libcusolver.so.10", library);
  ProgramFacts facts = program();
  facts.processes[0].searches.push_back(missing("libcusolver.so.10"));
  facts.processes[0].searches.push_back(missing("libcusparse.so.10"));
  const LoaderCache cache = LoaderCache::parse(
      "\tlibcusolver.so.11 (libc6,x86-64) => /usr/local/cuda/lib64/libcusolver.so.11\n");
  const Finding finding =
      judged(facts, {SystemFiles(root.path()), cache, {{"VIRTUAL_ENV", "/venv"}}}).finding;
  const std::string all = to_json(finding).dump();
  EXPECT_THAT(
      all,
      HasSubstr(
          "it is /usr/local/cuda-11.0/lib64/libcusolver.so.10, where the loader does not look"));
  const std::string wheel = "/venv/lib/python3.9/site-packages/nvidia/cusolver/lib";
  EXPECT_THAT(all, HasSubstr(wheel + "/libcusolver.so.10, where"));
  EXPECT_THAT(all, HasSubstr("the loader has libcusolver.so.11, another version"));
  EXPECT_EQ(finding.remedy,
            "Let the loader find it: export LD_LIBRARY_PATH=" + wheel + ":$LD_LIBRARY_PATH");
  EXPECT_THAT(finding.symptoms, ::testing::ElementsAre("libcusparse.so.10 was not found either"));
}

TEST(ProgramVerdict, ABrokenFileIsTheCause) {
  const Folder folder;
  const std::string broken =
      folder.write("libcudnn.so.8", "version https://git-lfs.github.com/spec/v1\n");
  ProgramFacts facts = program();
  LoaderSearch search = missing("libcudnn.so.8");
  search.attempts = {{broken, {Rule::ld_library_path, folder.path(), ""}}};
  facts.processes[0].searches.push_back(search);
  const ProgramVerdict verdict = judged(facts);
  EXPECT_EQ(verdict.finding.code, "library-broken");
  EXPECT_THAT(verdict.finding.evidence[0].name, HasSubstr("it is a Git LFS pointer"));
}

TEST(ProgramVerdict, AnOlderCopyShadowsANewerOne) {
  const Folder folder;
  const std::string library = folder.copy_of(kPrograms / "stubs/libcuda.so.1");
  const auto install =
      [&](const std::string& at, const std::string& name, const std::string& version) {
        folder.write(at + "/" + name + version, library);
        fs::create_symlink(name + version, folder.path() / at / name);
      };
  install("old", "libcudnn.so.8", ".0.5");
  install("new", "libcudnn.so.8", ".9.7");
  install("470", "libcuda.so.1", ".470");
  install("580", "libcuda.so.1", ".580");
  const std::string at = folder.path();
  const auto program_with =
      [&](const std::string& name, const std::string& first, const std::string& then) {
        ProgramFacts facts = program();
        ProcessFacts& process = facts.processes[0];
        if (name.starts_with("libcuda")) process.libraries.clear(), process.searches.clear();
        process.searches.push_back(found(
            name, at + "/" + first + "/" + name, {Rule::ld_library_path, at + "/" + first, ""}));
        process.environment["LD_LIBRARY_PATH"] = at + "/" + first;
        const LoaderCache cache =
            LoaderCache::parse("\t" + name + " (libc6) => " + at + "/" + then + "/" + name + "\n");
        return judged(facts, {SystemFiles(), cache, {}}).finding;
      };
  EXPECT_EQ(program_with("libcudnn.so.8", "old", "new").code, "program-library-shadowed");
  EXPECT_EQ(program_with("libcudnn.so.8", "old", "new").severity, Severity::distorts);
  EXPECT_EQ(program_with("libcudnn.so.8", "new", "old").code, "program-has-no-context");
  EXPECT_EQ(program_with("libcudnn.so.8", "old", "old").code, "program-has-no-context");
  EXPECT_EQ(program_with("libcuda.so.1", "470", "580").severity, Severity::prevents);
  EXPECT_EQ(program_with("libcuda.so.1", "470", "580").code, "program-library-shadowed");
}

TEST(ProgramVerdict, SaysWhatAProgramThatNeverAskedHasLoaded) {
  ProgramFacts facts = program_without_driver();
  EXPECT_EQ(verdict_of(facts), "on-cpu program-never-asks");
  facts.traced = false;
  EXPECT_EQ(verdict_of(facts), "on-cpu program-never-asks");
  facts.processes[0].searches = {found("libcudart.so.12", "/usr/lib/libcudart.so.12")};
  EXPECT_EQ(verdict_of(facts), "on-cpu program-never-asks");
  // Whether it looked for the driver, only the loader's account tells.
  EXPECT_THAT(judged(facts).finding.sentence, HasSubstr("but not the driver"));
  facts.traced = true;
  EXPECT_THAT(judged(facts).finding.sentence, HasSubstr("but never asked for the driver"));
}

TEST(ProgramVerdict, SaysWhyItGotNoContext) {
  ProgramFacts hidden = program();
  hidden.processes[0].environment["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_EQ(verdict_of(hidden), "on-cpu-silently program-has-no-context");
  ProgramFacts none = program_without_driver();
  none.processes[0].searches = {missing("libcuda.so.1")};
  EXPECT_EQ(verdict_of(none), "on-cpu-silently program-library-missing");
  ProgramFacts stub = program();
  stub.exit_code.reset();  // it still runs
  stub.processes[0].libraries.clear();
  stub.processes[0].searches = {found("libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so.1")};
  EXPECT_EQ(verdict_of(stub), "on-cpu-silently program-library-shadowed");
}

TEST(ProgramVerdict, UnknownIsSaidAsUnknown) {
  EXPECT_EQ(verdict_of({}), "unknown program-not-seen");
  ProgramFacts quick = program();
  quick.processes[0].looks = quick.processes[0].looks_with_driver = 1;
  EXPECT_EQ(verdict_of(quick), "unknown program-not-seen");
  ProgramFacts wsl = program();
  wsl.processes[0].nodes_open = {"/dev/dxg"};
  EXPECT_EQ(verdict_of(wsl), "unknown program-not-seen");
  ProgramFacts tegra = program();
  tegra.processes[0].nodes_open = {"/dev/nvhost-ctrl-gpu"};
  EXPECT_EQ(verdict_of(tegra), "unknown program-not-seen");
  ProgramFacts limited = program();
  limited.limitations = {"Something is not known."};
  EXPECT_EQ(judged(limited).finding.evidence.back().name, "Something is not known.");
}

TEST(ProgramVerdict, IsPrintableWhateverItIsAbout) {
  ProgramFacts facts = program();
  LoaderSearch evil = missing("libcusolver.so.\x1b[31m\n");
  evil.requested_by = "\xff/evil\n";
  facts.processes[0].searches.push_back(evil);
  facts.processes[0].environment["CUDA_VISIBLE_DEVICES"] = "\x1b]0;";
  facts.processes[0].nodes_open = {"/dev/nvidia\n"};
  const std::string verdict = to_json(judged(facts).finding).dump();
  const std::string all = verdict + to_json(facts).dump();
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_EQ(all.find("\\u001b"), std::string::npos);
  EXPECT_EQ(all.find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace launchgap::doctor
