#include "harness/device/cuda/cudnn_backend.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"

namespace launchgap::cuda {
namespace {

/// More than any version offers for a convolution, and little enough for any answer.
constexpr std::int64_t kMostConfigs = 1000;
constexpr std::size_t kMostKnobs = 64, kMostNotes = 64;

/// In bytes: what every allocation of the driver has, and engines with wide loads want.
constexpr std::int64_t kAlignment = 16;

constexpr std::string_view kNumericalNotes[] = {"tensor cores",
                                                "inputs rounded to fewer digits",
                                                "sums in fewer digits",
                                                "FFT",
                                                "nondeterministic",
                                                "Winograd",
                                                "Winograd tile 4x4",
                                                "Winograd tile 6x6",
                                                "Winograd tile 13x13",
                                                "strict NaN"};
constexpr std::string_view kBehaviorNotes[] = {"compiled at run time",
                                               "filters in the order INT8x32",
                                               "bias in the order INT8x32",
                                               "CUDA graph",
                                               "cuBLASLt"};

CudnnDescriptor tensor_descriptor(const Cudnn& library,
                                  std::int64_t id,
                                  const Tensor4& tensor,
                                  TensorLayout layout,
                                  ElementType type) {
  const std::int64_t n = tensor.n, c = tensor.c, h = tensor.h, w = tensor.w;
  const std::array<std::int64_t, 4> dimensions = {n, c, h, w};
  const std::array<std::int64_t, 4> strides =
      layout == TensorLayout::nhwc ? std::array<std::int64_t, 4>{h * w * c, 1, w * c, c}
                                   : std::array<std::int64_t, 4>{c * h * w, h * w, w, 1};
  CudnnDescriptor made(library, abi::kCudnnTensorDescriptor, "a tensor");
  made.set_enum(abi::kCudnnTensorDataType, abi::kCudnnTypeDataType, cudnn_data_type(type));
  made.set_integers(abi::kCudnnTensorDimensions, dimensions);
  made.set_integers(abi::kCudnnTensorStrides, strides);
  made.set_integer(abi::kCudnnTensorId, id);
  made.set_integer(abi::kCudnnTensorAlignment, kAlignment);
  made.finalize();
  return made;
}

/// Groups are not told: they follow from the channels of input and filters.
CudnnDescriptor convolution_descriptor(const Cudnn& library, const ConvolutionShape& shape) {
  const std::array<std::int64_t, 2> dilations = {shape.dilation_h, shape.dilation_w},
                                    strides = {shape.stride_h, shape.stride_w},
                                    paddings = {shape.pad_h, shape.pad_w};
  CudnnDescriptor made(library, abi::kCudnnConvolutionDescriptor, "a convolution");
  made.set_enum(
      abi::kCudnnConvolutionComputeType, abi::kCudnnTypeDataType, cudnn_compute_type(shape.type));
  made.set_enum(abi::kCudnnConvolutionModeAttribute,
                abi::kCudnnTypeConvolutionMode,
                abi::kCudnnCrossCorrelation);
  made.set_integer(abi::kCudnnConvolutionDimensions, 2);
  made.set_integers(abi::kCudnnConvolutionDilations, dilations);
  made.set_integers(abi::kCudnnConvolutionStrides, strides);
  made.set_integers(abi::kCudnnConvolutionPrePaddings, paddings);
  made.set_integers(abi::kCudnnConvolutionPostPaddings, paddings);
  made.finalize();
  return made;
}

/// The attributes of a direction's operation.
struct OperationAttributes {
  abi::CudnnDescriptorType type;
  int alpha, beta, convolution, x, w, y;
};

OperationAttributes attributes_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::forward:
      break;
    case ConvolutionDirection::data:
      return {abi::kCudnnBackwardDataDescriptor,
              abi::kCudnnDataAlpha,
              abi::kCudnnDataBeta,
              abi::kCudnnDataConvolution,
              abi::kCudnnDataDx,
              abi::kCudnnDataW,
              abi::kCudnnDataDy};
    case ConvolutionDirection::filter:
      return {abi::kCudnnBackwardFilterDescriptor,
              abi::kCudnnFilterAlpha,
              abi::kCudnnFilterBeta,
              abi::kCudnnFilterConvolution,
              abi::kCudnnFilterX,
              abi::kCudnnFilterDw,
              abi::kCudnnFilterDy};
  }
  return {abi::kCudnnForwardDescriptor,
          abi::kCudnnForwardAlpha,
          abi::kCudnnForwardBeta,
          abi::kCudnnForwardConvolution,
          abi::kCudnnForwardX,
          abi::kCudnnForwardW,
          abi::kCudnnForwardY};
}

