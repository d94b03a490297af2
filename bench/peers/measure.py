"""What the baselines share: the loop that times train steps and inferences, and the kernels of a call.

The column `kernels` counts what the profiler saw on a GPU; on a CPU operators that do work themselves, so neither views nor
operators made of others, and what torch.compile generated: the C++ kernels of this process, each once a call.
"""
import itertools, time

import torch
from torch.profiler import ProfilerActivity, profile

IDLE = {'aten::' + n for n in '''alias as_strided broadcast_tensors chunk contiguous detach detach_ dropout empty empty_like empty_strided
    expand expand_as flatten is_nonzero item lift_fresh _local_scalar_dense narrow numel permute reshape _reshape_alias resize_ result_type
    select set_ size slice split squeeze t to transpose unbind unsqueeze _unsafe_view view view_as'''.split()}
DGL = ('GSpMM', 'GSDDMM', 'EdgeSoftmax')

def work(e):
    below = sum(work(c) for c in e.cpu_children)
    own = (e.name.startswith('aten::') and e.name not in IDLE) or e.name.startswith(DGL)
    return below or int(own)

def count(call, cuda, compiled):
    """Kernels of one call that has been made before."""
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])
    with profile(activities=activities) as p:
        call()
        if cuda: torch.cuda.synchronize()
    if cuda:
        gpu = torch.autograd.DeviceType.CUDA
        return sum(e.device_type == gpu and not e.name.startswith(('Memcpy', 'Memset')) for e in p.events())
    n = sum(work(e) for e in p.events() if e.cpu_parent is None)
    if compiled:
        from torch._inductor import metrics
        n += metrics.generated_kernel_count
    return n


def timed(call, sync, times=1):
    """(seconds of a call, result) of so many calls, waited for together."""
    sync()
    start = time.perf_counter()
    for _ in range(times): result = call()
    sync()
    return (time.perf_counter() - start) / times, result

def quartiles(name, seconds):
    t, n = sorted(seconds), len(seconds)
    return {f'{name}_ms': round(1e3 * t[n // 2], 4), f'{name}_q1_ms': round(1e3 * t[n // 4], 4), f'{name}_q3_ms': round(1e3 * t[3 * n // 4], 4)}

def phases(phase, epochs, net, step, infer, sync=lambda: None, warm_up=5, together=1):
    """Columns of the phases asked for: the first call, then medians of the epochs after warm_up more, of 20 inferences.
    together: so many calls are waited for at once; on a GPU a wait for each would be timed, too."""
    out = {}
    if phase != 'infer':
        first, loss = timed(step, sync)
        for _ in range(warm_up): step()
        seconds = []
        for _ in range(max(1, epochs // together)):
            t, loss = timed(step, sync, together)
            seconds.append(t)
        out.update(first_step_s=round(first, 3), **quartiles('train', seconds), loss=float(loss.detach()))
    net.eval()
    if phase != 'train':
        first, _ = timed(infer, sync)
        out.update(first_infer_s=round(first, 3), **quartiles('infer', [timed(infer, sync, together)[0] for _ in range(max(2, 20 // together))]))
    return out

def steps(n, loader, step):
    """Mean seconds of n steps, the making of their batches included."""
    batches = (b for _ in itertools.count() for b in loader)
    return round(timed(lambda: [step(b) for b in itertools.islice(batches, n)], lambda: None)[0] / n, 5)

def accuracies(scores, y, **masks):
    return {name: float((scores.argmax(1)[i] == y[i]).float().mean()) for name, i in masks.items()}
