// Plays traces from standard input to one allocator over simulated memory, and prints what becomes
// of each event: for tests/allocation/test_allocator_models.py.
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>

#include "harness/allocation/block_allocator.h"

using namespace launchgap::allocation;

int main(int, char** arguments) {
  std::ios::sync_with_stdio(false);
  const BlockAllocatorInfo& info = block_allocator_named(arguments[1]);
  std::unique_ptr<SimulatedMemory> memory;
  std::unique_ptr<BlockAllocator> allocator;
  std::unordered_map<std::uint64_t, BlockId> blocks;
  for (std::string what; std::cin >> what;) {
    std::uint64_t number = 0;
    std::cin >> number;
    if (what == "t") {
      allocator.reset();
      blocks.clear();
      memory = std::make_unique<SimulatedMemory>(number);
      allocator = info.make(*memory, number);
      continue;
    }
    if (what == "a") {
      std::uint64_t bytes = 0;
      std::uint32_t stream = 0;
      std::cin >> bytes >> stream;
      if (const auto block = allocator->allocate(bytes, stream, 0)) {
        blocks[number] = *block;
        std::cout << allocator->address(*block) << ' ' << allocator->granted_bytes(*block);
      } else {
        std::cout << "fail -";
      }
    } else {
      std::cout << "- -";
      if (const auto block = blocks.find(number); block != blocks.end()) {
        allocator->release(block->second);
        blocks.erase(block);
      }
    }
    const Holding holding = allocator->holding();
    std::cout << ' ' << holding.reserved << ' ' << holding.granted << ' ' << holding.largest_free
              << '\n';
  }
}
