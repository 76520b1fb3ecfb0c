// Which call of which device fails, hangs or aborts.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/fake_cuda/node.h"

namespace launchgap::fake {

/// Counts calls per device and says what the description wants of each.
class Faults {
 public:
  explicit Faults(std::vector<FaultDescription> faults);

  /// Null when the call proceeds. `device` is an index into the description, or kNoDevice for a
  /// call that concerns none: it meets only the faults of every device.
  const FaultDescription* next_call(Library library, std::string_view call, int device);

  static constexpr int kNoDevice = -1;

 private:
  struct Counted {
    FaultDescription fault;
    std::map<int, long long> calls;
  };
  std::vector<Counted> faults_;
};

/// The process's node, read when it is first asked for, and what is to go wrong there.
class LoadedNode {
 public:
  /// Null when the description is unusable, which one line on stderr explains.
  const Node* get();
  /// Of a node that is usable.
  Faults& faults() { return *faults_; }

 private:
  bool attempted_ = false;
  std::optional<Node> node_;
  std::optional<Faults> faults_;
};

/// Errors after which a context answers every call with the same code.
/// Source: CUDA Driver API, CUresult: "the process must be terminated and relaunched".
bool is_sticky(int code);

}  // namespace launchgap::fake
