#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"
#include "harness/summary/table_makers.h"

namespace launchgap {

Table choices_table() {
  using Row = const ChoiceInfo&;
  return make_table<ChoiceInfo>(
      "choices.csv",
      "way in which a library could compute a case, and run",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const ChoiceInfo& info : from.session.choices) put(info);
      },
      {{"device_id", [](Row row) { return row.device; }},
       {"arm", [](Row row) { return row.arm; }},
       {"process_config", [](Row row) { return row.process_config.text(); }},
       {"replicate", [](Row row) { return row.replicate; }},
       {"case", [](Row row) { return row.record.case_name; }},
       {"by", "Who offers or selects it.", [](Row row) { return row.record.by; }},
       {"candidate",
        "Its place among what is offered, from 0.",
        [](Row row) { return row.record.candidate; }},
       {"algorithm",
        "The library's number or name of it.",
        [](Row row) { return row.record.algorithm; }},
       {"engine",
        "The library's number of its engine, of all that it has; empty where it has none.",
        [](Row row) { return row.record.engine; }},
       {"notes",
        "What the library says of the engine, in words: what it does to numbers, and else.",
        [](Row row) { return row.record.notes; }},
       {"tile", "The library's number of its tile.", [](Row row) { return row.record.tile; }},
       {"stages",
        "The library's number of its stages in shared memory.",
        [](Row row) { return row.record.stages; }},
       {"split",
        "Into how many parts the sums are split, each for blocks of its own.",
        [](Row row) { return row.record.split; }},
       {"waves",
        "Waves of blocks that it takes on the device, as the library says.",
        [](Row row) { return row.record.waves; }},
       {"workspace_bytes",
        "Memory that it wants beside operands and result.",
        [](Row row) { return row.record.workspace_bytes; }},
       {"median_ns",
        "Its time, by samples of its own.",
        [](Row row) { return row.record.median_ns; }},
       {"times",
        "How many of the process's selections had it first.",
        [](Row row) { return row.record.times; }},
       {"outcome",
        "chosen, slower, wrong (its result; it is never chosen) or failed; selected: by the "
        "library.",
        [](Row row) { return row.record.outcome; }},
       {"reason", "Why it is wrong or failed.", [](Row row) { return row.record.reason; }}});
}

}  // namespace launchgap
