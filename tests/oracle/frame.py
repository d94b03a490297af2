#!/usr/bin/env python3
"""Writes layers/frame_resnet.safetensors: what LinearEncoder and ResNet of PyTorch Frame 0.3.0 are by their definition, in plain PyTorch
(2.11.0 made the file; the tests only read it).

    frame.py FILE
"""
import json
import struct
import sys

import torch
from torch import nn

COLUMNS, CHANNELS, OUT, LAYERS, ROWS, SEED = 10, 8, 6, 2, 37, 1


class Encoder(nn.Module):
    """y[n, c, :] = x[n, c] w[c, :] + b[c, :]"""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLUMNS, CHANNELS) * 0.3)
        self.bias = nn.Parameter(torch.randn(COLUMNS, CHANNELS) * 0.1)

    def forward(self, x):
        return x.unsqueeze(2) * self.weight + self.bias


class Block(nn.Module):
    """relu(norm2(lin2(relu(norm1(lin1(x)))))) + x, x by a linear layer where its width is another"""

    def __init__(self, width):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(width, CHANNELS), nn.Linear(CHANNELS, CHANNELS)
        self.norm1, self.norm2 = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
        self.shortcut = nn.Linear(width, CHANNELS) if width != CHANNELS else nn.Identity()

    def forward(self, x):
        h = torch.relu(self.norm1(self.lin1(x)))
        h = torch.relu(self.norm2(self.lin2(h)))
        return h + self.shortcut(x)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.ModuleList(Block(COLUMNS * CHANNELS if i == 0 else CHANNELS) for i in range(LAYERS))
        self.decoder = nn.Sequential(nn.LayerNorm(CHANNELS), nn.ReLU(), nn.Linear(CHANNELS, OUT))

    def forward(self, x):
        for block in self.backbone:
            x = block(x)
        return self.decoder(x)


class Row(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.resnet = Encoder(), ResNet()

    def forward(self, x):
        return self.resnet(self.encoder(x).flatten(1))


def write(path, tensors, about):
    header, data = {"__metadata__": about}, b""
    for name in sorted(tensors):
        t = tensors[name].detach().contiguous()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)


def main():
    torch.manual_seed(SEED)
    row = Row()
    for name, p in row.named_parameters():
        if "norm" in name or "decoder.0" in name:  # else they are ones and zeros
            p.data += torch.randn_like(p) * 0.2
    x = torch.randn(ROWS, COLUMNS, requires_grad=True)
    cot = torch.randn(ROWS, OUT)
    out = row(x)
    (out * cot).sum().backward()
    tensors = {"in.x": x, "grad.in.x": x.grad, "cot": cot, "out": out}
    for name, p in row.named_parameters():
        tensors["param." + name], tensors["grad.param." + name] = p, p.grad
    write(sys.argv[1], tensors, {"source": f"plain torch {torch.__version__.split('+')[0]}, by the definition of PyTorch Frame's "
                                 "LinearEncoder and ResNet", "seed": str(SEED)})


main()
