// How a process ended.
#pragma once

#include <string>

namespace launchgap {

struct ProcessEnd {
  int exit_code = 0;     // when it exited
  int signal = 0;        // when a signal ended it
  bool unknown = false;  // somebody else took the status

  bool clean() const { return signal == 0 && exit_code == 0 && !unknown; }
  std::string text() const;  // "exited with 3", "was killed by SIGABRT"
};

}  // namespace launchgap
