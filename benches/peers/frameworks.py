# What PyTorch needs for the cases that CUDA's libraries lack, and cuSPARSE (called by CuPy) for sparse matrices, on the
# same card. Adds to the file that cuda.cu wrote; the real matrices are those of a folder, as for the benchmark `sparse`:
#   TILEWORK_SPARSE=FOLDER python3 benches/peers/frameworks.py peers.json
import json
import os
import pathlib
import sys

import cupy as cp
import numpy as np
import torch
import torch.nn.functional as F
from cupyx.scipy import sparse
from scipy.io import mmread
from scipy.sparse import block_diag
from torch.nn.grad import conv2d_input, conv2d_weight

from timing import median


def row(op, dtype, size, work, peer="PyTorch"):
    if sys.argv[2:] and op not in sys.argv[2:]:
        return None
    # Both frameworks use the default stream.
    return {"peer": peer, "op": op, "dtype": dtype, "size": size, "seconds": median(work, 0.5, 25)}


rows = json.load(open(sys.argv[1]))
for n in (1 << 16, 1 << 20, 1 << 26, 1 << 28):
    x = torch.rand(n, device="cuda") - 0.5
    for k in (1, 100, 1000, 10_000, 1 << 20) if n == 1 << 26 else (100,):
        rows.append(row("top-k", "f32", f"{k} of {n}", lambda: torch.topk(x, k)))
x = torch.rand(4096, 50_257, device="cuda") - 0.5
rising = torch.arange(50_257, dtype=torch.float32, device="cuda").repeat(4096, 1)
for k in (1, 10, 50, 256, 1000):
    rows.append(row("top-k-rows", "f32", f"{k} of 4096x50257", lambda: torch.topk(x, k)))
rows.append(row("top-k-rows", "f32", "50 of 4096x50257 rising", lambda: torch.topk(rising, 50)))
rows.append(row("shuffle", "u32", str(1 << 26), lambda: torch.randperm(1 << 26, device="cuda")))
del rising
for height, width, count in ((30522, 384, 1 << 18), (1 << 20, 64, 1 << 20), (1 << 24, 4, 1 << 24), (1 << 24, 1, 1 << 24)):
    x = torch.rand(height, width, device="cuda") - 0.5
    order = torch.arange(count, device="cuda") * 0x9E3779B9 % (1 << 32) % height
    rows.append(row("gather", "f32", f"{count} of {height}x{width}", lambda: torch.index_select(x, 0, order)))
    if height == count:
        y = torch.zeros_like(x)
        rows.append(row("scatter", "f32", f"distinct {height}x{width}", lambda: y.index_copy_(0, order, x)))
        rows.append(row("scatter", "f32", f"add {height}x{width}", lambda: y.index_add_(0, order, x)))
x = torch.rand(16384, 16384, device="cuda") - 0.5
rows.append(row("transpose", "f32", "16384x16384", lambda: x.t().contiguous()))

# Products of bytes, on tensor cores; b is stored n x k.
for side in (512, 1024, 2048, 4096, 8192):
    a, b = (torch.randint(-128, 128, (side, side), dtype=torch.int8, device="cuda") for _ in range(2))
    rows.append(row("gemm-int8", "i8", f"{side}x{side}x{side}", lambda: torch._int_mm(a, b.t())))
del a, b


def quantized(x, largest, dtype):
    """Rows as bytes, as a compiler for PyTorch fuses it."""
    scale = x.abs().amax(-1, keepdim=True) / largest
    y = x / scale
    return (y.round() if dtype == torch.int8 else y).to(dtype), scale


x = torch.rand(1 << 28, device="cuda") - 0.5
y = x.half()
rows.append(row("cast", "f32-f16", str(1 << 28), lambda: x.half()))
rows.append(row("cast", "f16-f32", str(1 << 28), lambda: y.float()))
x = torch.rand(16384, 4096, device="cuda") - 0.5
for largest, dtype, name in ((127, torch.int8, "int8"), (448, torch.float8_e4m3fn, "fp8")):
    fused = torch.compile(quantized)
    codes, scale = fused(x, largest, dtype)
    rows.append(row("quantize", f"f32-{name}", "16384x4096", lambda: fused(x, largest, dtype)))
    back = torch.compile(lambda codes, scale: codes.float() * scale)
    back(codes, scale)
    rows.append(row("dequantize", f"{name}-f32", "16384x4096", lambda: back(codes, scale)))
