# What PyTorch needs for the cases that CUDA's libraries lack, on the same card. Adds to the file that cuda.cu wrote:
#   python3 benches/peers/torch_peers.py peers.json
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.grad import conv2d_input, conv2d_weight


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

# Single precision, and cuDNN's choice among its algorithms.
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def centred(*shape):
    return torch.rand(*shape, device="cuda") - 0.5


for shape, side, filters, groups in (
    ((64, 64, 56, 56), 3, 64, 1),
    ((32, 256, 28, 28), 3, 256, 1),
    ((128, 16, 80, 80), 7, 32, 1),
    ((32, 512, 56, 56), 3, 512, 512),
):
    x, w = centred(*shape), centred(filters, shape[1] // groups, side, side)
    pad = side // 2
    y = F.conv2d(x, w, padding=pad, groups=groups)
    size = "x".join(map(str, shape)) + f" {side}x{side} {filters}"
    rows.append(row("conv", "f32", size, lambda: F.conv2d(x, w, padding=pad, groups=groups)))
    if groups == 1:
        rows.append(row("conv-backward-data", "f32", size, lambda: conv2d_input(x.shape, w, y, padding=pad)))
        rows.append(row("conv-backward-weights", "f32", size, lambda: conv2d_weight(x, w.shape, y, padding=pad)))
del x, w, y
x, w = centred(1, 1, 8192, 8192), centred(1, 1, 5, 5)
rows.append(row("conv2d", "f32", "8192x8192 5x5", lambda: F.conv2d(x, w, padding=2)))
x, w = centred(1, 1, 512, 512, 512), centred(1, 1, 3, 3, 3)
rows.append(row("conv3d", "f32", "512x512x512 3x3x3", lambda: F.conv3d(x, w, padding=1)))
x, gamma, beta = centred(16384, 4096), centred(4096), centred(4096)
rows.append(row("softmax", "f32", "16384x4096", lambda: F.softmax(x, -1)))
rows.append(row("layer-norm", "f32", "16384x4096", lambda: F.layer_norm(x, (4096,), gamma, beta)))
rows.append(row("rms-norm", "f32", "16384x4096", lambda: F.rms_norm(x, (4096,), gamma)))
x = centred(32, 64, 224, 224)
rows.append(row("pool", "f32", "32x64x224x224 max 2x2", lambda: F.max_pool2d(x, 2)))
json.dump(rows, open(sys.argv[1], "w"), indent=1)
