// Convolutions by cuDNN's graph interface.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/cudnn_backend.h"
#include "harness/device/cuda/libraries.h"

namespace launchgap::cuda {
namespace {

class CudnnHandleOwner {
 public:
  CudnnHandleOwner(const Cudnn& library, abi::Stream stream) : library_(library) {
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreate(&handle_));
    try {
      LAUNCHGAP_CHECK_CUDNN(library_, cudnnSetStream(handle_, stream));
    } catch (...) {
      library_.cudnnDestroy(handle_);
      throw;
    }
  }
  CudnnHandleOwner(const CudnnHandleOwner&) = delete;
  ~CudnnHandleOwner() { library_.cudnnDestroy(handle_); }
  abi::CudnnHandle get() const { return handle_; }

 private:
  const Cudnn& library_;
  abi::CudnnHandle handle_ = nullptr;
};

class CudnnGraphConvolution : public CudnnConvolutionBase {
 public:
  CudnnGraphConvolution(Device& device,
                        const Cudnn& library,
                        abi::Stream stream,
                        const ConvolutionShape& shape)
      : CudnnConvolutionBase(device, shape),
        library_(library),
        handle_(library, stream),
        graph_(library, {.handle = handle_.get()}, shape) {
    const std::size_t most = most_workspace(kDefaultWorkspaceBytes);
    std::optional<std::size_t> first;
    for (std::size_t mode = 0; mode < modes_.size() && !first; ++mode) {
      for (CudnnOffer& offer : ask(mode)) {
        const std::optional<std::size_t> plan = plan_of(offer, most);
        if (!plan) continue;
        first = plan;
        break;
      }
    }
    if (!first) refuse(most);
    use(*first);
  }

  void enqueue(std::size_t set) override {
    if (packs_.size() != sets_.size()) packs_.resize(sets_.size());
    std::optional<CudnnDescriptor>& pack = packs_[set];
    if (!pack) pack = variant_pack(sets_[set]);
    library_.check(
        library_.cudnnBackendExecute(handle_.get(), plans_[chosen_].plan->raw(), pack->raw()),
        "cudnnBackendExecute");
  }

  std::string method() const override {
    const Plan& plan = plans_[chosen_];
    const std::string notes = plan.engine.notes();
    return fmt::format("cuDNN {} graph, {}, {}{}{}, workspace {} MiB",
                       library_.facts.version,
                       plan.engine.name(),
                       notes,
                       notes.empty() ? "" : ", ",
                       layout(),
                       whole_mib(plan.workspace_bytes));
  }

  std::string algorithm() const override { return plans_[chosen_].engine.name(); }

  bool rounds_integers() const override { return plans_[chosen_].engine.transforms(shape_.type); }

  std::string selection_call(Selection how) const override {
    return how != Selection::get                 ? ""
           : modes_[0] == abi::kCudnnHeuristicsA ? "CUDNN_HEUR_MODE_A"
                                                 : "CUDNN_HEUR_MODE_INSTANT";
  }

  std::size_t select(Selection how) override {
    if (how != Selection::get)
      throw Unsupported("cuDNN's graph interface runs nothing to select an engine");
    const std::size_t most = most_workspace(kSelectionWorkspaceBytes);
    std::optional<std::size_t> first;
    left_out_ = 0;
    for (std::size_t mode = 0; mode < modes_.size(); ++mode) {
      if (first && gathered_) break;  // the other modes' candidates are gathered once
      for (CudnnOffer& offer : ask(mode)) {
        if (first && candidates_.size() >= kMostCandidates) break;
        const std::optional<std::size_t> plan = plan_of(offer, most);
        if (!plan) continue;
        const auto known = std::ranges::find(candidates_, *plan);
        const auto place = static_cast<std::size_t>(known - candidates_.begin());
        if (known == candidates_.end()) candidates_.push_back(*plan);
        if (!first) first = place;
      }
    }
    if (!first) refuse(most);
    gathered_ = true;
    return *first;
  }

  std::vector<ConvolutionCandidate> candidates() const override {
    std::vector<ConvolutionCandidate> all;
    for (const std::size_t place : candidates_) {
      const Plan& plan = plans_[place];
      all.push_back({plan.engine.name(),
                     plan.workspace_bytes,
                     plan.engine.transforms(shape_.type),
                     plan.engine.index,
                     plan.engine.notes()});
    }
    return all;
  }

  void choose(std::size_t candidate) override { use(candidates_.at(candidate)); }

 private:
  /// An engine that was offered, and whether the library could make a plan of it.
  struct Plan {
    CudnnEngine engine;
    std::optional<CudnnDescriptor> plan;
    std::size_t workspace_bytes = 0;
  };

