#include <random>

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/what_if.h"

namespace launchgap::doctor {
namespace {

using Have = Installation;

using namespace testing;

Version version(const std::string& text) {
  return *Version::parse(text);
}

TEST(Requirement, IsReadAsPipWritesIt) {
  struct Case {
    const char *text, *framework, *pinned, *cuda;
    bool cpu_only = false;
  };
  for (const Case& c : {Case{"tensorflow==2.4.0", "tensorflow", "2.4.0", ""},
                        {"TensorFlow_GPU == 1.7", "tensorflow", "1.7", ""},
                        {"tensorflow[and-cuda]==2.16", "tensorflow", "2.16", ""},
                        {"tensorflow-cpu==2.4", "tensorflow", "2.4", "", true},
                        {"torch==2.3+cu121", "torch", "2.3", "12.1"},
                        {"torch==1.12.1+cu113", "torch", "1.12.1", "11.3"},
                        {"torch==1.4+cu92", "torch", "1.4", "9.2"},
                        {"torch==2.3+cpu", "torch", "2.3", "", true},
                        {" pytorch ", "torch", "", ""},
                        {"torch>=2.0,<2.4", "torch", "", ""},
                        {"torch>=2.0,==2.1", "torch", "2.1", ""}}) {
    const Requirement requirement = Requirement::parse(c.text);
    EXPECT_EQ(requirement.framework, c.framework) << c.text;
    const auto pinned = requirement.pinned();
    EXPECT_EQ(pinned ? pinned->text() : "", c.pinned) << c.text;
    EXPECT_EQ(requirement.cuda ? requirement.cuda->text() : "", c.cuda) << c.text;
    EXPECT_EQ(requirement.cpu_only, c.cpu_only) << c.text;
  }
}

TEST(Requirement, AllowsByPep440) {
  struct Case {
    const char *requirement, *version;
    bool allowed;
  };
  for (const Case& c : {Case{"torch==2.4", "2.4.0", true},
                        {"torch==2.4", "2.4.1", false},
                        {"torch==2.4.*", "2.4.1", true},
                        {"torch!=2.4.*", "2.4.1", false},
                        {"torch!=2.4.1", "2.4.0", true},
                        {"torch>2.4", "2.4.0", false},
                        {"torch>2.4", "2.5", true},
                        {"torch<=2.4", "2.4", true},
                        {"torch<2.10", "2.9", true},
                        {"torch~=2.4", "2.9", true},
                        {"torch~=2.4", "3.0", false},
                        {"torch~=2.4.1", "2.4.5", true},
                        {"torch~=2.4.1", "2.5", false},
                        {"torch>=2.0,<2.4,!=2.3", "2.3", false}}) {
    EXPECT_EQ(Requirement::parse(c.requirement).allows(version(c.version)), c.allowed)
        << c.requirement << " " << c.version;
  }
}

TEST(Requirement, MeansTheNewestThatATableHas) {
  const auto meant = [](const char* text) { return version_for(Requirement::parse(text))->text(); };
  EXPECT_EQ(meant("torch>=2.0,<2.4"), "2.3");
  EXPECT_EQ(meant("tensorflow~=2.4"), "2.21");
  EXPECT_EQ(meant("tensorflow==2.4.*"), "2.4");
  EXPECT_EQ(meant("tensorflow<2"), "1.15");
  EXPECT_EQ(meant("torch==9.9"), "9.9");
  EXPECT_FALSE(version_for(Requirement::parse("torch>9")));
}

TEST(Requirement, SaysWhatIsWrongAndGivesAnExample) {
  struct Case {
    const char *text, *says;
  };
  for (const Case& c :
       {Case{"", "is no known framework"},
        {"jax", "known are tensorflow, tensorflow-gpu, tensorflow-cpu, torch, pytorch"},
        {"torch==", "is no released version"},
        {"torch=2.3", "a condition begins with"},
        {"torch 2.3", "a condition begins with"},
        {"torch===2.3", "'===' is not taken"},
        {"torch==2.3rc1", "pre-releases"},
        {"torch==2.9.0.dev20250801", "pre-releases"},
        {"torch==2.3+rocm6.0", "AMD"},
        {"torch==2.3+cu", "neither +cpu nor"},
        {"torch==2.3+cu12.1", "neither +cpu nor"},
        {"torch>=2.3+cu121", "goes with == only"},
        {"tensorflow==2.4+cu110", "only torch has tags"},
        {"torch>=2.*", "'.*' goes with"},
        {"torch~=2", "two parts"},
        {"torch>=2,", "ends with a comma"},
        {"torch>=2 <3", "comma is missing"},
        {"torch[vision]==2.3", "is not known"},
        {"tensorflow[and-cuda", "never closed"},
        {"torch==1.9999999999", "is no released version"},
        {"torch>=2.0,<2.0", "no version meets all"},
        {"torch==2.0,==2.1", "no version meets all"},
        {"torch>2.1,<=2.1.0", "no version meets all"},
        {"torch==2.3.*,<2.3", "no version meets all"}}) {
    EXPECT_THAT([&] { Requirement::parse(c.text); },
                ThrowsMessage<UsageError>(AllOf(HasSubstr(c.says), HasSubstr("for example"))))
        << c.text;
  }
  EXPECT_THROW(Requirement::parse("torch==" + std::string(1 << 20, '1')), UsageError);
}

TEST(Requirement, MayBeMetByVersionsThatNoTableHas) {
  for (const char* text : {"torch>9",
                           "torch>2.0,<2.0.1",
                           "torch<0.1",
                           "torch>=2,!=2",
                           "torch!=2.*",
                           "torch<=999999999"})
    EXPECT_NO_THROW(Requirement::parse(text)) << text;
}

/// Every answer to nonsense is an answer or a UsageError.
TEST(Requirement, SurvivesNonsense) {
  std::mt19937 random(1);
  const std::string_view alphabet = "torchtensflwpu-_.=<>!~,[]+ *0123456789cuABrc\x01\xff\"'/";
  const auto nonsense = [&](std::size_t longest) {
    std::string text(random() % longest, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    return text;
  };
  std::size_t parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    const char* const names[] = {
        "", "torch", "tensorflow", "torch==", "tensorflow>=", "torch==2.3+cu"};
    WhatIf question;
    question.framework = names[random() % 6] + nonsense(12);
    if (random() % 4 == 0) question.gpus.push_back(random() % 2 ? "K40m" : nonsense(10));
    if (random() % 4 == 0) question.driver = random() % 2 ? "470.1" : nonsense(6);
    if (random() % 8 == 0) question.cuda = random() % 2 ? "11.8" : nonsense(5);
    if (random() % 8 == 0) question.cudnn = random() % 2 ? "8.0.5" : nonsense(5);
    try {
      const FrameworkAnswer answer = what_if(question, Have{});
      to_json(answer).dump();
      text(answer);
      ++parsed;
    } catch (const UsageError&) {
    }
  }
  EXPECT_GT(parsed, 500U);
}

TEST(Requirement, EveryVersionInTheTablesHasAnAnswerOnEveryGpu) {
  for (const BuildRow& build : tables().builds) {
    for (const Version& version : build.versions.versions()) {
      const std::string tag =
          build.framework == "torch" && build.package == "wheel"
              ? "+cu" + build.cuda.prefix(1) + std::to_string(build.cuda.minor())
              : "";
      const Requirement requirement =
          Requirement::parse(build.framework + "==" + version.text() + tag);
      Have installation;
      for (const GpuRow& gpu : tables().gpus)
        installation.gpus.push_back({.name = gpu.name, .capability = gpu.capability, .id = ""});
      const FrameworkAnswer answer = doctor::answer(requirement, installation);
      ASSERT_TRUE(answer.build) << requirement.text;
      EXPECT_EQ(answer.gpus.size(), tables().gpus.size());
      for (const GpuAnswer& gpu : answer.gpus) {
        EXPECT_FALSE(gpu.reason.empty()) << requirement.text << " " << gpu.gpu.name;
        EXPECT_TRUE(gpu.newest.front().certain) << requirement.text << " " << gpu.gpu.name;
      }
    }
  }
}

}  // namespace
}  // namespace launchgap::doctor
