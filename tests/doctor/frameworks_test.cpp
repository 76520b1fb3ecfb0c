// The questions that users really have, and their answers.

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/what_if.h"
#include "tests/sentences/said.h"

namespace launchgap::doctor {
namespace {

using Have = Installation;

Have without_gpu() {
  Have have;
  have.gpus_known = have.driver_known = have.libraries_known = true;
  return have;
}

using namespace testing;

Version version(const std::string& text) {
  return *Version::parse(text);
}

InstalledGpu gpu(std::string name,
                 Capability capability,
                 std::string id = "",
                 bool listed = false) {
  return {std::move(name), capability, std::move(id), listed};
}

std::vector<std::string> codes(const FrameworkAnswer& answer) {
  std::vector<std::string> codes;
  for (const Finding& finding : answer.findings) codes.push_back(finding.code);
  return codes;
}

FrameworkAnswer answer_to(const WhatIf& question, const Installation& machine) {
  FrameworkAnswer answer = what_if(question, machine);
  answer.findings = said(std::move(answer.findings));
  return answer;
}

struct Case {
  WhatIf question;
  std::string answer;         // the outcome, and the codes of the findings: "fails: driver-too-old"
  std::string sentence = {};  // part of the first finding's
  std::string remedy = {};    // part of it
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const FrameworkAnswer answer = answer_to(c.question, Have{});
    SCOPED_TRACE(text(answer));
    ASSERT_FALSE(answer.gpus.empty());
    std::string found(name_of(answer.gpus.front().outcome));
    for (const Finding& finding : answer.findings)
      found += (&finding == &answer.findings.front() ? ": " : " ") + finding.code;
    EXPECT_EQ(found, c.answer);
    if (answer.findings.empty()) continue;
    EXPECT_THAT(answer.findings.front().sentence, HasSubstr(c.sentence));
    EXPECT_THAT(answer.findings.front().remedy, HasSubstr(c.remedy));
  }
}

WhatIf ask(std::string framework,
           std::string gpu,
           std::string driver = "",
           std::string cuda = "",
           std::string cudnn = "") {
  return {
      std::move(framework), {std::move(gpu)}, std::move(driver), std::move(cuda), std::move(cudnn)};
}

const std::string kNoCode = "framework-has-no-code-for-gpu";

TEST(Frameworks, KeplerWithTensorFlow) {
  check({
      {ask("tensorflow", "K20m"),
       "silent-cpu: framework-has-no-code-for-gpu",
       "has no code for K20m (3.5)",
       "pip install 'tensorflow==2.11.*' (TensorFlow 2.11 with CUDA 11.2"},
      {ask("tensorflow", "K40m"),
       "silent-cpu: framework-has-no-code-for-gpu",
       "without an error",
       "450.80.02 to R470"},
      {ask("tensorflow-gpu==1.7", "K20m"), "works"},
      {ask("tensorflow-gpu==1.7.0", "K40m"), "works"},
      {ask("tensorflow==2.4.0", "K20m"), "works"},
      {ask("tensorflow==2.4.0", "K40m"), "works"},
      {ask("tensorflow==2.13", "K40m"), "works"},
      {ask("tensorflow==2.14", "K40m"), "unknown"},
      {ask("tensorflow==2.15", "K40m"), "silent-cpu: framework-has-no-code-for-gpu"},
  });
}

TEST(Frameworks, TensorFlowOpensTheNamesOfItsOwnToolkit) {
  check({
      {ask("tensorflow==2.4.0", "V100", "", "11.1"),
       "silent-cpu: framework-library-missing",
       "does not find libcusolver.so.10",
       "/usr/local/cuda-11.0/lib64:$LD_LIBRARY_PATH"},
      {ask("tensorflow==2.4.0", "V100", "", "11.0"), "works"},
      {ask("tensorflow==2.5", "V100", "", "11.8"), "works"},
      {ask("tensorflow==1.7.0", "V100", "", "9.1"),
       "fails: framework-library-missing",
       "does not find libcublas.so.9.0",
       "install CUDA 9.0"},
      {ask("tensorflow==2.16", "A100", "", "11.8"),
       "silent-cpu: framework-library-missing",
       "libcudart.so.12",
       "pip install 'tensorflow[and-cuda]==2.16'"},
      {ask("tensorflow[and-cuda]==2.16", "A100", "", "11.8"), "works"},
  });
  const FrameworkAnswer answer = answer_to(ask("tensorflow==2.4.0", "V100", "", "11.1"), {});
  EXPECT_THAT(answer.missing, ElementsAre("libcusolver.so.10"));
  EXPECT_THAT(answer.findings.front().evidence,
              ElementsAre(Evidence("CUDA 11.1 has libcusolver.so.11")));
  EXPECT_THAT(answer.findings.front().symptoms,
              Contains("TensorFlow: Could not load dynamic library 'libcusolver.so.10'; "
                       "dlerror: libcusolver.so.10: cannot open shared object file: No "
                       "such file or directory"));
}

TEST(Frameworks, WithoutAGpuTheLibrariesStillAnswer) {
  const FrameworkAnswer answer =
      answer_to({"tensorflow==2.4.0", {}, "", "11.1", ""}, without_gpu());
  EXPECT_THAT(codes(answer), ElementsAre("framework-library-missing"));
}

TEST(Frameworks, CudnnAtRunTimeAndAtBuild) {
  check({
      {ask("tensorflow==2.5", "V100", "", "11.2", "8.0.5"),
       "fails: framework-cudnn-mismatch",
       "built with cuDNN 8.1 and does not accept 8.0.5",
       "install cuDNN 8.1"},
      {ask("tensorflow==2.5", "V100", "", "11.2", "8.2.0"), "works"},
      {ask("tensorflow==2.5", "V100", "", "11.2", "7.6.5"),
       "silent-cpu: framework-library-missing",
       "libcudnn.so.8",
       "cuDNN 8.1"},
      {ask("tensorflow==1.4", "K40m", "", "8.0", "6.1"), "fails: framework-cudnn-mismatch"},
  });
  const FrameworkAnswer answer = answer_to(ask("tensorflow==2.5", "V100", "", "11.2", "8.0.5"), {});
  EXPECT_THAT(answer.findings.front().symptoms,
              ElementsAre("TensorFlow: Loaded runtime CuDNN library: 8.0.5 but source was compiled "
                          "with: 8.1.0. …"));
}

TEST(Frameworks, Drivers) {
  check({
      {ask("tensorflow==1.7.0", "V100", "none"),
       "fails: framework-needs-driver",
       "There is no NVIDIA driver, so tensorflow-gpu 1.7.0 cannot be imported.",
       "384.81 to R580"},
      {ask("tensorflow==2.4.0", "V100", "none"),
       "silent-cpu: framework-needs-driver",
       "computes on the CPU without an error",
       "450.51.05 to R580"},
      {ask("torch==1.12", "K80", "none"), "fails: framework-needs-driver", "", "440.33 to R470"},
      {ask("torch==2.8+cu128", "A100", "470.57.02"),
       "fails: driver-too-old",
       "built with CUDA 12.8",
       "525.60.13 or newer"},
      {ask("torch==2.8+cu128", "RTX 5090", "535.54.03"),
       "fails: driver-too-old",
       "RTX 5090 (12.0) cannot be used with driver 535.54.03: it needs 570.86.10 or newer.",
       "570.86.10 or newer"},
      {ask("torch==1.12", "K40m", "535.54.03"),
       "fails: architecture-dropped-by-driver",
       "K40m (3.5) cannot be used with driver 535.54.03: it no longer supports Kepler",
       "install a driver of branch R470"},
      {ask("torch==2.3+cu118", "K80", "470.256.02"), "works: cudnn-has-no-code-for-gpu"},
      {ask("torch==2.8+cu126", "V100", "590.44.01"),
       "fails: architecture-dropped-by-driver",
       "",
       "R580"},
      // A newer driver would not help a build without code, so none is advised.
      {ask("torch==2.3+cu121", "K80", "470.256.02"), "fails: framework-has-no-code-for-gpu"},
      {ask("tensorflow==2.21", "K80", "none"), "silent-cpu: framework-has-no-code-for-gpu"},
  });
  const FrameworkAnswer answer = answer_to(ask("tensorflow==1.7.0", "V100", "none"), {});
  EXPECT_THAT(answer.findings.front().symptoms,
              Contains("CUDA's runtime: CUDA driver version is insufficient for CUDA "
                       "runtime version"));
  EXPECT_EQ(answer.findings.front().symptoms.front(),
            "Python: ImportError: libcuda.so.1: cannot open shared object file: No such file or "
            "directory");
}

TEST(Frameworks, PyTorchAndWhatItsWheelsHaveCodeFor) {
  check({
      {ask("torch==2.3+cu118", "K80"),
       "works: cudnn-has-no-code-for-gpu",
       "matrix products work, convolutions may fail",
       "PyTorch 2.0 with CUDA 11.7"},
      {ask("torch==2.3+cu121", "K80"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "pip install torch==2.3.0+cu118 --index-url https://download.pytorch.org/whl/cu118"},
      {ask("torch==1.12.1+cu113", "H100 SXM"),
       "fails: framework-has-no-code-for-gpu",
       "has no code for H100 SXM (9.0)",
       "PyTorch 2."},
      {ask("torch==2.5+cu121", "B200"), "fails: framework-has-no-code-for-gpu", "", "PyTorch 2."},
      {ask("torch==2.5+cu121", "RTX 5090"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "PyTorch 2."},
      {ask("torch==2.7+cu128", "V100"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "torch==2.7.0+cu126 --index-url https://download.pytorch.org/whl/cu126"},
      {ask("torch==2.8+cu128", "V100"), "works"},
      {ask("torch==2.8+cu126", "V100"), "works"},
      {ask("torch==2.11+cu128", "V100"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "torch==2.11.0+cu126 --index-url https://download.pytorch.org/whl/cu126"},
      {ask("torch==2.8+cu128", "P100"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "torch==2.8.0+cu126 --index-url https://download.pytorch.org/whl/cu126"},
      {ask("torch==1.12", "K40m"), "fails: framework-has-no-code-for-gpu", "", "conda"},
      {ask("torch", "A100"), "works"},
  });
}

TEST(Frameworks, PtxIsCompiledAtTheFirstStart) {
  const FrameworkAnswer answer = answer_to(ask("tensorflow==2.4", "H100 SXM"), {});
  EXPECT_EQ(answer.gpus.front().outcome, Outcome::works_after_compiling);
  EXPECT_THAT(answer.gpus.front().reason, HasSubstr("compiles its PTX for 8.0"));
  EXPECT_THAT(codes(answer), ElementsAre("cudnn-has-no-code-for-gpu"));
}

TEST(Frameworks, MovingFromV100ToK80) {
  for (const char* framework : {"torch==1.12.1+cu113", "tensorflow==2.4"}) {
    const FrameworkAnswer answer =
        answer_to({framework, {"V100", "K80"}, "470.256.02", "", ""}, {});
    ASSERT_EQ(answer.gpus.size(), 2U);
    EXPECT_EQ(answer.gpus[0].outcome, Outcome::works) << framework;
    EXPECT_EQ(answer.gpus[1].outcome, Outcome::works) << framework;
  }
  const FrameworkAnswer torch = answer_to({"torch==2.8+cu126", {"V100", "K80"}, "", "", ""}, {});
  EXPECT_EQ(torch.gpus[0].outcome, Outcome::works);
  EXPECT_EQ(torch.gpus[1].outcome, Outcome::fails);
  EXPECT_EQ(torch.gpus[1].newest.front().certain->text(), "PyTorch 2.7 with CUDA 11.8");
  EXPECT_EQ(torch.gpus[1].newest.front().with_cudnn->text(), "PyTorch 2.0 with CUDA 11.7");
  EXPECT_EQ(torch.gpus[1].newest_toolkit->text(), "11.8");
  EXPECT_EQ(torch.gpus[1].last_driver_branch, 470);
}

TEST(Frameworks, ThePackageThatHadNoGpu) {
  const std::string kCpu = "framework-cpu-only";
  struct Question {
    const char *framework, *cuda;
    std::vector<std::string> codes;
    const char* says;  // at first
    const char* remedy;
  };
  for (const Question& q :
       {Question{"tensorflow==1.14",
                 "10.0",
                 {kCpu},
                 "has no GPU code before 1.15. ",
                 "tensorflow-gpu==1.14"},
        {"tensorflow==1.7.0",
         "9.0",
         {kCpu},
         "has no GPU code before 1.15. ",
         "tensorflow-gpu==1.7.0"},
        {"tensorflow==1.4", "8.0", {kCpu}, "has no GPU code before 1.15. ", "tensorflow-gpu==1.4"},
        {"tensorflow==2.0", "10.0", {kCpu}, "has no GPU code at 2.0. ", "tensorflow-gpu==2.0"},
        // What tensorflow-gpu lacks is the one thing to tell; the package is said first all the
        // same.
        {"tensorflow==1.7.0",
         "9.1",
         {"framework-library-missing"},
         "has no GPU code before 1.15. ",
         "CUDA 9.0"},
        {"tensorflow-gpu==1.14", "10.0", {}, "tensorflow-gpu 1.14 on V100", ""},
        {"tensorflow==1.15", "10.0", {}, "tensorflow 1.15 on V100", ""}}) {
    const FrameworkAnswer answer = answer_to(ask(q.framework, "V100", "470", q.cuda), {});
    const std::string shown = text(answer, {.width = 1000});
    EXPECT_EQ(codes(answer), q.codes) << shown;
    EXPECT_THAT(shown.substr(0, shown.find('\n')), HasSubstr(q.says));
    if (q.codes.empty()) continue;
    EXPECT_EQ(answer.findings.front().severity, Severity::prevents);
    EXPECT_THAT(answer.findings.front().remedy, HasSubstr(q.remedy));
  }
}

/// What a question is answered with, in lines as long as they are.
std::string words_for(const WhatIf& question) {
  return text(answer_to(question, {}), {.width = 1000});
}

TEST(Frameworks, ARangeIsAnsweredAsOne) {
  const std::pair<WhatIf, const char*> questions[] = {
      {ask("torch>=2.0", "K80", "470.256.02"),
       "torch>=2.0 on K80 (Kepler 3.7): works up to 2.7, in the build for CUDA 11.8 (convolutions "
       "by cuDNN up to 2.0 with 11.7); pip would install 2.15, which fails\n"},
      {ask("torch>=2.8", "K80"), "no version of it is known to work; pip would install 2.15"},
      {ask("torch>=2.0,<2.4", "K80"), "works up to 2.3, in the build for CUDA 11.8"},
      {ask("tensorflow>=2.4", "K40m"),
       "works up to 2.11, in the build for CUDA 11.2; pip would install 2.21, which uses the CPU"},
      {ask("torch>=2.0", "A100"), "torch 2.15 on A100"},
      {ask("torch>=2.0", "A100", "535.54.03"), "works up to 2.14, in the build for CUDA 12.6"}};
  for (const auto& [question, says] : questions) EXPECT_THAT(words_for(question), HasSubstr(says));
}

TEST(Frameworks, WhatTheDriverListsItKnows) {
  Have have;
  have.driver_known = true;
  have.driver = version("535.54.03");
  for (const bool listed : {false, true}) {
    have.gpus = {gpu("Tesla K40m", {3, 5}, "GPU-1", listed)};
    const FrameworkAnswer answer = doctor::answer(Requirement::parse("tensorflow-gpu==1.14"), have);
    EXPECT_EQ(codes(answer),
              listed ? std::vector<std::string>{}
                     : std::vector<std::string>{"architecture-dropped-by-driver"});
    EXPECT_EQ(answer.gpus.front().outcome, listed ? Outcome::works : Outcome::silent_cpu);
  }
  // An assumed driver lists nothing.
  EXPECT_THAT(codes(answer_to({"tensorflow-gpu==1.14", {}, "550", "", ""}, have)),
              ElementsAre("architecture-dropped-by-driver"));
}

TEST(Frameworks, GpusThatAreAlikeAreOneLine) {
  Have have = without_gpu();
  have.driver = version("535.54.03");
  for (int i = 0; i < 8; ++i) have.gpus.push_back(gpu("A100", {8, 0}, "GPU-" + std::to_string(i)));
  const std::string missing = text(answer(Requirement::parse("tensorflow==2.4.0"), have));
  EXPECT_TRUE(missing.starts_with(
      "tensorflow 2.4.0 would use none of the 8 GPUs: libcudart.so.11.0 is missing\n"
      "  8 x A100 (Ampere 8.0): uses the CPU, without an error – libcudart.so.11.0 is missing\n"))
      << missing;
  EXPECT_THAT(missing, HasSubstr("none of its libraries"));

  have.gpus.push_back(gpu("Tesla K80", {3, 7}, "GPU-8"));
  have.gpus.push_back(gpu("Tesla K80", {3, 7}, "GPU-9"));
  have.driver = version("470.256.02");
  const FrameworkAnswer mixed = answer(Requirement::parse("torch==2.3+cu121"), have);
  EXPECT_THAT(codes(mixed), Contains(kNoCode).Times(1));
  const auto none = std::ranges::find(mixed.findings, kNoCode, &Finding::code);
  EXPECT_THAT(none->subjects, ElementsAre("GPU-8", "GPU-9"));

  const std::string works = text(answer_to({"torch==2.8", {"A100", "A100"}, "580", "", ""}, {}));
  EXPECT_TRUE(works.starts_with("torch 2.8 would use all 2 GPUs\n  2 x A100")) << works;
}

TEST(Frameworks, WhatIsStillNeededIsNamed) {
  EXPECT_THAT(words_for(ask("tensorflow==2.4.0", "K40m")),
              HasSubstr("K40m (Kepler 3.5): would work, once CUDA 11.0, cuDNN 8.x and a driver "
                        "450.51.05 to R470 are installed\n"));
  EXPECT_THAT(words_for(ask("torch==2.8", "A100")),
              HasSubstr("would work, once a driver 525.60.13 or newer is installed\n"));
}

TEST(Frameworks, RemediesCanBeTyped) {
  check({
      {ask("torch", "K80"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "pip install 'torch==2.7.*' --index-url https://download.pytorch.org/whl/cu118 ("},
      {ask("tensorflow-cpu==2.10", "A100"),
       "silent-cpu: framework-cpu-only",
       "",
       "pip uninstall tensorflow-cpu && pip install tensorflow==2.10"},
      {ask("torch==2.3+cpu", "A100"),
       "silent-cpu: framework-cpu-only",
       "",
       "pip uninstall torch && pip install torch==2.3"},
      {ask("torch", "K40m"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "conda install pytorch=1.12 cudatoolkit=10.2 -c pytorch -c conda-forge ("},
      {ask("torch==2.3+cu121", "K80"),
       "fails: framework-has-no-code-for-gpu",
       "",
       "for those torch==2.0+cu117)"},
      {ask("tensorflow==2.17", "M40"),
       "silent-cpu: framework-has-no-code-for-gpu",
       "",
       "pip install 'tensorflow[and-cuda]==2.16.*' (TensorFlow 2.16 with CUDA 12.3"},
  });
}

TEST(Frameworks, ANameAloneIsTheNewestInTheTablesIfItIsNotInstalled) {
  Have have;
  have.python = "/venv/bin/python3";
  const std::string shown = text(answer_to({"torch", {"A100"}, "", "", ""}, have), {.width = 1000});
  EXPECT_TRUE(
      shown.starts_with("torch is not installed in /venv/bin/python3; taken: the newest in "
                        "the tables, 2.15\n"))
      << shown;
}

TEST(Frameworks, NewestAndWhatIsNotConfirmedOfIt) {
  EXPECT_THAT(words_for(ask("tensorflow", "A100")),
              HasSubstr("(cuDNN 9.3 on this GPU: not confirmed)"));
  EXPECT_THAT(words_for(ask("torch", "K80")),
              HasSubstr("(its cuDNN 9.1.0 has no code for this GPU: convolutions may fail)"));
}

TEST(Frameworks, AMachineWithoutAGpu) {
  const FrameworkAnswer answer = doctor::answer(Requirement::parse("torch"), without_gpu());
  EXPECT_THAT(codes(answer), ElementsAre("no-gpu"));
  EXPECT_EQ(answer.findings.front().severity, Severity::note);
  EXPECT_THAT(text(answer), HasSubstr("This machine has no NVIDIA GPU"));
}

TEST(Frameworks, WhatIsUnknownIsSaidToBe) {
  const FrameworkAnswer unknown = answer_to(ask("torch==9.9", "K40m"), {});
  EXPECT_EQ(unknown.gpus.front().outcome, Outcome::unknown);
  EXPECT_THAT(codes(unknown), ElementsAre("framework-version-unknown"));
  EXPECT_EQ(unknown.gpus.front().newest_toolkit->text(), "11.8");

  // That CUDA 13 has no Volta holds for whatever was built with it.
  const FrameworkAnswer ruled_out = answer_to(ask("torch==9.9+cu130", "V100"), {});
  EXPECT_EQ(ruled_out.gpus.front().outcome, Outcome::fails);
  EXPECT_THAT(codes(ruled_out), ElementsAre(kNoCode, "framework-version-unknown"));

  const FrameworkAnswer without = answer_to({"torch==9.9", {}, "", "", ""}, without_gpu());
  EXPECT_THAT(codes(without), ElementsAre("framework-version-unknown", "no-gpu"));
  EXPECT_TRUE(text(without).starts_with("torch 9.9 is in no table: ")) << text(without);

  EXPECT_THAT(codes(answer_to(ask("torch==2.3+cu999", "K80"), {})),
              ElementsAre("framework-version-unknown"));
  EXPECT_THAT(codes(answer_to(ask("torch>9", "K80"), {})),
              ElementsAre("framework-version-unknown"));
}

/// A machine with a V100, on which this package is.
Have with_installed(InstalledPackage package) {
  Have have;
  have.gpus = {gpu("Tesla V100-SXM2-16GB", {7, 0}, "GPU-1")};
  have.gpus_known = have.driver_known = true;
  have.driver = version("535.54.03");
  have.installed = {{"numpy", "2.0", "/x"}, std::move(package)};
  return have;
}

TEST(Frameworks, TheInstalledPackage) {
  const auto asked = [](const char* framework, const char* name, const char* version) {
    return answer(Requirement::parse(framework), with_installed({name, version, "/venv/lib"}));
  };
  const FrameworkAnswer torch = asked("torch", "torch", "2.7.1+cu128");
  EXPECT_EQ(torch.subject, "torch 2.7.1+cu128");
  EXPECT_THAT(codes(torch), ElementsAre(kNoCode));
  EXPECT_EQ(torch.findings.front().subject, "GPU-1");
  EXPECT_EQ(asked("torch", "torch", "2.7.1").build->cuda.text(), "12.6");
  EXPECT_THAT(codes(asked("torch", "torch", "2.10.0.dev20251101+cu130")),
              ElementsAre("framework-version-unknown"));
  EXPECT_THAT(codes(asked("torch", "torch", "2.3+cpu")), ElementsAre("framework-cpu-only"));
  EXPECT_THAT(codes(asked("tensorflow", "tensorflow", "1.7.0")), ElementsAre("framework-cpu-only"));
  EXPECT_EQ(asked("tensorflow", "tensorflow-gpu", "1.7.0").subject, "tensorflow-gpu 1.7.0");
  // What is asked for by version is not what is installed.
  EXPECT_EQ(asked("torch==2.8", "torch", "2.3+cpu").subject, "torch 2.8");
}

TEST(Frameworks, AnInstalledPackageThatIsNewerThanTheTablesSaysItself) {
  const auto asked = [](const char* cuda, const char* cudnn) {
    return answer(Requirement::parse("torch"),
                  with_installed({"torch", "99.1.0", "/venv/lib", cuda, cudnn}));
  };
  const FrameworkAnswer own = asked("13.2", "9.99.1");
  ASSERT_TRUE(own.build);
  EXPECT_EQ(own.build->cuda.text(), "13.2");
  EXPECT_EQ(own.build->cudnn->text(), "9.99.1");
  EXPECT_THAT(own.build->source.text, HasSubstr("/venv/lib"));
  EXPECT_EQ(own.gpus.front().outcome, Outcome::fails) << "driver 535 cannot serve CUDA 13";
  EXPECT_THAT(text(own), HasSubstr("name CUDA 13.2 and require cuDNN 9.99.1"));
  EXPECT_FALSE(asked("", "").build);
  EXPECT_FALSE(asked("none", "").build);
}

TEST(Frameworks, EveryAnswerSaysOfWhenItsTablesAre) {
  const FrameworkAnswer torch = answer_to(ask("torch==2.3", "A100"), {});
  EXPECT_THAT(text(torch), HasSubstr("compared with their sources on " + tables().made));
  EXPECT_EQ(to_json(torch).at("tables_made"), tables().made);
  EXPECT_THAT(tables().made, MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2}"));
}

TEST(Frameworks, TheMachinesOwnLibraries) {
  Have installation;
  installation.gpus = {gpu("Tesla V100", {7, 0}, "GPU-1")};
  installation.gpus_known = installation.driver_known = installation.libraries_known = true;
  installation.driver = version("535.54.03");
  installation.sonames = {"libcudart.so.11.0",
                          "libcublas.so.11",
                          "libcublasLt.so.11",
                          "libcufft.so.10",
                          "libcurand.so.10",
                          "libcusolver.so.11",
                          "libcusparse.so.11"};
  const Requirement requirement = Requirement::parse("tensorflow==2.5");
  EXPECT_THAT(answer(requirement, installation).missing, ElementsAre("libcudnn.so.8"));
  EXPECT_THAT(text(answer(requirement, installation)), HasSubstr("all names are there"));
  EXPECT_THAT(text(answer(requirement, installation)), HasSubstr("libcudnn.so.8 (missing)"));
  installation.sonames.push_back("libcudnn.so.8");
  EXPECT_EQ(answer(requirement, installation).gpus.front().outcome, Outcome::works);
  EXPECT_TRUE(
      answer(requirement, installation).gpus.front().conditional);  // which release is not known
  installation.cudnn = version("8.1.1");
  EXPECT_FALSE(answer(requirement, installation).gpus.front().conditional);
}

TEST(Frameworks, WhatTheDriverSaysOfItselfCounts) {
  Have installation;
  installation.gpus = {gpu("A100", {8, 0})};
  installation.driver_known = true;
  installation.driver = version("470.57.02");
  installation.driver_cuda = version("12.8");  // libcuda of a compat package
  EXPECT_THAT(codes(answer(Requirement::parse("torch==2.8+cu128"), installation)), IsEmpty());
  installation.driver.reset();
  installation.driver_cuda = version("11.4");
  EXPECT_THAT(codes(answer(Requirement::parse("torch==2.8+cu128"), installation)),
              ElementsAre("driver-too-old"));
}

TEST(WhatIf, RefusesWhatDoesNotExistOrContradictsItself) {
  const std::pair<WhatIf, const char*> questions[] = {
      {ask("torch", "K41m"), "near it are K40m"},
      {{"torch", {}, "470", "13.0", ""}, "--driver 470 and --cuda 13.0 do not go together"},
      {{"torch", {}, "", "12.7", ""}, "there is no CUDA 12.7; its neighbours are 12.6 and 12.8"},
      {{"torch", {}, "", "14", ""}, "known are 8.0 to 13.3"},
      {{"torch", {}, "latest", "", ""}, "--driver 'latest' is no version"},
      {{"torch", {}, "", "", "8.x"}, "--cudnn '8.x'"},
      {{"jax", {}, "", "", ""}, "no known framework"},
      {{"", {}, "470", "", ""}, "needs --for or --gpu"},
      {{"", {}, "", "", "8"}, "needs --for or --gpu"},
      {{"", {}, "", "12.4", ""}, "needs --for or --gpu"},
  };
  for (const auto& question : questions) {
    EXPECT_THAT([&] { answer_to(question.first, Have{}); },
                ThrowsMessage<UsageError>(HasSubstr(question.second)));
  }
}

TEST(WhatIf, WithoutAFrameworkNamesTheNewestOfEverything) {
  const FrameworkAnswer answer = answer_to({"", {"K80"}, "", "", ""}, {});
  const GpuAnswer& of_k80 = answer.gpus.front();
  ASSERT_EQ(of_k80.newest.size(), 2U);
  EXPECT_EQ(of_k80.newest[0].certain->text(), "TensorFlow 2.11 with CUDA 11.2");
  EXPECT_EQ(of_k80.newest[0].possible->text(), "TensorFlow 2.13 with CUDA 11.8");
  EXPECT_EQ(of_k80.newest[1].certain->text(), "PyTorch 2.7 with CUDA 11.8");
  EXPECT_EQ(of_k80.newest_toolkit->text(), "11.8");
}

TEST(WhatIf, GpusThatCannotBeUsedWithWhatIsNamed) {
  struct Question {
    WhatIf question;
    const char *code, *says;
  };
  for (const Question& q :
       {Question{ask("", "B200", "470"),
                 "driver-too-old",
                 "B200 (10.0) cannot be used with driver 470: it needs 570.86.10 or newer."},
        {ask("", "K40m", "535"),
         "architecture-dropped-by-driver",
         "K40m (3.5) cannot be used with driver 535: it no longer supports Kepler, the last branch "
         "is R470."},
        {ask("", "K40m", "", "12.4"),
         "toolkit-has-no-code-for-gpu",
         "K40m (3.5) cannot be used with CUDA 12.4: the last with Kepler is 11.8."},
        {ask("", "B200", "", "11.8"),
         "toolkit-has-no-code-for-gpu",
         "the first with Blackwell is 12.8."},
        {ask("", "V100", "", "12.8", "9.17.1"),
         "cudnn-has-no-code-for-gpu",
         "cuDNN 9.17.1 has no code for V100 (7.0)."}}) {
    const FrameworkAnswer answer = answer_to(q.question, {});
    EXPECT_THAT(codes(answer), ElementsAre(q.code));
    EXPECT_EQ(answer.findings.front().severity, Severity::prevents);
    EXPECT_THAT(answer.findings.front().sentence, HasSubstr(q.says));
    const std::string shown = text(answer, {.width = 1000});
    EXPECT_TRUE(shown.starts_with(answer.findings.front().sentence)) << shown;
    EXPECT_EQ(shown.find(q.says), shown.rfind(q.says)) << "twice: " << shown;
  }
  // What is the newest holds for the driver that replaces it, and says so.
  const std::string shown = words_for(ask("", "B200", "470"));
  EXPECT_THAT(shown, HasSubstr("PyTorch: once the driver is changed, up to 2.14"));
  for (const WhatIf& good : {ask("", "K40m", "470", "11.8"), ask("", "B200", "570.86.10", "12.8")})
    EXPECT_THAT(codes(answer_to(good, {})), IsEmpty());
}

TEST(WhatIf, AGpuAloneIsALineOfItsLifeAndOneForEachFramework) {
  EXPECT_TRUE(
      text(answer_to(ask("", "K20m"), {}))
          .starts_with("K20m (Kepler 3.5): last driver branch R470, last CUDA 11.8\n"
                       "  TensorFlow: up to 2.11 with CUDA 11.2, driver 450.80.02 to R470"));
}

TEST(WhatIf, AGpuThatIsNamedStandsForAnotherMachine) {
  Have here;
  here.gpus_known = here.driver_known = here.libraries_known = true;
  EXPECT_THAT(codes(answer_to(ask("tensorflow==2.4", "V100"), here)), IsEmpty());
}

TEST(FrameworkAnswer, IsJsonWithStableCodes) {
  const Json json = to_json(answer_to(ask("tensorflow==2.4.0", "V100", "", "11.1"), {}));
  EXPECT_EQ(json["subject"], "tensorflow 2.4.0");
  EXPECT_EQ(json["gpus"][0]["outcome"], "silent-cpu");
  EXPECT_EQ(json["missing"][0], "libcusolver.so.10");
  EXPECT_EQ(json["findings"][0]["code"], "framework-library-missing");
  EXPECT_EQ(json["build"]["cuda"], "11.0");
  EXPECT_EQ(json["gpus"][0]["newest"][0]["certain"]["framework"], "tensorflow");
}

TEST(FrameworkAnswer, VerdictComesFirst) {
  const std::string shown = text(answer_to(ask("tensorflow==2.4.0", "V100", "", "11.1"), {}));
  EXPECT_TRUE(
      shown.starts_with("tensorflow 2.4.0 on V100 (Volta 7.0): uses the CPU, without an error – "
                        "libcusolver.so.10 is missing\n"))
      << shown;
  EXPECT_THAT(shown, HasSubstr("fix install CUDA 11.0"));
  EXPECT_EQ(shown.find("source:"), std::string::npos) << shown;
}

TEST(FrameworkAnswer, HostileNamesAreMadeFitToBeShown) {
  Have installation;
  installation.gpus = {gpu("evil\x1b[2J\n\xff", {7, 0})};
  installation.installed = {{"torch", "2.3\x1b[31m", "/x\n"}};
  const FrameworkAnswer answer = doctor::answer(Requirement::parse("torch"), installation);
  EXPECT_EQ(text(answer).find('\x1b'), std::string::npos);
  EXPECT_NO_THROW(to_json(answer).dump());
}

}  // namespace
}  // namespace launchgap::doctor
