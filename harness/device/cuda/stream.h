// Streams and events of the CUDA driver.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/cuda/driver.h"
#include "harness/device/device.h"

namespace launchgap::cuda {

class CudaEvent : public Event {
 public:
  /// `flags` of abi::EventFlag.
  CudaEvent(const Driver& driver, unsigned flags);
  ~CudaEvent() override;
  void wait() override;

  abi::Event handle = nullptr;

 private:
  const Driver& driver_;
};

class CudaStream : public Stream {
 public:
  /// `cooperative`: whether the device launches cooperatively, by its attribute.
  CudaStream(const Driver& driver, const StreamOptions& options, bool cooperative);
  /// The legacy default stream.
  CudaStream(const Driver& driver, bool cooperative) : driver_(driver), cooperative_(cooperative) {}
  ~CudaStream() override;

  void launch(const Kernel& kernel, LaunchShape shape, void** arguments) override;
  void launch_cooperative(const Kernel& kernel, LaunchShape shape, void** arguments) override;
  void launch_dependent(const Kernel& kernel, LaunchShape shape, void** arguments) override;
  void wait() override;
  void record(Event& event) override;
  void wait_for(Event& event) override;
  void fill_bytes(void* address, unsigned char value, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) override;

  abi::Stream handle = nullptr;

 private:
  abi::Result launch_with(abi::LaunchAttributeId attribute,
                          const Kernel& kernel,
                          LaunchShape shape,
                          void** arguments);

  const Driver& driver_;
  bool cooperative_;
};

// --- CUDA graphs, made by capturing what is launched on a stream ---

/// Runs `work` while the stream is being captured. Throws what `work` throws, with the capture
/// ended; Unsupported where the driver has no graphs.
std::unique_ptr<Graph> capture_graph(const Driver& driver,
                                     CudaStream& stream,
                                     const std::function<void()>& work);

std::unique_ptr<ExecutableGraph> instantiate_graph(const Driver& driver, const Graph& graph);

}  // namespace launchgap::cuda
