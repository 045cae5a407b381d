# What PyTorch needs for the cases that CUDA's libraries lack, on the same card. Adds to the file that cuda.cu wrote:
#   python3 benches/peers/torch_peers.py peers.json
import json
import sys
import time

import torch


def median(work):
    """Seconds of the median of 25 runs after half a second of the same work."""

    def once():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    start = time.time()
    while time.time() - start < 0.5:
        once()
    return sorted(once() for _ in range(25))[12]


def row(op, dtype, size, work):
    return {"peer": "PyTorch", "op": op, "dtype": dtype, "size": size, "seconds": median(work)}


rows = json.load(open(sys.argv[1]))
for n in (1 << 16, 1 << 20, 1 << 26, 1 << 28):
    x = torch.rand(n, device="cuda") - 0.5
    for k in (1, 100, 1000, 10_000, 1 << 20) if n == 1 << 26 else (100,):
        rows.append(row("top-k", "f32", f"{k} of {n}", lambda: torch.topk(x, k)))
x = torch.rand(16384, 16384, device="cuda") - 0.5
rows.append(row("transpose", "f32", "16384x16384", lambda: x.t().contiguous()))
json.dump(rows, open(sys.argv[1], "w"), indent=1)
