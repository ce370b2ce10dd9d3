"""Small models of the kinds that dygraph code is full of; `MODELS` says how each is made and fed."""

import numpy as np

from fluidlite import dygraph, layers
from fluidlite.dygraph import nn, to_variable


class ConvNet(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.features = dygraph.Sequential(
            nn.Conv2D(1, 3, 3, padding=1, act="relu"), nn.BatchNorm(3, act="relu"), nn.Pool2D(2, "max", 2)
        )
        self.out = nn.Linear(3 * 3 * 3, 4, act="softmax")

    def forward(self, image, label=None):
        x = self.features(image)
        x = self.out(layers.reshape(x, [-1, 3 * 3 * 3]))
        if label is None:
            return x
        return x, layers.mean(layers.cross_entropy(x, label)), layers.accuracy(x, label)


class Residual(dygraph.Layer):
    def __init__(self, channels, wider):
        super().__init__()
        self.first = nn.Conv2D(channels, wider, 3, padding=1, bias_attr=False)
        self.norm = nn.BatchNorm(wider)
        self.short = None if channels == wider else nn.Conv2D(channels, wider, 1, bias_attr=False)

    def forward(self, x):
        y = self.norm(self.first(x))
        short = x if self.short is None else self.short(x)
        return layers.elementwise_add(short, y, act="relu")


class ResNet(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = []
        for number, (channels, wider) in enumerate([(2, 3), (3, 3), (3, 4)]):
            self.blocks.append(self.add_sublayer(f"block{number}", Residual(channels, wider)))
        self.pool = nn.Pool2D(pool_type="avg", global_pooling=True)
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        x = self.pool(x)
        return self.out(layers.reshape(x, [-1, x.shape[1]]))


class LanguageModel(dygraph.Layer):
    """Two LSTMs over a batch of texts, step by step, with the states handed in and out."""

    hidden, depth, words = 4, 2, 9

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding([self.words, self.hidden])
        self.weights, self.biases = [], []
        for level in range(self.depth):
            weight = self.create_parameter(attr=None, shape=[2 * self.hidden, 4 * self.hidden])
            bias = self.create_parameter(attr=None, shape=[4 * self.hidden], is_bias=True)
            self.weights.append(self.add_parameter(f"w_{level}", weight))
            self.biases.append(self.add_parameter(f"b_{level}", bias))

    def forward(self, ids, hidden, cell):
        x = self.table(ids)
        hiddens = [hidden[level] for level in range(self.depth)]
        cells = [cell[level] for level in range(self.depth)]
        outs = []
        for step in range(ids.shape[1]):
            y = x[:, step]
            for level in range(self.depth):
                gates = layers.matmul(layers.concat([y, hiddens[level]], 1), self.weights[level])
                i, j, f, o = layers.split(layers.elementwise_add(gates, self.biases[level]), 4, dim=-1)
                cells[level] = cells[level] * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
                y = hiddens[level] = layers.tanh(cells[level]) * layers.sigmoid(o)
            outs.append(y)
        out = layers.matmul(layers.stack(outs, 1), layers.transpose(self.table.weight, [1, 0]))
        return out, layers.stack(hiddens), layers.stack(cells)


class Seq2Seq(dygraph.Layer):
    """A GRU reads up to the length of each text; another one writes, and attends to what was read."""

    hidden, words = 4, 8

    def __init__(self):
        super().__init__()
        self.source, self.target = (nn.Embedding([self.words, self.hidden]) for _ in range(2))
        self.read_in, self.write_in = (
            nn.Linear(n * self.hidden, 3 * self.hidden, bias_attr=False) for n in (1, 2)
        )
        self.read, self.write = nn.GRUUnit(3 * self.hidden), nn.GRUUnit(3 * self.hidden)
        self.attend, self.mix = (nn.Linear(n * self.hidden, self.hidden, bias_attr=False) for n in (1, 2))
        self.out = nn.Linear(self.hidden, self.words)

    def encoded(self, source, lengths):
        x = self.source(source)
        mask = layers.sequence_mask(lengths, maxlen=layers.shape(source)[1], dtype="float32")
        state = layers.fill_constant_batch_size_like(x, [-1, self.hidden], "float32", 0)
        states = []
        for step in range(source.shape[1]):
            new, _, _ = self.read(self.read_in(x[:, step]), state)
            on = layers.unsqueeze(mask[:, step], [1])
            state = new * on + state * (1 - on)
            states.append(state)
        return layers.stack(states, 1), state, (mask - 1.0) * 1e9

    def step(self, word, state, memory, mask):
        query = layers.unsqueeze(state, [1])
        scores = layers.matmul(query, self.attend(memory), transpose_y=True)
        shares = layers.softmax(scores + layers.unsqueeze(mask, [1]))
        context = layers.squeeze(layers.matmul(shares, memory), [1])
        state, _, _ = self.write(self.write_in(layers.concat([word, context], 1)), state)
        return self.out(layers.tanh(self.mix(layers.concat([state, context], 1)))), state

    def forward(self, source, lengths, target):
        memory, state, mask = self.encoded(source, lengths)
        words = self.target(target)
        outs = []
        for step in range(target.shape[1]):
            out, state = self.step(words[:, step], state, memory, mask)
            outs.append(out)
        return layers.stack(outs, 1)


class BeamSearch(Seq2Seq):
    """The best texts of `beam` that are kept; scores of finished ones only go on with the end."""

    beam, longest, end = 3, 5, 1

    def forward(self, source, lengths):
        memory, state, mask = self.encoded(source, lengths)
        batch = source.shape[0]
        memory, state, mask = (self.for_all(x) for x in (memory, state, mask))
        scores = to_variable(np.array([[0.0] + [-1e9] * (self.beam - 1)], "float32"))
        scores = layers.expand(scores, [batch, 1])
        words = layers.fill_constant([batch, self.beam], "int64", 2)
        done = layers.fill_constant([batch, self.beam], "float32", 0)
        ending = to_variable(np.array([[[-1e9] * self.words]], "float32"))
        ending = ending * (1 - layers.one_hot(layers.fill_constant([1, 1], "int64", self.end), self.words))
        base = layers.unsqueeze(layers.range(0, batch, 1, "int64"), [1]) * self.beam
        found, came_from = [], []
        for _ in range(self.longest):
            out, state = self.step(self.target(layers.reshape(words, [-1])), state, memory, mask)
            out = layers.log(layers.softmax(layers.reshape(out, [batch, self.beam, self.words])))
            on = layers.unsqueeze(done, [2])
            total = out * (1 - on) + ending * on + layers.unsqueeze(scores, [2])
            scores, places = layers.topk(layers.reshape(total, [batch, self.beam * self.words]), self.beam)
            parents = layers.elementwise_floordiv(places, layers.fill_constant([1], "int64", self.words))
            words = layers.elementwise_mod(places, layers.fill_constant([1], "int64", self.words))
            rows = layers.reshape(parents + base, [-1])
            state = layers.gather(state, rows)
            done = layers.reshape(layers.gather(layers.reshape(done, [-1]), rows), [batch, self.beam])
            ended = layers.cast(words == layers.fill_constant([1], "int64", self.end), "float32")
            done = layers.elementwise_max(done, ended)
            found.append(words)
            came_from.append(parents)
            if layers.reduce_min(done) > 0.5:
                break
        return layers.gather_tree(layers.stack(found, 0), layers.stack(came_from, 0)), scores

    def for_all(self, x):
        """Every row `beam` times."""
        shape = [x.shape[0] * self.beam, *x.shape[1:]]
        return layers.reshape(
            layers.expand(layers.unsqueeze(x, [1]), [1, self.beam] + [1] * (len(x.shape) - 1)), shape
        )


class Attention(dygraph.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias_attr=False) for _ in range(4))

    def split(self, x):
        x = layers.reshape(x, [0, 0, self.heads, self.width // self.heads])
        return layers.transpose(x, [0, 2, 1, 3])

    def forward(self, queries, keys, mask):
        q, k, v = self.split(self.q(queries)), self.split(self.k(keys)), self.split(self.v(keys))
        scores = layers.matmul(q, k, transpose_y=True, alpha=(self.width // self.heads) ** -0.5)
        scores = scores + mask
        x = layers.transpose(layers.matmul(layers.softmax(scores), v), [0, 2, 1, 3])
        return self.out(layers.reshape(x, [0, 0, self.width]))


class Transformer(dygraph.Layer):
    """One layer that encodes and one that decodes, masks made of the ids; losses are smoothed and masked."""

    width, words = 4, 7

    def __init__(self):
        super().__init__()
        self.table, self.places = nn.Embedding([self.words, self.width]), nn.Embedding([12, self.width])
        self.self_one, self.self_two, self.cross = (Attention(self.width, 2) for _ in range(3))
        self.norms = dygraph.LayerList([nn.LayerNorm(self.width) for _ in range(4)])
        self.wide, self.narrow = nn.Linear(self.width, 8, act="relu"), nn.Linear(8, self.width)

    def embedded(self, ids):
        places = layers.range(0, ids.shape[1], 1, "int64")
        x = layers.scale(self.table(ids), self.width**0.5)
        return layers.elementwise_add(x, self.places(places), axis=-1)

    def forward(self, source, target, label):
        pad = layers.cast(source == layers.zeros_like(source), "float32") * -1e9
        pad = layers.unsqueeze(pad, [1, 2])
        length = target.shape[1]
        later = layers.triu(layers.ones([length, length], "float32"), 1) * -1e9
        x = self.embedded(source)
        x = self.norms[0](x + self.self_one(x, x, pad))
        x = self.norms[1](x + self.narrow(self.wide(x)))
        y = self.embedded(target)
        y = self.norms[2](y + self.self_two(y, y, later))
        y = self.norms[3](y + self.cross(y, x, pad))
        scores = layers.matmul(y, self.table.weight, transpose_y=True)
        smooth = layers.label_smooth(layers.one_hot(layers.unsqueeze(label, [2]), self.words), epsilon=0.1)
        cost = layers.softmax_with_cross_entropy(scores, smooth, soft_label=True)
        used = layers.unsqueeze(layers.cast(label != layers.zeros_like(label), "float32"), [2])
        return scores, layers.reduce_sum(cost * used) / layers.reduce_sum(used)


class SentimentCnn(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding([9, 4], padding_idx=0)
        self.conv = nn.Conv2D(1, 3, [2, 4], padding=[1, 0], act="tanh")
        self.out = nn.Linear(3, 2, act="softmax")

    def forward(self, ids, label=None):
        x = self.table(ids)
        x = x * layers.unsqueeze(layers.cast(ids != layers.zeros_like(ids), "float32"), [2])
        x = layers.squeeze(self.conv(layers.unsqueeze(x, [1])), [3])
        x = self.out(layers.reduce_max(x, dim=-1))
        if label is not None:
            return layers.mean(layers.cross_entropy(x, label)), x
        return x


class SentimentGru(dygraph.Layer):
    """A GRU both ways; the steps are as many as the longest text has."""

    hidden = 3

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding([9, 4])
        self.inward = dygraph.LayerList([nn.Linear(4, 3 * self.hidden) for _ in range(2)])
        self.units = dygraph.LayerList([nn.GRUUnit(3 * self.hidden) for _ in range(2)])
        self.out = nn.Linear(2 * self.hidden, 2, act="softmax")

    def forward(self, ids):
        x = self.table(ids)
        ends = []
        for way in range(2):
            steps = self.inward[way](x)
            state = layers.zeros([ids.shape[0], self.hidden], "float32")
            order = range(ids.shape[1]) if way == 0 else range(ids.shape[1] - 1, -1, -1)
            outs = []
            for step in order:
                state, _, _ = self.units[way](steps[:, step, :], state)
                outs.append(state)
            ends.append(layers.reduce_max(layers.stack(outs), dim=0))
        return self.out(layers.concat(ends, axis=1))


def images(size):
    def made(random, batch, length):
        return [random.standard_normal((batch, *size)).astype("float32")]

    return made


def texts(words, count=1, low=1):
    def made(random, batch, length):
        return [random.integers(low, words, (batch, length)) for _ in range(count)]

    return made


def ptb(random, batch, length):
    states = [random.standard_normal((2, batch, 4)).astype("float32") for _ in range(2)]
    return [random.integers(0, 9, (batch, length)), *states]


def translation(random, batch, length):
    lengths = random.integers(1, length + 1, batch)
    lengths[0] = length
    return [random.integers(0, 8, (batch, length)), lengths, random.integers(0, 8, (batch, length + 1))]


def masked(random, batch, length):
    source, target, label = (random.integers(1, 7, (batch, n)) for n in (length, length + 2, length + 2))
    source[-1, length // 2 + 1 :] = 0
    label[-1, length // 2 + 1 :] = 0
    return [source, target, label]


def labelled(inputs, classes):
    def made(random, batch, length):
        return [*inputs(random, batch, length), random.integers(0, classes, (batch, 1))]

    return made


MODELS = {
    "conv": (ConvNet, images((1, 6, 6))),
    "conv with labels": (ConvNet, labelled(images((1, 6, 6)), 4)),
    "residual": (ResNet, images((2, 5, 5))),
    "language model": (LanguageModel, ptb),
    "seq2seq": (Seq2Seq, translation),
    "beam search": (BeamSearch, lambda *sizes: translation(*sizes)[:2]),
    "transformer": (Transformer, masked),
    "sentiment of convolutions": (SentimentCnn, texts(9, low=0)),
    "sentiment of convolutions with labels": (SentimentCnn, labelled(texts(9, low=0), 2)),
    "sentiment of both ways": (SentimentGru, texts(9)),
}