  /// Empty where the library cannot be asked in this mode: why is kept for refuse().
  std::vector<CudnnOffer> ask(std::size_t mode) {
    try {
      std::vector<CudnnOffer> offers = graph_.offers(modes_[mode]);
      knows_a_ = true;
      return offers;
    } catch (const Unsupported& error) {
      note(error);
    } catch (const LibraryError& error) {
      if (error.sticky()) throw;
      note(error);
    }
    if (knows_a_) return {};
    knows_a_ = true;
    modes_[mode] = abi::kCudnnHeuristicsInstant;
    return ask(mode);
  }

  void note(const Error& error) {
    if (why_none_.empty()) why_none_ = error.what();
  }

  /// Its place in plans_, if the type allows it, the library can make it, and its workspace is no
  /// larger. A plan may be compiled, so each is made once, and what failed is not tried again.
  std::optional<std::size_t> plan_of(CudnnOffer& offer, std::size_t most_bytes) {
    if (!offer.engine.serves(shape_.type)) {
      ++left_out_;
      return std::nullopt;
    }
    auto known = std::ranges::find(plans_, offer.engine, &Plan::engine);
    if (known == plans_.end()) {
      plans_.push_back(make_plan(offer));
      known = plans_.end() - 1;
    }
    if (!known->plan || known->workspace_bytes > most_bytes) return std::nullopt;
    return static_cast<std::size_t>(known - plans_.begin());
  }

  Plan make_plan(CudnnOffer& offer) {
    Plan made{offer.engine, std::nullopt, 0};
    try {
      CudnnDescriptor plan = graph_.plan(offer);
      const std::int64_t bytes = plan.integer(abi::kCudnnPlanWorkspace);
      if (bytes < 0) return made;
      made.workspace_bytes = static_cast<std::size_t>(bytes);
      made.plan = std::move(plan);
    } catch (const Unsupported& error) {
      note(error);
    } catch (const LibraryError& error) {
      if (error.sticky()) throw;
      note(error);
    }
    return made;
  }

  void use(std::size_t plan) {
    const std::size_t bytes = plans_[plan].workspace_bytes;
    if (bytes > held_bytes()) packs_.clear();  // before the workspace in them goes
    hold_workspace(bytes);
    chosen_ = plan;
  }

  CudnnDescriptor variant_pack(const Tensors& tensors) const {
    const std::array ids = {kCudnnX, kCudnnW, kCudnnY};
    const void* const result = tensors.result->address();
    const std::array<const void*, 3> pointers =
        shape_.direction == ConvolutionDirection::forward
            ? std::array{tensors.first, tensors.second, result}
        : shape_.direction == ConvolutionDirection::data
            ? std::array{result, tensors.second, tensors.first}
            : std::array{tensors.first, result, tensors.second};
    const void* const workspace = this->workspace();
    CudnnDescriptor pack(library_, abi::kCudnnVariantPackDescriptor, "a variant pack");
    pack.set_integers(abi::kCudnnPackIds, ids);
    pack.set_pointers(abi::kCudnnPackPointers, pointers);
    pack.set_pointers(abi::kCudnnPackWorkspace, {&workspace, 1});
    pack.finalize();
    return pack;
  }

  [[noreturn]] void refuse(std::size_t most_bytes) const {
    throw Unsupported(
        "cuDNN {}'s graph interface has no engine for this convolution in {} and {} within {} MiB "
        "of workspace{}{}",
        library_.facts.version,
        shape_.type.name,
        layout(),
        most_bytes >> 20,
        left_out_ == 0 ? "" : fmt::format(", beside {} that compute in another type", left_out_),
        why_none_.empty() ? "" : ": " + why_none_);
  }

  const Cudnn& library_;
  CudnnHandleOwner handle_;  // of which the descriptors below are
  CudnnConvolutionGraph graph_;
  /// In the order in which they are asked: by the shape, by a finer model, and what always works.
  /// The first versions know no A, and INSTANT in its place.
  std::array<abi::CudnnHeuristics, 3> modes_ = {abi::kCudnnHeuristicsA,
                                                abi::kCudnnHeuristicsB,
                                                abi::kCudnnHeuristicsFallback};
  bool knows_a_ = false;
  std::vector<Plan> plans_;              // of what was offered
  std::vector<std::size_t> candidates_;  // of plans_, by selections
  std::size_t chosen_ = 0;               // of plans_
  bool gathered_ = false;
  int left_out_ = 0;
  std::string why_none_;
  std::vector<std::optional<CudnnDescriptor>> packs_;  // of each set and the workspace
};

}  // namespace

std::unique_ptr<Convolution> cudnn_graph_convolution(Device& device,
                                                     abi::Stream stream,
                                                     const ConvolutionShape& shape) {
  const Cudnn& library = Cudnn::get(capability(device.facts()));
  need_cudnn_graph(library, shape.type, shape.layout);
  need_tf32(device.facts(), shape.type);
  return std::make_unique<CudnnGraphConvolution>(device, library, stream, shape);
}

}  // namespace launchgap::cuda
