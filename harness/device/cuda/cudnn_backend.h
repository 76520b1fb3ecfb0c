// cuDNN's graph interface in C: descriptors with attributes, the graph of one convolution, the
// engines that the library offers for it, and plans to run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/device/convolution.h"
#include "harness/device/cuda/cudnn_library.h"

namespace launchgap::cuda {

/// Throws Unsupported, with the version that is needed, where the library has no graph interface or
/// does not know the type.
void need_cudnn_graph(const Cudnn& library, const ProductType& type, TensorLayout layout);

/// One of the library's descriptors: made, given its attributes, and finalised before it is used.
/// Whatever the library refuses is thrown as Cudnn::check() does, with what it was about.
class CudnnDescriptor {
 public:
  /// `what` is for messages: "a tensor".
  CudnnDescriptor(const Cudnn& library, abi::CudnnDescriptorType type, const char* what);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;
  ~CudnnDescriptor();

  void set(int attribute, abi::CudnnAttributeType type, std::int64_t count, const void* elements);
  void set_integers(int attribute, std::span<const std::int64_t> values);
  void set_integer(int attribute, std::int64_t value) { set_integers(attribute, {&value, 1}); }
  void set_enum(int attribute, abi::CudnnAttributeType type, int value);
  void set_pointers(int attribute, std::span<const void* const> values);
  void set_handle(int attribute, abi::CudnnHandle handle);
  void set_descriptor(int attribute, const CudnnDescriptor& value);
  void finalize();

  /// How many elements the library has, or was asked for where that is less: never more than were
  /// asked for, whatever it answers.
  std::size_t get(int attribute,
                  abi::CudnnAttributeType type,
                  std::size_t requested,
                  void* elements) const;
  /// What the library says of the count where it is asked for no element.
  std::int64_t count(int attribute, abi::CudnnAttributeType type) const;
  std::int64_t integer(int attribute) const;

  abi::CudnnBackendDescriptor raw() const { return descriptor_; }

 private:
  void check(abi::CudnnStatus status, const char* call) const;

  const Cudnn* cudnn_;
  const char* what_;
  abi::CudnnBackendDescriptor descriptor_ = nullptr;
};

/// For whom engines are asked for: a handle's GPU, or, without a handle, one with these properties,
/// of which cuDNN tells without having it.
struct CudnnTarget {
  abi::CudnnHandle handle = nullptr;
  const CudnnDescriptor* device = nullptr;
};

/// An engine with its settings, as the library's heuristics offer it.
struct CudnnEngine {
  std::int64_t index = 0;                           // the library's own number, of all its engines
  std::vector<std::pair<int, std::int64_t>> knobs;  // the number of a setting, and its value
  std::vector<int> numerical_notes, behavior_notes;

  /// Engine and settings: what tells it from the others of the same graph.
  bool operator==(const CudnnEngine& other) const {
    return index == other.index && knobs == other.knobs;
  }
  bool has(abi::CudnnNumericalNote note) const;
  bool has(abi::CudnnBehaviorNote note) const;
  /// Whether it may transform its inputs (Winograd, FFT). Of FP32 the notes do not tell: engine 17
  /// of cuDNN 9.14 makes 10.99992 of a weight gradient of 11 (seen on an H200), and has none.
  bool transforms(const ProductType& type) const;
  /// Whether it may compute products of this type: what it does to numbers is what the type says,
  /// and it takes tensors as they are.
  bool serves(const ProductType& type) const;
  std::string name() const;   // "engine 28, knobs 2=5 14=3"
  std::string notes() const;  // "tensor cores, nondeterministic"; empty where there are none
};

struct CudnnOffer {
  CudnnEngine engine;
  CudnnDescriptor config;
};

/// Names of the three tensors in a graph.
inline constexpr std::int64_t kCudnnX = 1, kCudnnW = 2, kCudnnY = 3;

/// One convolution as a graph of one operation. Tensors are in the shape's layout; `any` is NCHW.
class CudnnConvolutionGraph {
 public:
  CudnnConvolutionGraph(const Cudnn& library, CudnnTarget target, const ConvolutionShape& shape);

  /// What the heuristics offer in this mode, asked anew, in their order: as many as really come,
  /// which may be fewer than the library announces. Throws where they cannot be asked.
  std::vector<CudnnOffer> offers(abi::CudnnHeuristics mode) const;
  /// Throws where the library cannot make one.
  CudnnDescriptor plan(const CudnnOffer& offer) const;

 private:
  const Cudnn& cudnn_;
  CudnnTarget target_;
  std::vector<CudnnDescriptor> parts_;  // before the graph that refers to them
  CudnnDescriptor graph_;
};

}  // namespace launchgap::cuda
