// The tables of all_tables(), each made where its rows are at home.
#pragma once

#include "harness/summary/table.h"

namespace launchgap {

// session_tables.cpp: what ran, and its statistics
Table devices_table();
Table runs_table();
Table summary_table();

// sample_tables.cpp: samples and what was read between them
Table samples_table();
Table run_quantiles_table();
Table quantiles_table();
Table sequence_table();
Table telemetry_table();

// selections.cpp: in which ways a library could compute a case, and what its calls selected
Table choices_table();
Table selections_table();

// equal_bits.cpp: whether results have the same bits
Table bits_table();

// skew.cpp: which of several devices keeps the others waiting
Table skew_table();

// ladder.cpp: one product in the idiom of each generation
Table ladder_table();

// cliffs.cpp: sizes that take longer than larger ones
Table cliffs_table();

// all_findings.cpp: what is found, from every source
Table findings_table();

// device_answers.cpp: the first screen
Table answers_table();

// variation_tables.cpp: what the statistics say
Table headlines_table();
Table variation_table();
Table outlier_devices_table();
Table fallback_table();
Table observer_table();

// trace_tables.cpp: what traced runs recorded
Table parts_table();
Table flag_check_table();
Table kernels_table();
Table memory_table();
Table traces_table();

// fleet_tables.cpp: sessions that were put together, and many devices beside each other
Table sessions_table();
Table missing_table();
Table fleet_devices_table();
Table fleet_metrics_table();
Table fleet_values_table();
Table fleet_outliers_table();
Table fleet_scores_table();
Table fleet_failures_table();

// timelines.cpp: slow samples, and what happened around them
Table slow_samples_table();
Table timelines_table();

// recording_tables.cpp: where imported runs come from, and what they show
Table recordings_table();
Table record_costs_table();
Table tail_table();
Table recorded_shares_table();

// lateness.cpp: who is late among the ranks of a job
Table ranks_table();

// night_tables.cpp: what a check against a history found
Table check_answers_table();
Table verdicts_table();
Table nights_table();

// replay_answers.cpp: how allocators stood with recorded allocations
Table replays_table();
Table replay_answers_table();
Table replay_moments_table();
Table replay_epochs_table();

// case_rates.cpp: rates beside what the GPU can do at most
Table ceilings_table();

// published.cpp: what others published of launches
Table published_table();
Table fit_table();

// gap_tables.cpp: a newer GPU against an older one
Table gap_devices_table();
Table gap_ratios_table();
Table gap_recorded_table();
Table gap_answers_table();
Table gap_values_table();
Table gap_classes_table();
Table gap_cases_table();
Table gap_limits_table();
Table gap_tuned_table();

// slow_causes.cpp: why samples are slow
Table slow_causes_table();

// run_factors.cpp: what differs between slow and fast runs
Table run_factors_table();

// interference.cpp: what makes launches slower, and which calls wait for the device
Table blocking_table();
Table interference_table();

// pattern_tables.cpp: replays of recorded steps
Table patterns_table();
Table predicted_patterns_table();

}  // namespace launchgap
