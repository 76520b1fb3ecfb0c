// The fake libcudnn's graph interface: descriptors with attributes, and for graphs of one
// convolution the engines that the node says. What is refused, with which status and when, is what
// cuDNN 9.19 does where it is asked without a GPU: types and counts are checked as attributes are
// set, what belongs together as descriptors are finalised, and what nothing computes has no engine.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "harness/device/cuda/abi/cudnn_backend.h"
#include "tests/fake_cuda/cudnn.h"

namespace launchgap::fake {
namespace {

/// What the thread's last call found wrong.
thread_local std::string last_error;

CudnnStatus fails(const Failure& failure, const char* why) {
  last_error = why;
  return status_of(failure);
}

#define LAUNCHGAP_REFUSE_IF(condition, failure) \
  if (condition) return fails(failure, #condition)

/// An engine of the fake, with its settings.
struct Engine {
  std::int64_t index = 0;
  std::vector<std::pair<int, std::int64_t>> knobs;
  std::vector<int> numerical_notes, behavior_notes;
  double slowdown = 1;
  std::size_t workspace_bytes = 0;
  bool tf32 = false;
  bool has_plan = true;  // else no plan of it can be made
  bool wrong = false;
};

/// A graph that was finalised.
struct Graph {
  ConvolutionWork work;               // without memory
  std::array<std::int64_t, 3> ids{};  // of x, w and y
  CudnnHandle handle = nullptr;
};

/// A descriptor: what was set, and what it became.
struct Descriptor {
  int type = 0;
  bool finalized = false;
  std::map<int, std::vector<unsigned char>> values;  // by attribute
  std::optional<ConvolutionWork> settings;           // of a convolution
  std::optional<Graph> graph;                        // of a graph, heuristics, a plan
  std::vector<Engine> engines;                       // of heuristics; one of all that has one
  std::size_t announced = 0;                         // of heuristics
  std::pair<int, std::int64_t> knob;

  template <class T>
  std::vector<T> get(int attribute) const {
    const auto found = values.find(attribute);
    if (found == values.end()) return {};
    std::vector<T> all(found->second.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), found->second.data(), all.size() * sizeof(T));
    return all;
  }
  template <class T>
  std::optional<T> first(int attribute) const {
    const std::vector<T> all = get<T>(attribute);
    return all.empty() ? std::nullopt : std::optional(all.front());
  }
  /// A descriptor that this one was given, if it is finalised and of this type.
  const Descriptor* descriptor(int attribute, int its_type) const {
    const auto given = first<CudnnBackendDescriptor>(attribute);
    const auto* const found = given ? static_cast<const Descriptor*>(*given) : nullptr;
    return found != nullptr && found->type == its_type && found->finalized ? found : nullptr;
  }
};

/// An attribute that a descriptor takes: its type, and how many elements.
struct Taken {
  int attribute;
  int type;
  std::int64_t least = 1, most = 1;
};
constexpr std::int64_t kMostDimensions = 64;  // more than a tensor of any engine has
constexpr int kScalar = -1;                   // float, double or int

/// A convolution's operation; alpha is the first of its attributes, then beta and the convolution.
struct OperationType {
  int type;
  Direction direction;
  int alpha, x, w, y;  // attributes: their order is not that of the directions
};
const OperationType& operation_of(int type) {
  static constexpr OperationType kTypes[] = {{kCudnnForwardDescriptor,
                                              Direction::forward,
                                              kCudnnForwardAlpha,
                                              kCudnnForwardX,
                                              kCudnnForwardW,
                                              kCudnnForwardY},
                                             {kCudnnBackwardDataDescriptor,
                                              Direction::data,
                                              kCudnnDataAlpha,
                                              kCudnnDataDx,
                                              kCudnnDataW,
                                              kCudnnDataDy},
                                             {kCudnnBackwardFilterDescriptor,
                                              Direction::filter,
                                              kCudnnFilterAlpha,
                                              kCudnnFilterX,
                                              kCudnnFilterDw,
                                              kCudnnFilterDy}};
  return *std::ranges::find(kTypes, type, &OperationType::type);
}

std::vector<Taken> taken_by(int type) {
  switch (type) {
    case kCudnnTensorDescriptor:
      return {{kCudnnTensorAlignment, kCudnnTypeInt64},
              {kCudnnTensorDataType, kCudnnTypeDataType},
              {kCudnnTensorDimensions, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnTensorStrides, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnTensorId, kCudnnTypeInt64}};
    case kCudnnConvolutionDescriptor:
      return {{kCudnnConvolutionComputeType, kCudnnTypeDataType},
              {kCudnnConvolutionModeAttribute, kCudnnTypeConvolutionMode},
              {kCudnnConvolutionDilations, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnConvolutionStrides, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnConvolutionPostPaddings, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnConvolutionPrePaddings, kCudnnTypeInt64, 1, kMostDimensions},
              {kCudnnConvolutionDimensions, kCudnnTypeInt64}};
    case kCudnnForwardDescriptor:
    case kCudnnBackwardDataDescriptor:
    case kCudnnBackwardFilterDescriptor: {
      const int first = operation_of(type).alpha;
      return {{first, kScalar},
              {first + 1, kScalar},
              {first + 2, kCudnnTypeDescriptor},
              {first + 3, kCudnnTypeDescriptor},
              {first + 4, kCudnnTypeDescriptor},
              {first + 5, kCudnnTypeDescriptor}};
    }
    case kCudnnOperationGraphDescriptor:
      return {{kCudnnGraphHandle, kCudnnTypeHandle},
              {kCudnnGraphOperations, kCudnnTypeDescriptor, 1, 50}};
    case kCudnnHeuristicsDescriptor:
      return {{kCudnnHeuristicsMode, kCudnnTypeHeuristicsMode},
              {kCudnnHeuristicsGraph, kCudnnTypeDescriptor}};
    case kCudnnPlanDescriptor:
      return {{kCudnnPlanHandle, kCudnnTypeHandle}, {kCudnnPlanConfig, kCudnnTypeDescriptor}};
    case kCudnnVariantPackDescriptor:
      return {{kCudnnPackIds, kCudnnTypeInt64, 1, 100},
              {kCudnnPackPointers, kCudnnTypePointer, 1, 100},
              {kCudnnPackWorkspace, kCudnnTypePointer}};
    default:
      return {};
  }
}

std::size_t bytes_of(int type) {
  switch (type) {
    case kCudnnTypeHandle:
    case kCudnnTypePointer:
    case kCudnnTypeDescriptor:
      return sizeof(void*);
    case kCudnnTypeInt64:
      return sizeof(std::int64_t);
    case kCudnnTypeDouble:
      return sizeof(double);
    default:
      return sizeof(int);
  }
}

CudnnStatus finalize_tensor(Descriptor& its) {
  const auto dimensions = its.get<std::int64_t>(kCudnnTensorDimensions),
             strides = its.get<std::int64_t>(kCudnnTensorStrides);
  LAUNCHGAP_REFUSE_IF(dimensions.empty() || dimensions.size() != strides.size(), kBadParameter);
  LAUNCHGAP_REFUSE_IF(std::ranges::min(dimensions) < 1 || std::ranges::min(strides) < 1,
                      kBadParameter);
  const auto type = its.first<int>(kCudnnTensorDataType);
  LAUNCHGAP_REFUSE_IF(!type || !element_type_of(*type), kBadParameter);
  LAUNCHGAP_REFUSE_IF(!its.first<std::int64_t>(kCudnnTensorId), kBadParameter);
  const std::int64_t alignment = its.first<std::int64_t>(kCudnnTensorAlignment).value_or(0);
  LAUNCHGAP_REFUSE_IF(alignment < 1 || (alignment & (alignment - 1)) != 0, kBadParameter);
  return kCudnnSuccess;
}

CudnnStatus finalize_convolution(Descriptor& its) {
  const auto dilations = its.get<std::int64_t>(kCudnnConvolutionDilations),
             strides = its.get<std::int64_t>(kCudnnConvolutionStrides),
             before = its.get<std::int64_t>(kCudnnConvolutionPrePaddings),
             behind = its.get<std::int64_t>(kCudnnConvolutionPostPaddings);
  LAUNCHGAP_REFUSE_IF(its.first<std::int64_t>(kCudnnConvolutionDimensions) != 2, kBadParameter);
  LAUNCHGAP_REFUSE_IF(
      dilations.size() != 2 || strides.size() != 2 || before.size() != 2 || behind.size() != 2,
      kBadParameter);
  LAUNCHGAP_REFUSE_IF(std::ranges::min(dilations) < 1 || std::ranges::min(strides) < 1 ||
                          std::ranges::min(before) < 0,
                      kBadParameter);
  LAUNCHGAP_REFUSE_IF(before != behind, kNotSupportedByCudnn);  // the fake pads both sides alike
  LAUNCHGAP_REFUSE_IF(its.first<int>(kCudnnConvolutionModeAttribute) != int{kCudnnCrossCorrelation},
                      kNotSupportedByCudnn);
  LAUNCHGAP_REFUSE_IF(!its.first<int>(kCudnnConvolutionComputeType), kBadParameter);
  ConvolutionWork& settings = its.settings.emplace();
  settings.pad_h = static_cast<std::size_t>(before[0]);
  settings.pad_w = static_cast<std::size_t>(before[1]);
  settings.stride_h = static_cast<std::size_t>(strides[0]);
  settings.stride_w = static_cast<std::size_t>(strides[1]);
  settings.dilation_h = static_cast<std::size_t>(dilations[0]);
  settings.dilation_w = static_cast<std::size_t>(dilations[1]);
  return kCudnnSuccess;
}

struct GraphTensor {
  Tensor tensor;
  bool packed = false;  // else its strides are of no layout
  std::int64_t id = 0;
};

GraphTensor tensor_of(const Descriptor& its) {
  const auto sizes = its.get<std::int64_t>(kCudnnTensorDimensions),
             strides = its.get<std::int64_t>(kCudnnTensorStrides);
  GraphTensor made;
  Tensor& tensor = made.tensor;
  tensor.type = *element_type_of(*its.first<int>(kCudnnTensorDataType));
  made.id = *its.first<std::int64_t>(kCudnnTensorId);
  if (sizes.size() != 4) return made;
  const std::int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  using Strides = std::vector<std::int64_t>;
  const bool nhwc = strides == Strides{h * w * c, 1, w * c, c};
  made.packed = nhwc || strides == Strides{c * h * w, h * w, w, 1};
  tensor.layout = nhwc ? Layout::nhwc : Layout::nchw;
  tensor.extents = {static_cast<std::size_t>(sizes[0]),
                    static_cast<std::size_t>(c),
                    static_cast<std::size_t>(h),
                    static_cast<std::size_t>(w)};
  return made;
}

/// Whether sums are made in a type that belongs to the operands'.
bool computes(kernels::ElementType type, int compute) {
  switch (type) {
    case kernels::ElementType::fp64:
      return compute == kCudnnDouble;
    case kernels::ElementType::int8:
      return compute == kCudnnInt32;
    case kernels::ElementType::fp8_e4m3:
    case kernels::ElementType::fp8_e5m2:
      return compute == kCudnnFloat || compute == kCudnnFastFloatForFp8;
    case kernels::ElementType::fp16:
      return compute == kCudnnFloat || compute == kCudnnHalf;
    default:
      return compute == kCudnnFloat;
  }
}

CudnnStatus finalize_operation(Descriptor& its) {
  const auto& [type, direction, first, x_at, w_at, y_at] = operation_of(its.type);
  const Descriptor* const convolution = its.descriptor(first + 2, kCudnnConvolutionDescriptor);
  const Descriptor* const x = its.descriptor(x_at, kCudnnTensorDescriptor);
  const Descriptor* const w = its.descriptor(w_at, kCudnnTensorDescriptor);
  const Descriptor* const y = its.descriptor(y_at, kCudnnTensorDescriptor);
  LAUNCHGAP_REFUSE_IF(!x || !w || !y || !convolution, kBadParameter);
  LAUNCHGAP_REFUSE_IF(!its.values.contains(first) || !its.values.contains(first + 1),
                      kBadParameter);
  const GraphTensor input = tensor_of(*x), filter = tensor_of(*w), output = tensor_of(*y);
  const std::size_t channels = input.tensor.extents.c, of_group = filter.tensor.extents.c;
  LAUNCHGAP_REFUSE_IF(of_group == 0 || channels % of_group != 0, kBadParameter);
  Graph& graph = its.graph.emplace();
  ConvolutionWork& work = graph.work = *convolution->settings;
  work.groups = channels / of_group;
  work.x = input.tensor, work.w = filter.tensor, work.y = output.tensor;
  LAUNCHGAP_REFUSE_IF(output_extents(work.x.extents, work.w.extents, work) != work.y.extents,
                      kBadParameter);
  work.direction = direction;
  const bool integers = *convolution->first<int>(kCudnnConvolutionComputeType) == kCudnnInt32;
  const auto scalar = [&](int attribute) -> double {
    // Whatever its type was: a float of 1 is 1065353216 (seen with cuDNN 9.14).
    if (integers) return *its.first<int>(attribute);
    const auto wide = its.first<double>(attribute);  // of 8 bytes
    const auto narrow = its.first<float>(attribute);
    return wide ? *wide : static_cast<double>(*narrow);
  };
  work.alpha = scalar(first), work.beta = scalar(first + 1);
  graph.ids = {input.id, filter.id, output.id};
  // Of another layout, a mix of layouts, or types that do not belong together there is no engine.
  const Layout layout = work.x.layout;
  if (input.packed && filter.packed && output.packed && layout == work.w.layout &&
      layout == work.y.layout &&
      computes(work.operand().type, *convolution->first<int>(kCudnnConvolutionComputeType)))
    its.announced = 1;
  return kCudnnSuccess;
}

CudnnStatus finalize_graph(Descriptor& its) {
  const auto operations = its.get<CudnnBackendDescriptor>(kCudnnGraphOperations);
  LAUNCHGAP_REFUSE_IF(operations.empty(), kBadParameter);
  LAUNCHGAP_REFUSE_IF(operations.size() > 1, kNotSupportedByCudnn);
  const auto* const operation = static_cast<const Descriptor*>(operations.front());
  LAUNCHGAP_REFUSE_IF(!operation || !operation->finalized, kNotFinalized);
  LAUNCHGAP_REFUSE_IF(!operation->graph, kBadParameter);
  its.graph = operation->graph;
  its.announced = operation->announced;
  its.graph->handle = its.first<CudnnHandle>(kCudnnGraphHandle).value_or(nullptr);
  LAUNCHGAP_REFUSE_IF(!its.graph->handle, kBadParameter);
  return kCudnnSuccess;
}

/// Types that belong together, and what the device and the fake's engines take.
bool is_served(const ConvolutionWork& work, const DeviceDescription& device) {
  using kernels::ElementType;
  const ElementType type = work.operand().type;
  if (device.capability() < facts_of(type).first_capability) return false;
  const bool fp8 = type == ElementType::fp8_e4m3 || type == ElementType::fp8_e5m2;
  if (fp8 || type == ElementType::int8) {
    if (work.direction != Direction::forward || work.x.layout != Layout::nhwc) return false;
    if (work.w.extents.c % 16 != 0) return false;
    const bool result = fp8 ? work.y.type == ElementType::bf16 : work.y.type == ElementType::int32;
    const bool filters = work.w.type == type || (fp8 && work.w.type == ElementType::fp8_e4m3);
    return result && filters;
  }
  return work.x.type == work.w.type && work.x.type == work.y.type;
}

/// What the heuristics of a mode offer, in their order.
std::vector<Engine> engines_of(const ConvolutionWork& work,
                               const DeviceDescription& device,
                               int mode) {
  using kernels::ElementType;
  constexpr std::size_t kTooLarge = std::size_t{2} << 30;
  const Node& node = *cudnn_node();
  const ElementType type = work.operand().type;
  const std::size_t filter_bytes = (work.w.bytes() + 15) / 16 * 16;
  const bool narrow = type != ElementType::fp32 && type != ElementType::fp64;
  const std::vector<int> cores = narrow && device.capability() >= 70
                                     ? std::vector<int>{kCudnnNoteTensorCore}
                                     : std::vector<int>{};
  if (mode == kCudnnHeuristicsFallback) return {{0, {}, {kCudnnNoteStrictNan}, {}, 3}};
  std::vector<Engine> all;
  if (arithmetic(device, type, true).tf32) {
    all.push_back({67, {{2, 5}, {13, 0}}, {kCudnnNoteTensorCore}, {}, 1, filter_bytes, true});
    all.push_back({71, {}, {kCudnnNoteTensorCore, kCudnnNoteDownConvertInputs}, {}, 1.1, 0, true});
  }
  all.push_back({60, {}, cores, {kCudnnNoteRuntimeCompilation}, 1, 0, false, false});
  all.push_back({61, {{25, 1}}, cores, {}, 1, kTooLarge});
  all.push_back({62, {}, cores, {kCudnnNoteFilterReorder}, 1, 0});
  const std::size_t first = all.size();
  for (std::size_t i = 0; i < node.cudnn_engines.size(); ++i) {
    const double slowdown = node.cudnn_engines[i];
    const auto number = static_cast<std::int64_t>(i);
    const bool wrong = node.cudnn_engine_wrong == static_cast<int>(i);
    Engine engine{28, {{2, 5 - number}, {14, 3}}, cores, {}, slowdown, 0, false, true, wrong};
    if (i == 0) engine.workspace_bytes = filter_bytes;
    if (i == 2) {
      engine.index = 34, engine.knobs.clear(), engine.workspace_bytes = std::size_t{1} << 20;
      engine.numerical_notes.push_back(kCudnnNoteNondeterministic);
      engine.behavior_notes.push_back(kCudnnNoteRuntimeCompilation);
    }
    if (i == 3) {
      if (type != ElementType::fp32 || work.w.extents.h != 3 || work.w.extents.w != 3 ||
          work.stride_h * work.stride_w * work.dilation_h * work.dilation_w != 1 ||
          work.direction == Direction::filter)
        continue;
      engine.index = 46, engine.knobs.clear();
      engine.numerical_notes = {kCudnnNoteWinograd, kCudnnNoteWinograd4x4};
    }
    all.push_back(std::move(engine));
  }
  const bool models = mode == kCudnnHeuristicsA || mode == kCudnnHeuristicsInstant;
  if (models && node.cudnn_flips_every > 0 && all.size() > first + 1) {
    static std::atomic<int> answers{0};
    if (++answers % node.cudnn_flips_every == 0) std::swap(all[first], all[first + 1]);
  }
  return all;
}

CudnnStatus finalize_heuristics(Descriptor& its) {
  const auto given = its.first<CudnnBackendDescriptor>(kCudnnHeuristicsGraph);
  const auto* const graph = given ? static_cast<const Descriptor*>(*given) : nullptr;
  LAUNCHGAP_REFUSE_IF(!graph, kBadParameter);
  LAUNCHGAP_REFUSE_IF(!graph->finalized, kNotFinalized);
  const int mode = its.first<int>(kCudnnHeuristicsMode).value_or(kCudnnHeuristicsInstant);
  const int newest =
      cudnn_node()->cudnn_version < 8200 ? int{kCudnnHeuristicsB} : int{kCudnnHeuristicsA};
  LAUNCHGAP_REFUSE_IF(mode < 0 || mode > newest, kNotSupportedByCudnn);
  const DeviceDescription* const device = current_device();
  LAUNCHGAP_REFUSE_IF(device == nullptr, kInternalError);
  its.graph = graph->graph;
  if (graph->announced != 0 && is_served(its.graph->work, *device))
    its.engines = engines_of(its.graph->work, *device, mode);
  // As the real one, it announces engines that then turn out not to serve.
  its.announced = its.engines.size() + 2;
  return kCudnnSuccess;
}

CudnnStatus finalize_plan(Descriptor& its) {
  LAUNCHGAP_REFUSE_IF(!its.first<CudnnHandle>(kCudnnPlanHandle), kBadParameter);
  const Descriptor* const config = its.descriptor(kCudnnPlanConfig, kCudnnEngineConfigDescriptor);
  LAUNCHGAP_REFUSE_IF(!config, kNotFinalized);
  LAUNCHGAP_REFUSE_IF(!config->engines.front().has_plan, kNotSupportedByCudnn);
  its.graph = config->graph;
  its.engines = config->engines;
  return kCudnnSuccess;
}

CudnnStatus finalize_pack(Descriptor& its) {
  const auto ids = its.get<std::int64_t>(kCudnnPackIds);
  const auto pointers = its.get<void*>(kCudnnPackPointers);
  LAUNCHGAP_REFUSE_IF(ids.empty() || ids.size() != pointers.size(), kBadParameter);
  return kCudnnSuccess;
}

CudnnStatus finalize(Descriptor& its) {
  switch (its.type) {
    case kCudnnTensorDescriptor:
      return finalize_tensor(its);
    case kCudnnConvolutionDescriptor:
      return finalize_convolution(its);
    case kCudnnForwardDescriptor:
    case kCudnnBackwardDataDescriptor:
    case kCudnnBackwardFilterDescriptor:
      return finalize_operation(its);
    case kCudnnOperationGraphDescriptor:
      return finalize_graph(its);
    case kCudnnHeuristicsDescriptor:
      return finalize_heuristics(its);
    case kCudnnPlanDescriptor:
      return finalize_plan(its);
    case kCudnnVariantPackDescriptor:
      return finalize_pack(its);
    default:
      return fails(kBadParameter, "nothing to finalise it from");  // engines come from heuristics
  }
}

/// Where an attribute's elements go, and how many of them.
struct Answer {
  std::int64_t requested;
  std::int64_t* count;
  void* elements;

