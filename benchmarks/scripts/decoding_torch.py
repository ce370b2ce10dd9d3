"""Beam search, and training for it, eager. usage: decoding_torch.py STEPS WORK..."""

import sys

import numpy as np
import torch
from decoding_data import (
    HIDDEN,
    LSTM,
    ROWS,
    SEARCHES,
    STATE,
    STEPS,
    TOKENS,
    VOCABULARY,
    WIDTH,
    WORDS,
    pairs,
    starts,
    texts,
)
from timing import each, result
from torch import nn

START, END = 0, 1


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, STATE)
        self.cell = nn.GRUCell(STATE, STATE)
        self.out = nn.Linear(STATE, WORDS)
        with torch.no_grad():
            self.out.bias.zero_()
            self.out.bias[END] = -100.0

    @torch.no_grad()
    def forward(self, start):
        rows = torch.arange(SEARCHES)[:, None]
        state = start.repeat_interleave(WIDTH, 0)
        sums = torch.full((SEARCHES, WIDTH), -1e9)
        sums[:, 0] = 0
        words = torch.full((SEARCHES, WIDTH), START)
        finished = torch.zeros(SEARCHES, WIDTH, dtype=torch.bool)
        only_end = torch.full((WORDS,), -1e9)
        only_end[END] = 0
        tokens, parents = [], []
        for _ in range(STEPS):
            state = self.cell(self.embedding(words.view(-1)), state)
            likely = torch.log_softmax(self.out(state), 1).view(SEARCHES, WIDTH, WORDS)
            likely = torch.where(finished[:, :, None], only_end, likely)
            sums, places = (likely + sums[:, :, None]).view(SEARCHES, -1).topk(WIDTH)
            parent, words = places // WORDS, places % WORDS
            state = state.view(SEARCHES, WIDTH, STATE)[rows, parent].view(-1, STATE)
            finished = finished[rows, parent] | (words == END)
            tokens.append(words)
            parents.append(parent)
            if finished.all():
                break
        place, found = torch.arange(WIDTH).expand(SEARCHES, WIDTH), []
        for words, parent in zip(reversed(tokens), reversed(parents)):
            found.append(words[rows, place])
            place = parent[rows, place]
        return torch.stack(found[::-1], 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(TOKENS, HIDDEN), nn.Embedding(TOKENS, HIDDEN)
        self.encoder, self.decoder = nn.GRUCell(HIDDEN, HIDDEN), nn.GRUCell(2 * HIDDEN, HIDDEN)
        self.query, self.out = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, TOKENS)

    def forward(self, source, target):
        state, encoded, decoded = torch.zeros(len(source), HIDDEN), [], []
        for word in self.source(source).unbind(1):
            state = self.encoder(word, state)
            encoded.append(state)
        encoded = torch.stack(encoded, 1)
        for word in self.target(target).unbind(1):
            weights = torch.softmax(self.query(state)[:, None] @ encoded.transpose(1, 2), 2)
            state = self.decoder(torch.cat([word, (weights @ encoded)[:, 0]], 1), state)
            decoded.append(state)
        return self.out(torch.stack(decoded, 1))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(VOCABULARY, LSTM), nn.Linear(LSTM, VOCABULARY)
        self.cells = nn.ModuleList(nn.LSTMCell(LSTM, LSTM) for _ in range(2))

    def forward(self, words):
        first = second = (torch.zeros(ROWS, LSTM), torch.zeros(ROWS, LSTM))
        outputs = []
        for word in self.embedding(words).unbind(1):
            first = self.cells[0](word, first)
            second = self.cells[1](first[0], second)
            outputs.append(second[0])
        return self.out(torch.stack(outputs, 1))


class ReadyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(VOCABULARY, LSTM), nn.Linear(LSTM, VOCABULARY)
        self.lstm = nn.LSTM(LSTM, LSTM, 2, batch_first=True)

    def forward(self, words):
        return self.out(self.lstm(self.embedding(words))[0])


def tensors(made):
    def feeds(random, count):
        return [{name: torch.from_numpy(a) for name, a in feed.items()} for feed in made(random, count)]

    return feeds


def searching():
    net = Search()
    return lambda feed: net(**feed).numpy()


def trained(network):
    def build():
        net = network()
        adam = torch.optim.Adam(net.parameters(), lr=0.001)

        def step(feed):
            given = {name: value for name, value in feed.items() if name != "label"}
            adam.zero_grad()
            logits = net(**given)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), feed["label"].flatten())
            loss.backward()
            adam.step()
            return loss.detach().numpy()

        return step

    return build


WORKS = {
    "beam search": (searching, starts),
    "attention": (trained(Attention), pairs),
    "language model": (trained(LanguageModel), texts),
    "language model, torch.nn.LSTM": (trained(ReadyModel), texts),
}
count = int(sys.argv[1])
warm = min(3, count)
metrics = {}
for name in sys.argv[2:]:
    build, feeds = WORKS[name]
    torch.manual_seed(0)
    metrics[name] = each(build(), tensors(feeds)(np.random.RandomState(0), warm + count), warm)
result(metrics)
