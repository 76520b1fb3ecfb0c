#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"
#include "harness/summary/table_makers.h"

namespace launchgap {

Table choices_table() {
  const auto of_choice = [](auto Choice::*field) {
    return [field](const ChoiceInfo& info) { return info.record.*field; };
  };
  return make_table<ChoiceInfo>(
      "choices.csv",
      "way in which a library could compute a case, and run",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const ChoiceInfo& info : from.session.choices) put(info);
      },
      {{"device_id", &ChoiceInfo::device},
       {"arm", &ChoiceInfo::arm},
       {"process_config", [](const ChoiceInfo& info) { return info.process_config.text(); }},
       {"replicate", &ChoiceInfo::replicate},
       {"case", of_choice(&Choice::case_name)},
       {"by", "Who offers or selects it.", of_choice(&Choice::by)},
       {"candidate", "Its place among what is offered, from 0.", of_choice(&Choice::candidate)},
       {"algorithm", "The library's number or name of it.", of_choice(&Choice::algorithm)},
       {"engine",
        "The library's number of its engine, of all that it has; empty where it has none.",
        of_choice(&Choice::engine)},
       {"notes",
        "What the library says of the engine, in words: what it does to numbers, and else.",
        of_choice(&Choice::notes)},
       {"tile", "The library's number of its tile.", of_choice(&Choice::tile)},
       {"stages",
        "The library's number of its stages in shared memory.",
        of_choice(&Choice::stages)},
       {"split",
        "Into how many parts the sums are split, each for blocks of its own.",
        of_choice(&Choice::split)},
       {"waves",
        "Waves of blocks that it takes on the device, as the library says.",
        of_choice(&Choice::waves)},
       {"workspace_bytes",
        "Memory that it wants beside operands and result.",
        of_choice(&Choice::workspace_bytes)},
       {"median_ns", "Its time, by samples of its own.", of_choice(&Choice::median_ns)},
       {"times", "How many of the process's selections had it first.", of_choice(&Choice::times)},
       {"outcome",
        "chosen, slower, wrong (its result; it is never chosen) or failed; selected: by the "
        "library.",
        of_choice(&Choice::outcome)},
       {"reason", "Why it is wrong or failed.", of_choice(&Choice::reason)}});
}

}  // namespace launchgap