/// alpha or beta, in the type in which sums are: engines of INT8 take a float's bits for an integer
/// (seen with cuDNN 9.14), and the default of 1 likewise.
void set_scalar(CudnnDescriptor& operation, int attribute, Compute compute, int value) {
  switch (compute) {
    case Compute::fp64: {
      const double scalar = value;
      return operation.set(attribute, abi::kCudnnTypeDouble, 1, &scalar);
    }
    case Compute::int32: {
      const std::int32_t scalar = value;
      return operation.set(attribute, abi::kCudnnTypeInt32, 1, &scalar);
    }
    default: {
      const float scalar = static_cast<float>(value);
      return operation.set(attribute, abi::kCudnnTypeFloat, 1, &scalar);
    }
  }
}

template <class Note>
bool contains(const std::vector<int>& notes, Note note) {
  return std::ranges::find(notes, static_cast<int>(note)) != notes.end();
}

std::vector<int> notes_of(const CudnnDescriptor& engine,
                          int attribute,
                          abi::CudnnAttributeType type) {
  std::vector<int> notes(kMostNotes);
  notes.resize(engine.get(attribute, type, notes.size(), notes.data()));
  return notes;
}

std::vector<std::pair<int, std::int64_t>> knobs_of(const Cudnn& library,
                                                   const CudnnDescriptor& config) {
  std::vector<CudnnDescriptor> choices;
  std::vector<abi::CudnnBackendDescriptor> raw;
  for (std::size_t i = 0; i < kMostKnobs; ++i) {
    choices.emplace_back(library, abi::kCudnnKnobChoiceDescriptor, "a knob");
    raw.push_back(choices.back().raw());
  }
  const std::size_t count =
      config.get(abi::kCudnnConfigKnobs, abi::kCudnnTypeDescriptor, raw.size(), raw.data());
  std::vector<std::pair<int, std::int64_t>> knobs;
  for (std::size_t i = 0; i < count; ++i) {
    int type = 0;
    if (choices[i].get(abi::kCudnnKnobType, abi::kCudnnTypeKnob, 1, &type) == 1)
      knobs.emplace_back(type, choices[i].integer(abi::kCudnnKnobValue));
  }
  return knobs;
}

CudnnEngine engine_of(const Cudnn& library, const CudnnDescriptor& config) {
  const CudnnDescriptor engine(library, abi::kCudnnEngineDescriptor, "an engine");
  abi::CudnnBackendDescriptor raw = engine.raw();
  config.get(abi::kCudnnConfigEngine, abi::kCudnnTypeDescriptor, 1, &raw);
  return {engine.integer(abi::kCudnnEngineIndex),
          knobs_of(library, config),
          notes_of(engine, abi::kCudnnEngineNumericalNotes, abi::kCudnnTypeNumericalNote),
          notes_of(engine, abi::kCudnnEngineBehaviorNotes, abi::kCudnnTypeBehaviorNote)};
}

}  // namespace

void need_cudnn_graph(const Cudnn& library, const ProductType& type, TensorLayout layout) {
  const auto version = static_cast<long long>(library.cudnnGetVersion());
  const bool complete = library.cudnnBackendCreateDescriptor &&
                        library.cudnnBackendDestroyDescriptor && library.cudnnBackendFinalize &&
                        library.cudnnBackendSetAttribute && library.cudnnBackendGetAttribute &&
                        library.cudnnBackendExecute;
  if (version < abi::kCudnnFirstBackend || !complete) {
    throw Unsupported(
        "cuDNN {} has no graph interface: cuDNN 8.0 is the first that has it. "
        "scripts/setup --with-cuda brings one that does",
        library.facts.version);
  }
  if (type.is_fp8() && version < abi::kCudnnFirstFp8)
    throw Unsupported("cuDNN {} has no FP8: 8.6 is the first that has it", library.facts.version);
  // 9.14 takes NCHW, and computes what the same bytes are in NHWC (seen on an H200).
  if (type.is_fp8() && layout != TensorLayout::nhwc)
    throw Unsupported("cuDNN has convolutions in FP8 of tensors in NHWC alone");
}

