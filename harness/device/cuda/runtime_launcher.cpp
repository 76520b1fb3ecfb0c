#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/cuda/runtime_plugin.h"
#include "harness/device/cuda/stream.h"
#include "harness/device/inserted_delay.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

const RuntimePlugin& load_plugin() {
  const SharedLibrary file = [] {
    try {
      return SharedLibrary::open({"CUDA runtime plugin",
                                  "LAUNCHGAP_RUNTIME_PLUGIN",
                                  {kRuntimePluginFile},
                                  {},
                                  /*loader_alone=*/true});
    } catch (const Error& error) {
      throw Unsupported(
          "the runtime's launches need launchgap's plugin, which a build with nvcc makes: {}",
          error.what());
    }
  }();
  const auto get = reinterpret_cast<const RuntimePlugin* (*)()>(file.find(kRuntimePluginSymbol));
  if (!get) {
    throw Unsupported("{} is of another version of launchgap: it has no {}; build it again",
                      file.path(),
                      kRuntimePluginSymbol);
  }
  const RuntimePlugin& plugin = *get();
  LoadedLibrary facts = file.facts();
  facts.version = cuda_version_text(plugin.runtime_version);
  note_loaded(facts);
  if (const int code = plugin.prepare(); code != 0) {
    throw Unsupported("the CUDA runtime {} of the plugin cannot launch here: {}: {}",
                      facts.version,
                      plugin.name(code),
                      plugin.text(code));
  }
  return plugin;
}

class RuntimeLauncher : public NullLauncher {
 public:
  RuntimeLauncher(const RuntimePlugin& plugin, RuntimeApi api)
      : plugin_(plugin),
        launch_(api == RuntimeApi::chevron ? plugin.launch_chevron : plugin.launch_ex),
        count_(api == RuntimeApi::chevron ? plugin.count_chevron : plugin.count_ex),
        call_(api == RuntimeApi::chevron ? "<<<1, 1>>>" : "cudaLaunchKernelExC") {}

  void launch(Stream& stream) override {
    insert_delay();
    check(launch_(handle(stream)));
  }
  void count(Stream& stream, void* counter) override {
    check(count_(handle(stream), static_cast<unsigned*>(counter)));
  }
  std::string method() const override {
    return fmt::format("{} of CUDA runtime {}", call_, cuda_version_text(plugin_.runtime_version));
  }

 private:
  static abi::Stream handle(Stream& stream) { return static_cast<CudaStream&>(stream).handle; }

  void check(int code) const {
    if (code == 0) [[likely]]
      return;
    throw LibraryError("CUDA runtime",
                       call_,
                       code,
                       fmt::format("{}: {}", plugin_.name(code), plugin_.text(code)),
                       is_sticky(code));
  }

  const RuntimePlugin& plugin_;
  int (*launch_)(void*);
  int (*count_)(void*, unsigned*);
  const char* call_;
};

}  // namespace

std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api) {
  static const RuntimePlugin& plugin = load_plugin();
  return std::make_unique<RuntimeLauncher>(plugin, api);
}

}  // namespace launchgap::cuda
