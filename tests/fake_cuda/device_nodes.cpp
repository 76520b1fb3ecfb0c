#include "tests/fake_cuda/device_nodes.h"

#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace launchgap::fake {
namespace {

/// Descriptors by node; open until the process ends, as the driver's are.
std::map<std::string, int>& nodes() {
  static auto* const opened = new std::map<std::string, int>;
  return *opened;
}

void open_node(const std::string& name) {
  const char* const root = std::getenv("LAUNCHGAP_SYSTEM_ROOT");
  if (root == nullptr || *root == '\0' || nodes().contains(name)) return;
  const int file =
      open((std::string(root) + "/dev/" + name).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0) nodes()[name] = file;
}

void map_node(const std::string& name) {
  const auto node = nodes().find(name);
  // Nobody reads it, so the file may be empty.
  if (node != nodes().end()) (void)mmap(nullptr, 4096, PROT_READ, MAP_SHARED, node->second, 0);
}

}  // namespace

void open_driver_nodes() {
  open_node("nvidiactl");
  open_node("nvidia-uvm");
}

void open_device_node(int index) {
  open_node("nvidia" + std::to_string(index));
}

void map_device_nodes(int index) {
  map_node("nvidia-uvm");
  map_node("nvidia" + std::to_string(index));
}

}  // namespace launchgap::fake
