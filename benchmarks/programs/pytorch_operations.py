"""A thousand small operations of PyTorch, one by one or as a graph: how long its launches leave the GPU idle.

    launchgap record --runs 10 --step step -o results/eager -- python pytorch_operations.py eager
    launchgap record --runs 10 --step step -o results/captured -- python pytorch_operations.py captured
    launchgap report results/eager results/captured

An eager operation costs a launch call, which takes longer than its kernel, so the GPU waits; a captured one costs none.
"""

import sys

try:
    import torch
except ImportError:
    sys.exit(print("PyTorch is missing: pip install torch", file=sys.stderr) or 77)
if not torch.cuda.is_available():
    sys.exit(print("PyTorch finds no GPU: launchgap doctor --for torch", file=sys.stderr) or 77)

STEPS, OPERATIONS = 50, 1000
values = torch.ones(1024, device="cuda")


def operations():
    for _ in range(OPERATIONS):
        values.mul_(1.0001)


step = operations
operations()  # what is slow once: context, loading
if sys.argv[1:] == ["captured"]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        operations()
    step = graph.replay
for number in range(STEPS):
    torch.cuda.nvtx.range_push(f"step#{number}")
    step()
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
