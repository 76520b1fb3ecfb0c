// The files below LAUNCHGAP_SYSTEM_ROOT/dev that stand for the driver's device nodes.
#pragma once

namespace launchgap::fake {

/// As cuInit does: opens nvidiactl, nvidia-uvm and the node of each device that is visible.
void open_driver_nodes();
void open_device_node(int index);
/// As the creation of a context does: maps the device's node and nvidia-uvm into memory.
void map_device_nodes(int index);

}  // namespace launchgap::fake
