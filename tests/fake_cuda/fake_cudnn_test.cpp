// The fake libcudnn's graph interface refuses what the real one refuses.
#include <array>
#include <string>
#include <vector>

#include "harness/device/cuda/abi/cudnn_backend.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/fake_cuda/refused_attributes.h"

namespace launchgap::fake {
namespace {

using Integers = std::vector<std::int64_t>;

LAUNCHGAP_LIBRARY(Cudnn, CudnnFunctions, LAUNCHGAP_CUDNN_FUNCTIONS, "libcudnn.so.9");
LAUNCHGAP_LIBRARY(Backend,
                  CudnnBackendFunctions,
                  LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS,
                  "libcudnn.so.9");
struct Library : Cudnn, Backend {};

class FakeCudnn : public FakeCuda {
 protected:
  void start_cudnn(const Json& device = a_device()) {
    start(a_node(device));
    ASSERT_EQ(dnn.cudnnCreate(&handle), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetStream(handle, stream()), kCudnnSuccess);
  }

  CudnnBackendDescriptor make(int type) {
    CudnnBackendDescriptor made = nullptr;
    EXPECT_EQ(dnn.cudnnBackendCreateDescriptor(type, &made), kCudnnSuccess);
    descriptors_.push_back(made);
    return made;
  }
  CudnnStatus set(CudnnBackendDescriptor at, int attribute, const Integers& values) {
    return dnn.cudnnBackendSetAttribute(
        at, attribute, kCudnnTypeInt64, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class Value>
  CudnnStatus set(CudnnBackendDescriptor at, int attribute, int type, Value value) {
    return dnn.cudnnBackendSetAttribute(at, attribute, type, 1, &value);
  }
  CudnnStatus give(CudnnBackendDescriptor at, int attribute, CudnnBackendDescriptor value) {
    return set(at, attribute, kCudnnTypeDescriptor, value);
  }
  CudnnStatus finalize(CudnnBackendDescriptor descriptor) {
    return dnn.cudnnBackendFinalize(descriptor);
  }

  CudnnBackendDescriptor tensor(std::int64_t id, const Integers& sizes, int type, bool nhwc) {
    const std::int64_t c = sizes[1], h = sizes[2], w = sizes[3];
    CudnnBackendDescriptor made = make(kCudnnTensorDescriptor);
    EXPECT_EQ(set(made, kCudnnTensorDimensions, sizes), kCudnnSuccess);
    EXPECT_EQ(set(made,
                  kCudnnTensorStrides,
                  nhwc ? Integers{c * h * w, 1, w * c, c} : Integers{c * h * w, h * w, w, 1}),
              kCudnnSuccess);
    EXPECT_EQ(set(made, kCudnnTensorId, {id}), kCudnnSuccess);
    EXPECT_EQ(set(made, kCudnnTensorAlignment, {16}), kCudnnSuccess);
    EXPECT_EQ(set(made, kCudnnTensorDataType, kCudnnTypeDataType, type), kCudnnSuccess);
    return made;
  }

  /// 1x1, of 16 channels to 16; the input's tensor is finalised, or not.
  CudnnBackendDescriptor operation(int type, int result_type, bool nhwc, bool finalized = true) {
    CudnnBackendDescriptor x = tensor(1, {1, 16, 4, 4}, type, nhwc),
                           w = tensor(2, {16, 16, 1, 1}, type, nhwc),
                           y = tensor(3, {1, 16, 4, 4}, result_type, nhwc);
    if (finalized) {
      EXPECT_EQ(finalize(x), kCudnnSuccess);
    }
    EXPECT_EQ(finalize(w), kCudnnSuccess);
    EXPECT_EQ(finalize(y), kCudnnSuccess);
    CudnnBackendDescriptor convolution = make(kCudnnConvolutionDescriptor);
    set(convolution, kCudnnConvolutionComputeType, kCudnnTypeDataType, kCudnnFloat);
    set(convolution,
        kCudnnConvolutionModeAttribute,
        kCudnnTypeConvolutionMode,
        kCudnnCrossCorrelation);
    set(convolution, kCudnnConvolutionDimensions, {2});
    for (const int ones : {kCudnnConvolutionDilations, kCudnnConvolutionStrides})
      set(convolution, ones, {1, 1});
    for (const int zeros : {kCudnnConvolutionPrePaddings, kCudnnConvolutionPostPaddings})
      set(convolution, zeros, {0, 0});
    EXPECT_EQ(finalize(convolution), kCudnnSuccess);
    CudnnBackendDescriptor made = make(kCudnnForwardDescriptor);
    set(made, kCudnnForwardAlpha, kCudnnTypeFloat, 1.0f);
    set(made, kCudnnForwardBeta, kCudnnTypeFloat, 0.0f);
    EXPECT_EQ(give(made, kCudnnForwardX, x), kCudnnSuccess);
    EXPECT_EQ(give(made, kCudnnForwardW, w), kCudnnSuccess);
    EXPECT_EQ(give(made, kCudnnForwardY, y), kCudnnSuccess);
    EXPECT_EQ(give(made, kCudnnForwardConvolution, convolution), kCudnnSuccess);
    return made;
  }

  CudnnBackendDescriptor graph(int type, int result_type, bool nhwc) {
    CudnnBackendDescriptor its = operation(type, result_type, nhwc);
    EXPECT_EQ(finalize(its), kCudnnSuccess);
    CudnnBackendDescriptor made = make(kCudnnOperationGraphDescriptor);
    EXPECT_EQ(set(made, kCudnnGraphHandle, kCudnnTypeHandle, handle), kCudnnSuccess);
    EXPECT_EQ(give(made, kCudnnGraphOperations, its), kCudnnSuccess);
    EXPECT_EQ(finalize(made), kCudnnSuccess);
    return made;
  }

  std::vector<CudnnBackendDescriptor> configs(CudnnBackendDescriptor of_graph, int mode) {
    CudnnBackendDescriptor heuristics = make(kCudnnHeuristicsDescriptor);
    EXPECT_EQ(give(heuristics, kCudnnHeuristicsGraph, of_graph), kCudnnSuccess);
    EXPECT_EQ(set(heuristics, kCudnnHeuristicsMode, kCudnnTypeHeuristicsMode, mode), kCudnnSuccess);
    EXPECT_EQ(finalize(heuristics), kCudnnSuccess);
    std::int64_t count = 0;
    EXPECT_EQ(dnn.cudnnBackendGetAttribute(
                  heuristics, kCudnnHeuristicsResults, kCudnnTypeDescriptor, 0, &count, nullptr),
              kCudnnSuccess);
    EXPECT_GT(count, 0) << "it announces more than come";
    std::vector<CudnnBackendDescriptor> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(make(kCudnnEngineConfigDescriptor));
    EXPECT_EQ(
        dnn.cudnnBackendGetAttribute(
            heuristics, kCudnnHeuristicsResults, kCudnnTypeDescriptor, count, &count, all.data()),
        kCudnnSuccess);
    EXPECT_LT(static_cast<std::size_t>(count), all.size());
    all.resize(static_cast<std::size_t>(count));
    return all;
  }

  CudnnBackendDescriptor plan(CudnnBackendDescriptor config) {
    CudnnBackendDescriptor made = make(kCudnnPlanDescriptor);
    EXPECT_EQ(set(made, kCudnnPlanHandle, kCudnnTypeHandle, handle), kCudnnSuccess);
    EXPECT_EQ(give(made, kCudnnPlanConfig, config), kCudnnSuccess);
    return made;
  }
  std::int64_t workspace_of(CudnnBackendDescriptor of_plan) {
    std::int64_t bytes = -1, count = 0;
    EXPECT_EQ(dnn.cudnnBackendGetAttribute(
                  of_plan, kCudnnPlanWorkspace, kCudnnTypeInt64, 1, &count, &bytes),
              kCudnnSuccess);
    return bytes;
  }

  CudnnStatus execute(CudnnBackendDescriptor its_plan,
                      const std::array<DevicePointer, 3>& pointers,
                      DevicePointer workspace) {
    CudnnBackendDescriptor pack = make(kCudnnVariantPackDescriptor);
    EXPECT_EQ(set(pack, kCudnnPackIds, {1, 2, 3}), kCudnnSuccess);
    EXPECT_EQ(dnn.cudnnBackendSetAttribute(
                  pack, kCudnnPackPointers, kCudnnTypePointer, 3, pointers.data()),
              kCudnnSuccess);
    EXPECT_EQ(set(pack, kCudnnPackWorkspace, kCudnnTypePointer, workspace), kCudnnSuccess);
    EXPECT_EQ(finalize(pack), kCudnnSuccess);
    return dnn.cudnnBackendExecute(handle, its_plan, pack);
  }

  void TearDown() override {
    for (const CudnnBackendDescriptor made : descriptors_)
      EXPECT_EQ(dnn.cudnnBackendDestroyDescriptor(made), kCudnnSuccess);
    if (handle) {
      EXPECT_EQ(dnn.cudnnDestroy(handle), kCudnnSuccess);
    }
    FakeCuda::TearDown();
  }

  Library dnn;
  CudnnHandle handle = nullptr;

 private:
  std::vector<CudnnBackendDescriptor> descriptors_;
};

TEST_F(FakeCudnn, RefusesAttributesOfAnotherTypeOrCountAndUnknownOnes) {
  start_cudnn();
  const std::vector<unsigned char> elements(std::size_t{16} * 64);
  for (const RefusedAttribute& refused : refused_attributes()) {
    EXPECT_EQ(dnn.cudnnBackendSetAttribute(make(refused.descriptor),
                                           refused.attribute,
                                           refused.type,
                                           refused.count,
                                           elements.data()),
              refused.status)
        << refused.why;
  }
  char words[64] = {};
  dnn.cudnnGetLastErrorString(words, sizeof words);
  EXPECT_NE(std::string(words), "");
}

TEST_F(FakeCudnn, RefusesWhatIsNotFinalisedOrIsAlready) {
  start_cudnn();
  constexpr int kBadParam = 2000, kNotFinalised = 2004, kNotReady = 1001;
  CudnnBackendDescriptor x = tensor(1, {1, 16, 4, 4}, kCudnnFloat, false);
  Integers sizes(4);
  std::int64_t count = 0;
  EXPECT_EQ(dnn.cudnnBackendGetAttribute(
                x, kCudnnTensorDimensions, kCudnnTypeInt64, 4, &count, sizes.data()),
            kNotReady);
  EXPECT_EQ(finalize(x), kCudnnSuccess);
  EXPECT_EQ(finalize(x), kBadParam);
  EXPECT_EQ(set(x, kCudnnTensorDimensions, {1, 16, 4, 4}), kBadParam);
  EXPECT_EQ(finalize(operation(kCudnnFloat, kCudnnFloat, false, false)), kBadParam);
  EXPECT_EQ(finalize(plan(make(kCudnnEngineConfigDescriptor))), kNotFinalised);
  CudnnBackendDescriptor uneven = make(kCudnnTensorDescriptor);
  set(uneven, kCudnnTensorDimensions, {1, 2, 3, 4});
  set(uneven, kCudnnTensorStrides, {24, 12, 4});
  EXPECT_EQ(finalize(uneven), kBadParam);
}

TEST_F(FakeCudnn, HasNoEngineForFp8InNchw) {
  start_cudnn(a_device({{"compute_capability", "9.0"}, {"tflops", {{"fp32", 10}, {"fp8", 100}}}}));
  EXPECT_TRUE(configs(graph(kCudnnFp8E4m3, kCudnnBfloat16, false), kCudnnHeuristicsA).empty());
  EXPECT_FALSE(configs(graph(kCudnnFp8E4m3, kCudnnBfloat16, true), kCudnnHeuristicsA).empty());
  EXPECT_TRUE(configs(graph(kCudnnFp8E4m3, kCudnnHalf, true), kCudnnHeuristicsFallback).empty());
}

TEST_F(FakeCudnn, RefusesPlansOfSomeEnginesAndPointersThatAreNone) {
  start_cudnn();
  constexpr int kNull = 2002, kMisaligned = 2003, kNotSupported = 3000;
  bool refused = false;
  CudnnBackendDescriptor hungry = nullptr;  // the first that wants a workspace that it can have
  for (CudnnBackendDescriptor config :
       configs(graph(kCudnnFloat, kCudnnFloat, false), kCudnnHeuristicsA)) {
    CudnnBackendDescriptor its = plan(config);
    const CudnnStatus status = finalize(its);
    refused = refused || status == kNotSupported;
    if (status == kCudnnSuccess && !hungry && workspace_of(its) > 0 && workspace_of(its) < 1 << 20)
      hungry = its;
  }
  EXPECT_TRUE(refused);
  ASSERT_NE(hungry, nullptr);
  const std::array<DevicePointer, 3> tensors = {memory(4096), memory(4096), memory(4096)};
  const DevicePointer workspace = memory(static_cast<std::size_t>(workspace_of(hungry)));
  EXPECT_EQ(execute(hungry, tensors, workspace), kCudnnSuccess);
  EXPECT_EQ(execute(hungry, {tensors[0] + 4, tensors[1], tensors[2]}, workspace), kMisaligned);
  EXPECT_EQ(execute(hungry, {tensors[0], 0, tensors[2]}, workspace), kNull);
  EXPECT_EQ(execute(hungry, tensors, 0), kNull);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  execute(hungry, tensors, memory(16));
  EXPECT_EQ(cu.cuCtxSynchronize(), kIllegalAddress) << "its workspace ends before it does";
}

}  // namespace
}  // namespace launchgap::fake
