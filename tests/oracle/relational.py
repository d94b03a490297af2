#!/usr/bin/env python3
"""Writes hetero/relational.safetensors: RelBench's recipe by its definition, in plain PyTorch (2.11.0 made the file; the tests
only read it).

    relational.py FILE
"""
import json
import struct
import sys

import torch
from torch import nn

NODES, WIDTH = {"user": 23, "item": 31, "shop": 4}, {"user": 8, "item": 5, "shop": 3}
RELATIONS = ("user__buys__item", "item__bought_by__user", "user__knows__user", "shop__sells__item", "item__sold_in__shop")
EDGES, HIDDEN, OUT, WAVES, SEED = 60, 8, 6, 4, 1


def called(relation):
    return "<" + relation.replace("__", "___") + ">"


class Sage(nn.Module):
    """lin_l(mean of x over the edges into v) + lin_r(x_v)"""

    def __init__(self):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, edges, x, x_dst):
        total = torch.zeros_like(x_dst).index_add(0, edges[1], x[edges[0]])
        n = torch.zeros(len(x_dst)).index_add(0, edges[1], torch.ones(EDGES))
        return self.lin_l(total / n.clamp(min=1).unsqueeze(1)) + self.lin_r(x_dst)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleDict({called(r): Sage() for r in RELATIONS})
        self.norms = nn.ModuleDict({t: nn.LayerNorm(HIDDEN) for t in NODES})

    def forward(self, edges, x):
        into = {t: [r for r in RELATIONS if r.endswith("__" + t)] for t in NODES}
        return {t: torch.relu(self.norms[t](sum(self.convs[called(r)](edges[r], x[r.split("__")[0]], x[t]) for r in into[t])))
                for t in NODES}


class Time(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2 * WAVES, HIDDEN)

    def forward(self, days):
        angle = days.unsqueeze(1) * torch.logspace(0, 1, WAVES, 1e-4)
        return self.lin(torch.cat([torch.sin(angle), torch.cos(angle)], 1))


class Recipe(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleDict({t: nn.Linear(WIDTH[t], HIDDEN) for t in NODES})
        self.time, self.head = Time(), nn.Linear(HIDDEN, OUT)
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, edges, x, days):
        h = {t: self.encoder[t](x[t]) for t in NODES}
        h["item"] = h["item"] + self.time(days)
        for layer in self.layers:
            h = layer(edges, h)
        return {t: self.head(h[t]) for t in NODES}


def write(path, tensors, about):
    header, data = {"__metadata__": about}, b""
    for name in sorted(tensors):
        t = tensors[name].detach().contiguous()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int64: "I64"}[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)


def main():
    torch.manual_seed(SEED)
    recipe = Recipe()
    for name, p in recipe.named_parameters():
        if "norms" in name:  # else they are ones and zeros
            p.data += torch.randn_like(p) * 0.2
    edges = {}
    for r in RELATIONS:
        src, _, dst = r.split("__")
        edges[r] = torch.stack([torch.randint(NODES[src], (EDGES,)), torch.randint(NODES[dst], (EDGES,))])
    x = {t: torch.randn(n, WIDTH[t], requires_grad=True) for t, n in NODES.items()}
    days = (torch.rand(NODES["item"]) * 30).requires_grad_()
    cot = {t: torch.randn(n, OUT) for t, n in NODES.items()}
    out = recipe(edges, x, days)
    sum((out[t] * cot[t]).sum() for t in NODES).backward()
    tensors = {"in.days": days, "grad.in.days": days.grad}
    for r in RELATIONS:
        tensors["in.edge_index." + r] = edges[r]
    for t in NODES:
        tensors.update({"in.x." + t: x[t], "grad.in.x." + t: x[t].grad, "cot." + t: cot[t], "out." + t: out[t]})
    for name, p in recipe.named_parameters():
        tensors["param." + name], tensors["grad.param." + name] = p, p.grad
    write(sys.argv[1], tensors, {"source": f"plain torch {torch.__version__.split('+')[0]}, by the definition of RelBench's recipe",
                                 "seed": str(SEED)})


main()
