// What the system did to the thread that launches, by block, as a record with its fields.
// docs/record-schema.md says what they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/core/thread_events.h"
#include "harness/record/fields.h"

namespace launchgap {

/// Of a block of which a sample took longer than usual; others have none.
struct ThreadEventsRecord {
  static constexpr std::string_view kName = "thread_events";
  std::string case_name;
  int block = 0;
  std::vector<WatchedSample> slow;  // by their place
  ThreadEvents usual;               // while the other samples were taken

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field.natural("block", self.block);
    field.optional("slow", self.slow);
    field.optional("usual", self.usual);
  }
};

}  // namespace launchgap
