"""Training steps on sequences and loops, eager. usage: sequences_torch.py STEPS WORK...

Batches are padded or packed before the clock runs, as a `collate_fn` does. What stands beside Fluid's DynamicRNN is
a loop over padded steps which keeps the hidden state of sequences that have ended; two more rows are the same
network by a loop over packed steps, which computes nothing in vain, and by torch.nn.RNN, whose cell is fixed.
"""

import sys

import numpy as np
import torch
from sequences_data import BATCH, EMBEDDING, FIXED, HIDDEN, MOST_WARM, TURNS, VOCABULARY, batches
from timing import each, result
from torch import nn
from torch.nn.utils import rnn


class ConvPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING)
        self.convs = nn.ModuleList(nn.Conv1d(EMBEDDING, HIDDEN, size, padding="same") for size in (3, 4))
        self.last = nn.Linear(2 * HIDDEN, 2)

    def forward(self, words, lengths):
        mask = (torch.arange(words.shape[1]) < lengths[:, None]).float()[:, None, :]
        rows = self.embedding(words).transpose(1, 2) * mask
        roots = lengths[:, None].float().sqrt()
        pooled = [(torch.tanh(conv(rows)) * mask).sum(2) / roots for conv in self.convs]
        return self.last(torch.cat(pooled, 1))


class PaddedLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING)
        self.cell = nn.Linear(EMBEDDING + HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, 2)

    def forward(self, words, lengths):
        rows, hidden = self.embedding(words).transpose(0, 1), torch.zeros(BATCH, HIDDEN)
        for number, row in enumerate(rows):
            new = torch.tanh(self.cell(torch.cat([row, hidden], 1)))
            hidden = torch.where((number < lengths)[:, None], new, hidden)
        return self.last(hidden)


class Attending(PaddedLoop):
    """Each step looks at all words of its sentence."""

    def __init__(self):
        super().__init__()
        self.keys, self.asks = [nn.Linear(size, HIDDEN, bias=False) for size in (EMBEDDING, HIDDEN)]
        self.weigh = nn.Linear(HIDDEN, 1, bias=False)
        self.cell = nn.Linear(2 * EMBEDDING + HIDDEN, HIDDEN)

    def forward(self, words, lengths):
        rows, hidden = self.embedding(words), torch.zeros(BATCH, HIDDEN)
        keys, behind = self.keys(rows), torch.arange(words.shape[1]) >= lengths[:, None]
        for number, row in enumerate(rows.transpose(0, 1)):
            scores = self.weigh(torch.tanh(keys + self.asks(hidden)[:, None])).squeeze(2)
            weights = scores.masked_fill(behind, -torch.inf).softmax(1)
            found = torch.bmm(weights[:, None], rows).squeeze(1)
            new = torch.tanh(self.cell(torch.cat([row, found, hidden], 1)))
            hidden = torch.where((number < lengths)[:, None], new, hidden)
        return self.last(hidden)


class PackedLoop(PaddedLoop):
    def forward(self, packed):
        hidden, ended = torch.zeros(BATCH, HIDDEN), []
        for rows in self.embedding(packed.data).split(packed.batch_sizes.tolist()):
            if len(rows) < len(hidden):
                ended.append(hidden[len(rows) :])
                hidden = hidden[: len(rows)]
            hidden = torch.tanh(self.cell(torch.cat([rows, hidden], 1)))
        ends = torch.cat([hidden, *reversed(ended)])
        return self.last(ends[packed.unsorted_indices])


class FixedLoop(PaddedLoop):
    def forward(self, words):
        rows, hidden = self.embedding(words).transpose(0, 1), torch.zeros(BATCH, HIDDEN)
        for row in rows:
            hidden = torch.tanh(self.cell(torch.cat([row, hidden], 1)))
        return self.last(hidden)


class Ready(nn.Module):
    def __init__(self, kind=nn.RNN):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING)
        self.rnn = kind(EMBEDDING, HIDDEN)
        self.last = nn.Linear(HIDDEN, 2)

    def forward(self, packed):
        return self.last(self.rnn(packed._replace(data=self.embedding(packed.data)))[1][0])


class Largest(Ready):
    """An LSTM, and the largest of all its states."""

    def __init__(self):
        super().__init__(nn.LSTM)

    def forward(self, packed):
        states = self.rnn(packed._replace(data=self.embedding(packed.data)))[0]
        return self.last(rnn.pad_packed_sequence(states, padding_value=-1.0)[0].max(0)[0])


def padded(lengths, parts):
    return rnn.pad_sequence(parts, batch_first=True), lengths


def packed(lengths, parts):
    return (rnn.pack_sequence(parts, enforce_sorted=False),)


def stacked(lengths, parts):
    return (torch.stack(parts),)


def trained(network, collate, lengths=()):
    """A step function of the network and the batches it gets."""
    net = network()
    adam = torch.optim.Adam(net.parameters(), lr=0.001)

    def step(batch):
        given, label = batch
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(*given), label)
        loss.backward()
        adam.step()
        return loss.detach().numpy()

    def feeds(random, count):
        for counts, words, label in batches(random, count, *lengths):
            parts = torch.from_numpy(words[:, 0]).split(counts.tolist())
            yield collate(torch.from_numpy(counts), parts), torch.from_numpy(label[:, 0])

    return step, feeds


def turns(batch):
    x, weight = batch
    with torch.no_grad():
        turn, end = torch.zeros(1, dtype=torch.int64), torch.full([1], TURNS)
        while turn < end:
            x = torch.relu(x @ weight + weight)
            turn += 1
    return x.numpy()


def matrices(random, count):
    return [[torch.from_numpy((random.rand(8, 8) / 8).astype("float32")) for _ in range(2)]] * count


WORKS = {
    "sequence_conv_pool": lambda: trained(ConvPool, padded),
    "DynamicRNN": lambda: trained(PaddedLoop, padded),
    "DynamicRNN, packed": lambda: trained(PackedLoop, packed),
    "DynamicRNN, torch.nn.RNN": lambda: trained(Ready, packed),
    "attention": lambda: trained(Attending, padded),
    "dynamic_lstm": lambda: trained(Largest, packed),
    "dynamic_gru": lambda: trained(lambda: Ready(nn.GRU), packed),
    "StaticRNN": lambda: trained(FixedLoop, stacked, (FIXED, FIXED)),
    "while_loop": lambda: (turns, matrices),
}
count = int(sys.argv[1])
warm = min(MOST_WARM, count)
metrics = {}
for name in sys.argv[2:]:
    torch.manual_seed(0)
    step, feeds = WORKS[name]()
    metrics[name] = each(step, list(feeds(np.random.RandomState(0), warm + count)), warm)
result(metrics)
