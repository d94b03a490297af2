"""How many kernels a call of a PyTorch or DGL function runs, for the baselines' column `kernels`.

On a GPU: those the profiler saw on the device.  On a CPU: operators that do work themselves, so neither views nor
operators made of others, and what torch.compile generated: the C++ kernels of this process, each once a call.
"""
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
