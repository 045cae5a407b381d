# What cuSPARSE needs for the sparse cases, called by CuPy on the same card. Adds to the file that cuda.cu wrote:
#   python3 benches/peers/cupy_peers.py peers.json
import json
import sys
import time

import cupy as cp
from cupyx.scipy import sparse


def median(work):
    """Seconds of the median of 25 runs after half a second of the same work."""

    def once():
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return cp.cuda.get_elapsed_time(begin, end) * 1e-3

    start = time.time()
    while time.time() - start < 0.5:
        once()
    return sorted(once() for _ in range(25))[12]


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


def power_law():
    place = (cp.arange(n, dtype=cp.uint64) * 2654435761 % n).astype(cp.float64) + 1
    lengths = cp.maximum((n / 5.25 / place**0.83).astype(cp.int64), 3)
    return matrix(lengths, cp.random.randint(0, n, int(lengths.sum())))


def arrow():
    rest = cp.stack([cp.zeros(n - 1, cp.int64), cp.arange(1, n)], axis=1).ravel()
    lengths = cp.concatenate([cp.full(1, n), cp.full(n - 1, 2)])
    return matrix(lengths, cp.concatenate([cp.arange(n), rest]))


rows, n = json.load(open(sys.argv[1])), 1 << 20
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
    rows.append({"peer": "cuSPARSE", "op": "spmv", "dtype": "f32", "size": size, "seconds": median(lambda: a @ x)})
    if name == "16 a row random":
        b = cp.random.rand(n, 32, dtype=cp.float32)
        size += ", 32 columns"
        # The better of both orders of the dense matrix.
        turned = cp.asfortranarray(b)
        seconds = min(median(lambda: a @ b), median(lambda: a @ turned))
        rows.append({"peer": "cuSPARSE", "op": "spmm", "dtype": "f32", "size": size, "seconds": seconds})
json.dump(rows, open(sys.argv[1], "w"), indent=1)
