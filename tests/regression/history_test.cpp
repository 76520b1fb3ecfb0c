#include "harness/regression/history.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/core/temporary_folder.h"

namespace launchgap::regression {
namespace {

using testing::HasSubstr;

TEST(History, FindsAFingerprintThatAnotherProcessHasAddedSince) {
  const TemporaryFolder folder("history-test");
  const std::filesystem::path file = folder.path() / "nights.db";
  HistoryDatabase other(file, History::Use::write);
  other.statement("INSERT INTO fingerprints (keys) VALUES ('{\"a\":1}')").run();
  const History history(file, History::Use::read);
  ASSERT_EQ(history.fingerprints().size(), 1u);
  const Fingerprint& first = history.fingerprint(1);
  other.statement("INSERT INTO fingerprints (keys) VALUES ('{\"a\":2}')").run();
  EXPECT_EQ(history.fingerprint(2).size(), 1u);
  EXPECT_EQ(&first, &history.fingerprint(1)) << "what was given out stays";
  try {
    history.fingerprint(7);
    FAIL() << "there is none";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.string()));
    EXPECT_THAT(error.what(), HasSubstr("fingerprint 7"));
  }
}

}  // namespace
}  // namespace launchgap::regression
