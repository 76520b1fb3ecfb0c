// Whether a GPU works: one kernel, one matrix product and one convolution, each verified.
#pragma once

#include <string>

namespace launchgap::doctor {

/// In a worker: does the steps `context`, `kernel`, `matmul`, `convolution` on a GPU and tells of
/// each {"name", "status": ok | failed | wrong | unsupported, "ms", "detail", and of a failed call
/// "library", "call", "code", "text"}. The last step, `load`, is about 100 ms of products, in the
/// midst of which clocks and PCIe link are read. A step that fails ends the steps that need it.
void prove(const std::string& uuid);

}  // namespace launchgap::doctor