CudnnDescriptor::CudnnDescriptor(const Cudnn& library,
                                 abi::CudnnDescriptorType type,
                                 const char* what)
    : cudnn_(&library), what_(what) {
  check(library.cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
  if (!descriptor_) throw Error("cuDNN made no descriptor of {}, and said it had", what_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : cudnn_(other.cudnn_),
      what_(other.what_),
      descriptor_(std::exchange(other.descriptor_, nullptr)) {}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(cudnn_, other.cudnn_);
  std::swap(what_, other.what_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) cudnn_->cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::set(int attribute,
                          abi::CudnnAttributeType type,
                          std::int64_t count,
                          const void* elements) {
  check(cudnn_->cudnnBackendSetAttribute(descriptor_, attribute, type, count, elements),
        "cudnnBackendSetAttribute");
}

void CudnnDescriptor::set_integers(int attribute, std::span<const std::int64_t> values) {
  set(attribute, abi::kCudnnTypeInt64, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set_enum(int attribute, abi::CudnnAttributeType type, int value) {
  set(attribute, type, 1, &value);
}

void CudnnDescriptor::set_pointers(int attribute, std::span<const void* const> values) {
  set(attribute, abi::kCudnnTypePointer, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set_handle(int attribute, abi::CudnnHandle handle) {
  set(attribute, abi::kCudnnTypeHandle, 1, &handle);
}

void CudnnDescriptor::set_descriptor(int attribute, const CudnnDescriptor& value) {
  set(attribute, abi::kCudnnTypeDescriptor, 1, &value.descriptor_);
}

void CudnnDescriptor::finalize() {
  check(cudnn_->cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize");
}

std::size_t CudnnDescriptor::get(int attribute,
                                 abi::CudnnAttributeType type,
                                 std::size_t requested,
                                 void* elements) const {
  std::int64_t answered = 0;
  const auto most = static_cast<std::int64_t>(requested);
  check(cudnn_->cudnnBackendGetAttribute(descriptor_, attribute, type, most, &answered, elements),
        "cudnnBackendGetAttribute");
  return static_cast<std::size_t>(std::clamp<std::int64_t>(answered, 0, most));
}

std::int64_t CudnnDescriptor::count(int attribute, abi::CudnnAttributeType type) const {
  std::int64_t answered = 0;
  check(cudnn_->cudnnBackendGetAttribute(descriptor_, attribute, type, 0, &answered, nullptr),
        "cudnnBackendGetAttribute");
  return answered;
}

std::int64_t CudnnDescriptor::integer(int attribute) const {
  std::int64_t value = 0;
  if (get(attribute, abi::kCudnnTypeInt64, 1, &value) != 1)
    throw Error("cuDNN does not tell attribute {} of {}", attribute, what_);
  return value;
}

void CudnnDescriptor::check(abi::CudnnStatus status, const char* call) const {
  if (status == abi::kCudnnSuccess) return;
  std::array<char, 512> detail = {};
  if (cudnn_->cudnnGetLastErrorString)
    cudnn_->cudnnGetLastErrorString(detail.data(), detail.size());
  detail.back() = '\0';
  cudnn_->check(status, fmt::format("{} of {}", call, what_), detail.data());
}

bool CudnnEngine::has(abi::CudnnNumericalNote note) const {
  return contains(numerical_notes, note);
}

bool CudnnEngine::has(abi::CudnnBehaviorNote note) const {
  return contains(behavior_notes, note);
}

bool CudnnEngine::transforms(const ProductType& type) const {
  return type.a == ElementType::fp32 || has(abi::kCudnnNoteFft) || has(abi::kCudnnNoteWinograd) ||
         has(abi::kCudnnNoteWinograd4x4) || has(abi::kCudnnNoteWinograd6x6) ||
         has(abi::kCudnnNoteWinograd13x13);
}

bool CudnnEngine::serves(const ProductType& type) const {
  if (has(abi::kCudnnNoteFilterReorder)) return false;  // nobody brings filters into that order
  if (type.compute == Compute::tf32) return true;
  if (has(abi::kCudnnNoteDownConvertInputs)) return false;
  // Tensor cores take FP32 as TF32: cuDNN 9.19 marks such engines by this note alone.
  if (type.a == ElementType::fp32 && has(abi::kCudnnNoteTensorCore)) return false;
  const bool wide = type.a == ElementType::fp32 || type.a == ElementType::fp64;
  return !wide || !has(abi::kCudnnNoteReducedPrecisionReduction);
}

std::string CudnnEngine::name() const {
  std::string text = fmt::format("engine {}", index);
  for (std::size_t i = 0; i < knobs.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? ", knobs " : " ", knobs[i].first, knobs[i].second);
  return text;
}

std::string CudnnEngine::notes() const {
  std::vector<std::string> words;
  const auto add = [&](const std::vector<int>& notes, auto& names, const char* kind) {
    for (const int note : notes) {
      const auto place = static_cast<std::size_t>(note);
      words.push_back(note >= 0 && place < std::size(names) ? std::string(names[place])
                                                            : fmt::format("{} {}", kind, note));
    }
  };
  add(numerical_notes, kNumericalNotes, "numerical note");
  add(behavior_notes, kBehaviorNotes, "behaviour note");
  return fmt::format("{}", fmt::join(words, ", "));
}

CudnnConvolutionGraph::CudnnConvolutionGraph(const Cudnn& library,
                                             CudnnTarget target,
                                             const ConvolutionShape& shape)
    : cudnn_(library),
      target_(target),
      graph_(library, abi::kCudnnOperationGraphDescriptor, "a graph") {
  const ProductType& type = shape.type;
  const bool data = shape.direction == ConvolutionDirection::data,
             filter = shape.direction == ConvolutionDirection::filter;
  parts_.push_back(
      tensor_descriptor(library, kCudnnX, shape.input(), shape.layout, data ? type.c : type.a));
  parts_.push_back(
      tensor_descriptor(library, kCudnnW, shape.filters(), shape.layout, filter ? type.c : type.b));
  parts_.push_back(tensor_descriptor(library,
                                     kCudnnY,
                                     shape.output(),
                                     shape.layout,
                                     data     ? type.a
                                     : filter ? type.b
                                              : type.c));
  parts_.push_back(convolution_descriptor(library, shape));
  const OperationAttributes its = attributes_of(shape.direction);
  CudnnDescriptor operation(library, its.type, "an operation");
  // A weight gradient's refuse integers, and have no engine for INT8.
  const Compute scalars = filter && type.compute == Compute::int32 ? Compute::fp32 : type.compute;
  set_scalar(operation, its.alpha, scalars, 1);
  set_scalar(operation, its.beta, scalars, 0);
  operation.set_descriptor(its.x, parts_[0]);
  operation.set_descriptor(its.w, parts_[1]);
  operation.set_descriptor(its.y, parts_[2]);
  operation.set_descriptor(its.convolution, parts_[3]);
  operation.finalize();
  parts_.push_back(std::move(operation));
  if (target.handle) graph_.set_handle(abi::kCudnnGraphHandle, target.handle);
  graph_.set_descriptor(abi::kCudnnGraphOperations, parts_.back());
  graph_.finalize();
}

std::vector<CudnnOffer> CudnnConvolutionGraph::offers(abi::CudnnHeuristics mode) const {
  CudnnDescriptor heuristics(cudnn_, abi::kCudnnHeuristicsDescriptor, "heuristics");
  heuristics.set_enum(abi::kCudnnHeuristicsMode, abi::kCudnnTypeHeuristicsMode, mode);
  heuristics.set_descriptor(abi::kCudnnHeuristicsGraph, graph_);
  if (target_.device) heuristics.set_descriptor(abi::kCudnnHeuristicsDevice, *target_.device);
  heuristics.finalize();
  const std::int64_t announced = std::clamp<std::int64_t>(
      heuristics.count(abi::kCudnnHeuristicsResults, abi::kCudnnTypeDescriptor), 0, kMostConfigs);
  std::vector<CudnnDescriptor> configs;
  std::vector<abi::CudnnBackendDescriptor> raw;
  for (std::int64_t i = 0; i < announced; ++i) {
    configs.emplace_back(cudnn_, abi::kCudnnEngineConfigDescriptor, "an engine's configuration");
    raw.push_back(configs.back().raw());
  }
  if (raw.empty()) return {};
  const std::size_t came = heuristics.get(
      abi::kCudnnHeuristicsResults, abi::kCudnnTypeDescriptor, raw.size(), raw.data());
  std::vector<CudnnOffer> offers;
  for (std::size_t i = 0; i < came; ++i)
    offers.push_back({engine_of(cudnn_, configs[i]), std::move(configs[i])});
  return offers;
}

CudnnDescriptor CudnnConvolutionGraph::plan(const CudnnOffer& offer) const {
  CudnnDescriptor made(cudnn_, abi::kCudnnPlanDescriptor, "a plan");
  if (target_.handle) made.set_handle(abi::kCudnnPlanHandle, target_.handle);
  if (target_.device) made.set_descriptor(abi::kCudnnPlanDevice, *target_.device);
  made.set_descriptor(abi::kCudnnPlanConfig, offer.config);
  made.finalize();
  return made;
}

}  // namespace launchgap::cuda
