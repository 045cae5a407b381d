# The shapes of benches/sweep.rs by PyTorch (cuBLAS, cuDNN) and CuPy (CUB, cuSPARSE) on the same card:
#   python3 benches/peers/sweep.py shapes.json peers.json [seconds]
# The benchmark's `--merge peers.json` then adds the ratios. With a limit of seconds shapes of all ops are taken in turn
# until it is over.
import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

from timing import median

TYPES = {"f32": torch.float32, "f16": torch.float16}


def on(shape, flag):
    return shape["options"].get(flag) == "true"


def tensors(shape):
    made = []
    for sides, dtype in shape["inputs"]:
        if dtype == "u32":
            # Keys have 31 bits here, since PyTorch sorts no unsigned ones.
            made.append(torch.randint(0, 2**31 - 1, sides, dtype=torch.int32, device="cuda"))
        else:
            made.append(torch.rand(sides, device="cuda").sub_(0.5).to(TYPES[dtype]))
    return made


def product(shape, a, b):
    a = a.transpose(-1, -2) if on(shape, "trans-a") else a
    b = b.transpose(-1, -2) if on(shape, "trans-b") else b
    out = torch.empty(*a.shape[:-1], b.shape[-1], dtype=a.dtype, device="cuda")
    return lambda: torch.matmul(a, b, out=out)


def gemv(shape, a, x):
    a = a.t() if on(shape, "trans") else a
    out = torch.empty(a.shape[0], device="cuda")
    return lambda: torch.mv(a, x, out=out)


def reduce(shape, x):
    x = x if shape["options"]["axis"] == "last" else x.flatten()
    return {
        "sum": lambda: x.sum(-1),
        "max": lambda: x.amax(-1),
        "argmax": lambda: x.argmax(-1),
    }[shape["options"]["op"]]


def sort(shape, keys, values=None):
    return lambda: torch.sort(keys) if values is not None else torch.sort(keys)[0]


def conv(shape, x, w):
    stride, pad = int(shape["options"]["stride"]), int(shape["options"]["pad"])
    return lambda: F.conv2d(x, w, stride=stride, padding=pad)


def attention(shape, q, k, v):
    causal, grouped = on(shape, "causal"), q.shape[1] != k.shape[1]
    mask = None
    if causal and q.shape[2] != k.shape[2]:
        # The last query is aligned with the last key; PyTorch aligns the first ones.
        if q.shape[2] == 1:
            causal = False
        else:
            rows, cols = q.shape[2], k.shape[2]
            mask = torch.ones(rows, cols, dtype=torch.bool, device="cuda").tril(cols - rows)
            causal = False
    return lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)


def matrix(shape):
    """The matrix that the benchmark forms."""
    import cupy as cp
    from cupyx.scipy import sparse

    of = shape["matrix"]
    rows, cols, entries, kind = of["rows"], of["cols"], of["entries"], of["kind"]
    row = np.arange(rows, dtype=np.int64)
    count = np.full(rows, entries, dtype=np.int64)
    if kind == "gaps":
        count = 2 * entries * (row % 2)
    elif kind == "power":
        count = np.maximum(entries * rows // 12 // (row + 1), entries // 2)
    count = np.minimum(count, cols)
    starts = np.concatenate([[0], np.cumsum(count)])
    at = np.repeat(row, count)
    i = np.arange(starts[-1]) - np.repeat(starts[:-1], count)
    if kind == "band":
        col = np.repeat(np.minimum(row * cols // rows, cols - count), count) + i
    else:
        col = (at * 7919 % cols + i * cols // np.maximum(np.repeat(count, count), 1)) % cols
        col = col[np.lexsort((col, at))]
    values = cp.asarray((np.arange(len(col)) % 17 / 17 - 0.5).astype(np.float32))
    parts = (values, cp.asarray(col.astype(np.int32)), cp.asarray(starts.astype(np.int32)))
    return sparse.csr_matrix(parts, shape=(rows, cols))


def multiply(shape, x):
    import cupy as cp

    a = matrix(shape)
    b = cp.asarray(x) if x.dim() == 1 else cp.asfortranarray(cp.asarray(x))
    return lambda: a @ b


WORK = {
    "gemm": product,
    "gemm-batched": product,
    "gemv": gemv,
    "reduce": reduce,
    "scan": lambda shape, x: lambda: torch.cumsum(x, -1),
    "softmax": lambda shape, x: lambda: torch.softmax(x, -1),
    "sort": sort,
    "transpose": lambda shape, x: lambda: x.t().contiguous(),
    "spmv": multiply,
    "spmm": multiply,
    "conv": conv,
    "attention": attention,
}
PEERS = {"spmv": "cuSPARSE", "spmm": "cuSPARSE"}

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
limit = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
begun = time.time()
rows = []
for shape in json.load(open(sys.argv[1])):
    if time.time() - begun > limit:
        break
    try:
        seconds = median(WORK[shape["op"]](shape, *tensors(shape)), 0.1, 15)
    except Exception as e:
        print(shape["op"], shape["size"], e)
        continue
    peer = PEERS.get(shape["op"], "PyTorch")
    rows.append({key: shape[key] for key in ("op", "dtype", "size")} | {"peer": peer, "seconds": seconds})
json.dump(rows, open(sys.argv[2], "w"), indent=1)
print(len(rows), "shapes in", round(time.time() - begun), "s")
