// Rows of a Chrome trace that TensorFlow or JAX wrote: TensorBoard's `*.trace.json.gz`, and
// timelines of TensorFlow 1 (`timeline.Timeline` of a RunMetadata).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/import/chrome_event.h"
#include "harness/import/profiled_events.h"
#include "harness/import/recording.h"

namespace launchgap::recording {

class TensorflowRows {
 public:
  TensorflowRows(Recording& recording, Process& process)
      : recording_(recording), process_(process), events_(recording, process) {}

  /// Any event; those of other rows are passed over. The names of rows come before their events.
  void take(const ChromeEvent& event);
  /// When all is taken. Throws Error if there were such rows, and nothing in the file is of a GPU.
  void finish();

 private:
  enum class Kind : std::uint8_t {
    other,
    threads,     // "/host:CPU"
    lines,       // "/device:GPU:0": its lines are streams, and what is derived from them
    stream,      // "/device:GPU:0/stream:13 Compute", "/gpu:0/stream:13 Compute"
    copies,      // "/device:GPU:0/memcpy Compute": those of the streams once more
    scheduling,  // "/job:localhost/…/device:GPU:0 Compute": of ops for a GPU, on the host
  };
  struct Row {
    Kind kind = Kind::other;
    std::uint64_t gpu = 0, stream = 0;
    std::string name;
  };
  /// An op of TensorFlow 1, or work of one; its name is that in the graph.
  struct Op {
    std::int64_t begin_ns, end_ns;
    std::uint32_t name;  // of op_names_
    bool begins_run;
  };
  /// What a GPU did. Its kind is that of the op, "MatMul".
  struct Work {
    Op op;
    std::uint64_t gpu, stream;
    std::string kind;
  };
  using Copy = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::uint32_t>;
  static Copy key_of(const Work& work) {
    return {work.gpu, work.op.begin_ns, work.op.end_ns, work.op.name};
  }

  static Row row_named(std::string_view name);
  bool take_name(const ChromeEvent& event);
  void take_of_line(const Row& row, const ChromeEvent& event, const ProfiledEvent& own);
  Op op_of(const ChromeEvent& event, const ProfiledEvent& own);
  void refuse_host_alone() const;
  void take_work();
  void make_steps();
  void remark_on_ops();

  Recording& recording_;
  Process& process_;
  ProfiledEvents events_;
  std::map<std::string, Row, std::less<>> rows_;                      // by pid
  std::map<std::pair<std::string, std::string>, std::string> lines_;  // by pid and tid
  std::unordered_map<std::string, std::uint32_t> op_names_;
  std::vector<Op> ops_;
  std::vector<Work> work_;
  std::set<Copy> copies_;  // what the row of copies has
  std::string scheduler_;  // the row of ops, as a thread
  bool is_timeline_ = false, has_events_ = false;
};

}  // namespace launchgap::recording
