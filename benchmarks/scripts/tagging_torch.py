"""Training steps of labels without places, eager. usage: tagging_torch.py STEPS"""

import sys

import numpy as np
import tagging_data as data
import torch
from timing import each, result
from torch import nn

count = int(sys.argv[1])
warm = min(data.MOST_WARM, count)
net = nn.Linear(data.WIDTH, data.CLASSES)
adam = torch.optim.Adam(net.parameters(), lr=0.001)
times = torch.full((data.BATCH,), data.FRAMES)
sizes = torch.full((data.BATCH,), data.LABELS)


def step(batch):
    frames, label = batch
    adam.zero_grad()
    logs = nn.functional.log_softmax(net(frames), dim=2)
    loss = nn.functional.ctc_loss(logs, label, times, sizes, reduction="sum") / data.BATCH
    loss.backward()
    adam.step()
    return loss.detach().numpy()


fed = [
    (
        torch.from_numpy(frames).reshape(data.BATCH, data.FRAMES, data.WIDTH).transpose(0, 1).contiguous(),
        torch.from_numpy(label).reshape(data.BATCH, data.LABELS).long(),
    )
    for frames, label in data.frames(np.random.RandomState(0), warm + count)
]
result({"warpctc": each(step, fed, warm)})
