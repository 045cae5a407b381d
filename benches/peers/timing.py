# Times work on the card, for frameworks.py and sweep.py.
import time

import torch

# Calls between two events: the host is ahead of the device, so that its own time does not count.
CALLS = 8


def median(work, warm_up, runs):
    """Seconds of the median of `runs` runs after `warm_up` seconds of the same work, which keeps the clocks up."""

    def once():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CALLS):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / CALLS

    start = time.time()
    while time.time() - start < warm_up:
        once()
    return sorted(once() for _ in range(runs))[runs // 2]
