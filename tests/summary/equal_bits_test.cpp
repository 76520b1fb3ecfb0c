#include "harness/summary/equal_bits.h"

#include <gmock/gmock.h>

#include "harness/record/records.h"
#include "harness/summary/summary.h"
#include "harness/summary/table_makers.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

/// A session in which the bits of products were compared.
struct EqualBits : WrittenSession {
  static ResultBits of(const std::string& variant, int distinct = 1, const char* hash = "0001") {
    ResultBits bits;
    bits.case_name = "matmul/bits/shape:64x64x16384/type:fp32/variant:" + variant;
    bits.results = 9;
    bits.distinct = distinct;
    bits.hash = hash;
    if (distinct > 1) {
      bits.largest_difference = 3e-7;
      bits.different = "stream 2, stream 4";
    }
    return bits;
  }

  /// What one more process found.
  void process(const std::vector<ResultBits>& found, const std::string& device = "GPU-1") {
    RecordWriter writer = begin_run(device, "plain", "matmul", replicate_++);
    for (const ResultBits& bits : found) {
      writer.write(record_to_json(bits));
      summary(writer, bits.case_name, "ok");
    }
    end(writer);
  }

  int replicate_ = 0;
};

TEST_F(EqualBits, AreARowAndNoFinding) {
  for (int i = 0; i < 3; ++i) process({of("again"), of("streams_own"), of("workspace")});
  const SessionData session = read();
  const auto counts = bits_counts(session);
  ASSERT_THAT(counts, SizeIs(3));
  EXPECT_EQ(counts[0].variant(), "again");
  EXPECT_EQ(counts[0].processes, 3);
  EXPECT_EQ(counts[0].results, 27);
  EXPECT_EQ(counts[0].distinct_within, 1);
  EXPECT_EQ(counts[0].distinct_between, 1);
  EXPECT_FALSE(counts[0].differs());
  EXPECT_THAT(bits_findings(session), IsEmpty());

  const auto lines = lines_of(bits_table(), session);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0],
            (std::vector<std::string>{
                "GPU-1", of("again").case_name, "again", "3", "27", "1", "1", "0", ""}));
}

TEST_F(EqualBits, ThatStreamsDoNotHaveAreToldWithWhatHelps) {
  process({of("again"), of("streams_own"), of("streams_shared", 3)});
  process({of("again"), of("streams_own"), of("streams_shared", 2)});
  const SessionData session = read();
  const Finding found = only(said(bits_findings(session)));
  EXPECT_EQ(in_words(found),
            "act bits-differ: "
            "Of 1 of 1 product, results that one handle computes in 4 streams at once differ in "
            "bits: it takes another workspace for another stream.");
  EXPECT_THAT(found.remedy, HasSubstr("CUBLAS_WORKSPACE_CONFIG=:4096:8"));
  ASSERT_THAT(found.evidence, SizeIs(1));
  EXPECT_EQ(text_of(found.evidence[0]),
            of("streams_shared").case_name +
                ": 3 different results in one process, by at most 3.0e-07 of the largest element "
                "(other bits: stream 2, stream 4)");
  EXPECT_EQ(found.cases, of("streams_shared").case_name);
}

TEST_F(EqualBits, ThatOwnWorkspacesDoNotBringHaveAnotherRemedy) {
  process({of("again"), of("streams_own", 2)});
  const Finding found = only(said(bits_findings(read())));
  EXPECT_THAT(found.sentence, HasSubstr("though each stream has a handle and a workspace"));
  EXPECT_THAT(found.remedy, Not(HasSubstr("cublasSetWorkspace")));
}

TEST_F(EqualBits, ThatProcessesDoNotHaveAreOneFinding) {
  process({of("again", 1, "0001"), of("streams_own", 1, "000a"), of("workspace", 1, "000b")});
  process({of("again", 1, "0002"), of("streams_own", 1, "000a")});
  process({of("again", 1, "0001"), of("streams_own", 1, "000a")});
  const SessionData session = read();
  EXPECT_EQ(bits_counts(session)[0].distinct_between, 2);
  const Finding found = only(said(bits_findings(session)));
  EXPECT_EQ(found.severity, Severity::act);
  EXPECT_EQ(found.sentence,
            "Of 1 of 2 products, the results of fresh processes differ in bits though nothing else "
            "does.")
      << "what one process alone computed is compared with nothing";
  EXPECT_EQ(text_of(found.evidence[0]),
            of("again").case_name + ": 2 different results in 3 processes");
}

TEST_F(EqualBits, OfOneProcessSayNothingOfOthers) {
  process({of("again", 1, "0001")});
  EXPECT_EQ(bits_counts(read())[0].distinct_between, 1);
  EXPECT_THAT(bits_findings(read()), IsEmpty());
}

TEST_F(EqualBits, ThatDependOnTheWorkspaceAreANote) {
  process({of("workspace", 2)});
  const Finding found = only(said(bits_findings(read())));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.remedy, HasSubstr("of the same size"));
}

TEST_F(EqualBits, ThatChangeByThemselvesAreNotToldOfTheRestToo) {
  process({of("again", 4, "0001"), of("streams_own", 3, "0003"), of("workspace", 3, "0005")});
  process({of("again", 4, "0002"), of("streams_own", 3, "0004"), of("workspace", 3, "0006")});
  ResultBits other = of("streams_own", 2);
  other.case_name = "matmul/bits/shape:512x512x1024/type:fp32/variant:streams_own";
  process({other});
  const auto findings = said(bits_findings(read()));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[0].sentence, HasSubstr("the library adds in an order that changes"));
  EXPECT_EQ(findings[1].cases, other.case_name) << "another shape is another thing";
}

TEST_F(EqualBits, OfTheHostAreAskedForWithWhatItHas) {
  meta["devices"].push_back(fields_to_json(a_device("host-1", "AMD EPYC", "host")));
  process({of("again", 2, "0001")}, "host-1");
  process({of("again", 2, "0001")}, "host-1");
  const Finding found = only(said(bits_findings(read())));
  EXPECT_EQ(found.subject, "AMD EPYC");
  EXPECT_EQ(found.remedy, "Compare results within a tolerance, or let the library use one thread.");
}

TEST_F(EqualBits, OfAnotherKindOfCaseAreLeftOut) {
  ResultBits bits;
  bits.case_name = "matmul/other/size:4";
  bits.hash = "0001";
  process({bits});
  const SessionData session = read();
  EXPECT_THAT(session.bits, SizeIs(1));
  EXPECT_THAT(bits_counts(session), IsEmpty());
}

}  // namespace
}  // namespace launchgap