  /// Fills the caller's descriptors of this type, as many as there are of both.
  template <class Fill>
  CudnnStatus fill(int type, std::size_t available, Fill fill_one) const {
    const std::size_t most = std::min(available, static_cast<std::size_t>(requested));
    auto* const given = static_cast<CudnnBackendDescriptor*>(elements);
    for (std::size_t i = 0; i < most; ++i) {
      auto* const one = static_cast<Descriptor*>(given[i]);
      LAUNCHGAP_REFUSE_IF(!one, kNullPointer);
      LAUNCHGAP_REFUSE_IF(one->type != type, kBadParameter);
      fill_one(*one, i);
      one->finalized = true;
    }
    *count = static_cast<std::int64_t>(most);
    return kCudnnSuccess;
  }
  template <class T>
  CudnnStatus copy(const std::vector<T>& all) const {
    const std::size_t most = std::min(all.size(), static_cast<std::size_t>(requested));
    if (most > 0) std::memcpy(elements, all.data(), most * sizeof(T));
    *count = static_cast<std::int64_t>(most);
    return kCudnnSuccess;
  }
};

CudnnStatus get(const Descriptor& its, int attribute, int type, const Answer& answer) {
  const auto is = [&](int its_type, int its_attribute, int attribute_type) {
    return its.type == its_type && attribute == its_attribute && type == attribute_type;
  };
  if (is(kCudnnHeuristicsDescriptor, kCudnnHeuristicsResults, kCudnnTypeDescriptor)) {
    if (answer.requested == 0) {
      *answer.count = static_cast<std::int64_t>(its.announced);
      return kCudnnSuccess;
    }
    const auto config = [&](Descriptor& one, std::size_t i) {
      one.engines = {its.engines[i]};
      one.graph = its.graph;
    };
    return answer.fill(kCudnnEngineConfigDescriptor, its.engines.size(), config);
  }
  if (is(kCudnnKnobChoiceDescriptor, kCudnnKnobType, kCudnnTypeKnob))
    return answer.copy(std::vector{its.knob.first});
  if (is(kCudnnKnobChoiceDescriptor, kCudnnKnobValue, kCudnnTypeInt64))
    return answer.copy(std::vector{its.knob.second});
  LAUNCHGAP_REFUSE_IF(its.engines.empty(), kBadParameter);
  const Engine& engine = its.engines.front();
  if (is(kCudnnEngineConfigDescriptor, kCudnnConfigEngine, kCudnnTypeDescriptor)) {
    return answer.fill(kCudnnEngineDescriptor, 1, [&](Descriptor& one, std::size_t) {
      one.engines = its.engines;
    });
  }
  if (is(kCudnnEngineConfigDescriptor, kCudnnConfigKnobs, kCudnnTypeDescriptor)) {
    return answer.fill(kCudnnKnobChoiceDescriptor,
                       engine.knobs.size(),
                       [&](Descriptor& one, std::size_t i) { one.knob = engine.knobs[i]; });
  }
  if (is(kCudnnEngineDescriptor, kCudnnEngineIndex, kCudnnTypeInt64))
    return answer.copy(std::vector{engine.index});
  if (is(kCudnnEngineDescriptor, kCudnnEngineNumericalNotes, kCudnnTypeNumericalNote))
    return answer.copy(engine.numerical_notes);
  if (is(kCudnnEngineDescriptor, kCudnnEngineBehaviorNotes, kCudnnTypeBehaviorNote))
    return answer.copy(engine.behavior_notes);
  if (is(kCudnnPlanDescriptor, kCudnnPlanWorkspace, kCudnnTypeInt64))
    return answer.copy(std::vector{static_cast<std::int64_t>(engine.workspace_bytes)});
  return fails(kBadParameter, "no such attribute of this descriptor, or of another type");
}

bool is_misaligned(const void* pointer) {
  constexpr std::uintptr_t kAlignment = 16;
  return reinterpret_cast<std::uintptr_t>(pointer) % kAlignment != 0;
}

}  // namespace

EXPORT CudnnStatus cudnnBackendCreateDescriptor(int type, CudnnBackendDescriptor* made) {
  if (const CudnnStatus status = enter_cudnn("cudnnBackendCreateDescriptor")) return status;
  LAUNCHGAP_REFUSE_IF(made == nullptr, kNullPointer);
  const bool known = !taken_by(type).empty() || type == kCudnnEngineDescriptor ||
                     type == kCudnnEngineConfigDescriptor || type == kCudnnKnobChoiceDescriptor;
  LAUNCHGAP_REFUSE_IF(!known, kNotSupportedByCudnn);
  auto* const descriptor = new Descriptor;
  descriptor->type = type;
  *made = descriptor;
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnBackendDestroyDescriptor(CudnnBackendDescriptor descriptor) {
  if (const CudnnStatus status = enter_cudnn("cudnnBackendDestroyDescriptor")) return status;
  delete static_cast<Descriptor*>(descriptor);
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnBackendSetAttribute(CudnnBackendDescriptor descriptor,
                                            int attribute,
                                            int type,
                                            std::int64_t count,
                                            const void* elements) {
  if (const CudnnStatus status = enter_cudnn("cudnnBackendSetAttribute")) return status;
  LAUNCHGAP_REFUSE_IF(descriptor == nullptr, kNullPointer);
  Descriptor& its = *static_cast<Descriptor*>(descriptor);
  LAUNCHGAP_REFUSE_IF(its.finalized, kBadParameter);
  LAUNCHGAP_REFUSE_IF(elements == nullptr, kBadParameter);
  const std::vector<Taken> all = taken_by(its.type);
  const auto taken = std::ranges::find(all, attribute, &Taken::attribute);
  LAUNCHGAP_REFUSE_IF(taken == all.end(), kBadParameter);
  if (taken->type == kScalar) {
    LAUNCHGAP_REFUSE_IF(type != kCudnnTypeFloat && type != kCudnnTypeDouble &&
                            (type != kCudnnTypeInt32 || its.type == kCudnnBackwardFilterDescriptor),
                        kBadParameter);
  } else {
    LAUNCHGAP_REFUSE_IF(taken->type != type, kBadAttributeType);
  }
  LAUNCHGAP_REFUSE_IF(count < taken->least || count > taken->most, kBadParameter);
  if (type == kCudnnTypeHandle)
    LAUNCHGAP_REFUSE_IF(*static_cast<void* const*>(elements) == nullptr, kBadParameter);
  const auto* const bytes = static_cast<const unsigned char*>(elements);
  its.values[attribute].assign(bytes, bytes + static_cast<std::size_t>(count) * bytes_of(type));
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnBackendGetAttribute(CudnnBackendDescriptor descriptor,
                                            int attribute,
                                            int type,
                                            std::int64_t requested,
                                            std::int64_t* count,
                                            void* elements) {
  if (const CudnnStatus status = enter_cudnn("cudnnBackendGetAttribute")) return status;
  LAUNCHGAP_REFUSE_IF(descriptor == nullptr, kNullPointer);
  const Descriptor& its = *static_cast<const Descriptor*>(descriptor);
  LAUNCHGAP_REFUSE_IF(!its.finalized, kNotInitialized);
  LAUNCHGAP_REFUSE_IF(requested < 0 || (requested > 0 && elements == nullptr), kBadParameter);
  std::int64_t unused = 0;
  return get(its, attribute, type, {requested, count != nullptr ? count : &unused, elements});
}

EXPORT CudnnStatus cudnnBackendFinalize(CudnnBackendDescriptor descriptor) {
  if (const CudnnStatus status = enter_cudnn("cudnnBackendFinalize")) return status;
  LAUNCHGAP_REFUSE_IF(descriptor == nullptr, kNullPointer);
  Descriptor& its = *static_cast<Descriptor*>(descriptor);
  LAUNCHGAP_REFUSE_IF(its.finalized, kBadParameter);
  const CudnnStatus status = finalize(its);
  its.finalized = status == kCudnnSuccess;
  return status;
}

EXPORT CudnnStatus cudnnBackendExecute(CudnnHandle handle,
                                       CudnnBackendDescriptor plan,
                                       CudnnBackendDescriptor variant_pack) {
  const double begin = now_ns();
  if (const CudnnStatus status = enter_cudnn("cudnnBackendExecute")) return status;
  LAUNCHGAP_REFUSE_IF(handle == nullptr || plan == nullptr || variant_pack == nullptr,
                      kNullPointer);
  const Descriptor& its = *static_cast<const Descriptor*>(plan);
  const Descriptor& pack = *static_cast<const Descriptor*>(variant_pack);
  LAUNCHGAP_REFUSE_IF(its.type != kCudnnPlanDescriptor || pack.type != kCudnnVariantPackDescriptor,
                      kBadParameter);
  LAUNCHGAP_REFUSE_IF(!its.finalized || !pack.finalized, kNotFinalized);
  const Engine& engine = its.engines.front();
  const auto ids = pack.get<std::int64_t>(kCudnnPackIds);
  const auto pointers = pack.get<void*>(kCudnnPackPointers);
  std::array<void*, 3> memory{};
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto at = std::ranges::find(ids, its.graph->ids[i]) - ids.begin();
    LAUNCHGAP_REFUSE_IF(at == static_cast<std::ptrdiff_t>(ids.size()), kBadParameter);
    memory[i] = pointers[static_cast<std::size_t>(at)];
    LAUNCHGAP_REFUSE_IF(memory[i] == nullptr, kNullPointer);
    LAUNCHGAP_REFUSE_IF(is_misaligned(memory[i]), kMisalignedPointer);
  }
  void* const workspace = pack.first<void*>(kCudnnPackWorkspace).value_or(nullptr);
  LAUNCHGAP_REFUSE_IF(engine.workspace_bytes > 0 && workspace == nullptr, kNullPointer);
  LAUNCHGAP_REFUSE_IF(is_misaligned(workspace), kMisalignedPointer);
  const DeviceDescription* const device = current_device();
  LAUNCHGAP_REFUSE_IF(device == nullptr, kExecutionFailed);
  ConvolutionWork work = its.graph->work;
  const Arithmetic how = arithmetic(*device, work.operand().type, engine.tf32);
  LAUNCHGAP_REFUSE_IF(!how.tflops, kNotSupportedByCudnn);
  work.x.memory = memory[0], work.w.memory = memory[1], work.y.memory = memory[2];
  work.tf32 = how.tf32;
  Operation operation = convolution_operation(work);
  // A workspace beyond its allocation is an illegal address.
  if (engine.workspace_bytes > 0)
    operation.reads.push_back(range_of(workspace, engine.workspace_bytes));
  if (engine.wrong) spoil_first_element(operation);
  return launch(begin, handle, work, how, engine.slowdown, std::move(operation));
}

EXPORT void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message == nullptr || size == 0) return;
  std::snprintf(message, size, "%s", last_error.c_str());
  last_error.clear();
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