del x, codes, scale

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
# The layers of ResNet-50 in half precision: channels, side, filters, filter side, stride.
RESNET_50 = (
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 512, 1, 1),
    (256, 56, 512, 1, 2),
    (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1),
    (512, 28, 256, 1, 1),
    (256, 28, 256, 3, 2),
    (256, 14, 1024, 1, 1),
    (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1),
    (256, 14, 256, 3, 1),
    (1024, 14, 512, 1, 1),
    (512, 14, 512, 3, 2),
    (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2),
    (2048, 7, 512, 1, 1),
    (512, 7, 512, 3, 1),
)
# At batch 1 a call takes the host longer than the device.
for c, side, filters, k, stride in RESNET_50:
    for order, name in ((torch.contiguous_format, ""), (torch.channels_last, " nhwc")):
        x = centred(32, c, side, side).half().to(memory_format=order)
        w = centred(filters, c, k, k).half().to(memory_format=order)
        options = {"stride": stride, "padding": k // 2}
        y = F.conv2d(x, w, **options)
        size = f"32x{c}x{side}x{side} {k}x{k} {filters} stride {stride}{name}"
        rows.append(row("conv", "f16", size, lambda: F.conv2d(x, w, **options)))
        rows.append(row("conv-backward-data", "f16", size, lambda: conv2d_input(x.shape, w, y, **options)))
        rows.append(row("conv-backward-weights", "f16", size, lambda: conv2d_weight(x, w.shape, y, **options)))
del x, w, y
x, w = centred(1, 1, 8192, 8192), centred(1, 1, 5, 5)
rows.append(row("filter2d", "f32", "8192x8192 5x5", lambda: F.conv2d(x, w, padding=2)))
x, w = centred(1, 1, 512, 512, 512), centred(1, 1, 3, 3, 3)
rows.append(row("filter3d", "f32", "512x512x512 3x3x3", lambda: F.conv3d(x, w, padding=1)))
x, gamma, beta = centred(16384, 4096), centred(4096), centred(4096)
rows.append(row("softmax", "f32", "16384x4096", lambda: F.softmax(x, -1)))
rows.append(row("layer-norm", "f32", "16384x4096", lambda: F.layer_norm(x, (4096,), gamma, beta)))
rows.append(row("rms-norm", "f32", "16384x4096", lambda: F.rms_norm(x, (4096,), gamma)))
for shape in ((64, 64, 112, 112), (64, 512, 7, 7)):
    x, dy = centred(*shape).requires_grad_(), centred(*shape)
    gamma, beta = (centred(shape[1]).requires_grad_() for _ in range(2))
    mean, variance = centred(shape[1]), centred(shape[1]).abs()
    train = lambda: F.batch_norm(x, mean, variance, gamma, beta, training=True)
    size = "x".join(map(str, shape))
    with torch.no_grad():
        rows.append(row("batch-norm-train", "f32", size, train))
    y = train()
    backward = lambda: torch.autograd.grad(y, (x, gamma, beta), dy, retain_graph=True)
    # The host takes longer than the card for the small one.
    if shape[2] > 7:
        rows.append(row("batch-norm-backward", "f32", size, backward))
del dy, y
x = centred(32, 64, 224, 224)
rows.append(row("pool", "f32", "32x64x224x224 max 2x2", lambda: F.max_pool2d(x, 2)))

for dtype, name in ((torch.float32, "f32"), (torch.float16, "f16")):
    shapes = [(4096, d, causal) for d in (64, 128) for causal in (False, True)]
    for t, d, causal in shapes + [(t, d, False) for t in (1024, 512, 256) for d in (64, 128)]:
        q, k, v = (centred(4, 16, t, d).to(dtype) for _ in range(3))
        size = f"B4 H16 T{t} D{d}" + (" causal" if causal else "")
        rows.append(
            row("attention", name, size, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        )
        inputs = [x.requires_grad_() for x in (q, k, v)]
        y = F.scaled_dot_product_attention(*inputs, is_causal=causal)
        dy = centred(4, 16, t, d).to(dtype)
        rows.append(
            row("attention-backward", name, size, lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True))
        )
for batch, keys in ((16, 8192), (1, 131072)):
    q = centred(batch, 32, 1, 128).half()
    k, v = (centred(batch, 8, keys, 128).half() for _ in range(2))
    size = f"B{batch} H32 G8 S{keys} D128 decode"
    rows.append(
        row("attention", "f16", size, lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    )

n = 1 << 20


def matrix(lengths, cols):
    """Compressed rows of such lengths, with values by chance."""
    ptrs = cp.concatenate([cp.zeros(1, cp.int32), cp.cumsum(lengths).astype(cp.int32)])
    values = cp.random.rand(len(cols), dtype=cp.float32) - 0.5
    return sparse.csr_matrix((values, cols.astype(cp.int32), ptrs), shape=(n, n))


def uniform(per_row, banded):
    if banded:
        first = cp.clip(cp.arange(n) - per_row // 2, 0, n - per_row)
        cols = first[:, None] + cp.arange(per_row)[None, :]
    else:
        cols = cp.sort(cp.random.randint(0, n, (n, per_row)), axis=1)
    return matrix(cp.full(n, per_row), cols.ravel())


def chances(seed, count):
    """The numbers from 0 to 1 of the benchmark `sparse`, so that both have one matrix."""
    powers = np.cumprod(np.full(count, 1_664_525, np.uint32), dtype=np.uint32)
    ones = np.concatenate([np.ones(1, np.uint32), powers[:-1]])
    states = powers * np.uint32(seed) + np.uint32(1_013_904_223) * np.cumsum(ones, dtype=np.uint32)
    return ((states >> 4) + 0.5) / (1 << 28)


def power_law():
    weights = chances(7, n) ** (-1 / 1.3)
    lengths = np.minimum((weights * (16 * n / weights.sum())).astype(np.int64) + 1, 200_000)
    places = np.repeat(np.arange(n), lengths)
    places = cp.unique(cp.asarray(places * n + (chances(1, len(places)) ** 2 * n).astype(np.int64)))
    return matrix(cp.bincount(places // n, minlength=n), places % n)


def arrow():
    rest = cp.stack([cp.zeros(n - 1, cp.int64), cp.arange(1, n)], axis=1).ravel()
    lengths = cp.concatenate([cp.full(1, n), cp.full(n - 1, 2)])
    return matrix(lengths, cp.concatenate([cp.arange(n), rest]))


for name, make in (
    ("16 a row random", lambda: uniform(16, False)),
    ("16 a row banded", lambda: uniform(16, True)),
    ("64 a row random", lambda: uniform(64, False)),
    ("64 a row banded", lambda: uniform(64, True)),
    ("power law", power_law),
    ("arrow", arrow),
):
    a = make()
    x = cp.random.rand(n, dtype=cp.float32)
    size = f"{n} rows, {name}"
    rows.append(row("spmv", "f32", size, lambda: a @ x, "cuSPARSE"))
    if name == "16 a row random":
        b = cp.random.rand(n, 32, dtype=cp.float32)
        size += ", 32 columns"
        # The better of both orders of the dense matrix.
        turned = cp.asfortranarray(b)
        rows.append(row("spmm", "f32", size, lambda: a @ b, "cuSPARSE"))
        rows.append(row("spmm", "f32", size, lambda: a @ turned, "cuSPARSE"))
for path in sorted(pathlib.Path(os.environ.get("TILEWORK_SPARSE", "none")).glob("*.mtx")):
    a = mmread(path).tocsr().astype("float32")
    if a.nnz < 10_000:
        continue
    # As it is, where the host is slower than the device, and repeated along the diagonal until no cache holds it.
    copies = -(-(1 << 23) // a.nnz)
    for name, matrix in ("resident", a), ("repeated", block_diag([a] * copies, "csr")):
        on_card = sparse.csr_matrix(matrix)
        x = cp.random.rand(matrix.shape[1], dtype=cp.float32)
        rows.append(row("spmv", "f32", f"{path.stem}, {name}", lambda: on_card @ x, "cuSPARSE"))
json.dump([r for r in rows if r], open(sys.argv[1], "w"), indent=1)
