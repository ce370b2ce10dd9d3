"""Translate rows of words: an encoder in both directions, a decoder that attends to it, beam search.

The language is made up: every word has one translation, and the translation says pairs of words the other way round.

usage: python -m fluidlite examples/book/c08_machine_translation.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

layers = fluid.layers
START, END, WORDS, WIDTH, LONGEST, BEAMS = 0, 1, 12, 24, 6, 3


def weights(name):
    return {"param_attr": fluid.ParamAttr(name + "_w"), "bias_attr": fluid.ParamAttr(name + "_b")}


def encode(source, lengths):
    """The states at every word, [batch, words, 2 * WIDTH], and what the decoder starts from, [batch, WIDTH]."""
    vectors = fluid.embedding(source, [WORDS, WIDTH], param_attr="source_vectors")
    ways, last = [], None
    for backwards in (False, True):
        name = "backward" if backwards else "forward"
        cell = layers.GRUCell(WIDTH, *weights(name).values(), name=name)
        states, last = layers.rnn(cell, vectors, sequence_length=lengths, is_reverse=backwards)
        ways.append(states)
    return layers.concat(ways, axis=2), layers.fc(last, WIDTH, act="tanh", **weights("bridge"))


class Attending(layers.RNNCell):
    """A GRU that reads the last word and a mean of the encoder's states, weighed by how well they fit its own state."""

    def __init__(self):
        self.gru = layers.GRUCell(WIDTH, *weights("decoder").values(), name="decoder")

    def call(self, inputs, states, encoded, keys, outside):
        query = layers.unsqueeze(layers.fc(states, WIDTH, **weights("query")), [1])
        fit = layers.fc(layers.tanh(keys + query), 1, num_flatten_dims=2, param_attr="fit_w", bias_attr=False)
        share = layers.softmax(layers.squeeze(fit, [2]) + outside)
        context = layers.reduce_sum(encoded * layers.unsqueeze(share, [2]), dim=1)
        return self.gru(layers.concat([inputs, context], axis=1), states)


def embed(words):
    return fluid.embedding(words, [WORDS, WIDTH], param_attr="target_vectors")


def project(states):
    return layers.fc(states, WORDS, num_flatten_dims=len(states.shape) - 1, **weights("out"))


def network(searching):
    """The best translations, [batch, words, beams], or the loss of a batch that has its translations."""
    source, lengths = fluid.data("source", [None, None], "int64"), fluid.data("lengths", [None], "int64")
    encoded, first = encode(source, lengths)
    keys = layers.fc(encoded, WIDTH, num_flatten_dims=2, param_attr="keys_w", bias_attr=False)
    outside = (layers.sequence_mask(lengths, layers.shape(source)[1], "float32") - 1.0) * 1e9
    about = {"encoded": encoded, "keys": keys, "outside": outside}
    if searching:
        tile = layers.BeamSearchDecoder.tile_beam_merge_with_batch
        decoder = layers.BeamSearchDecoder(Attending(), START, END, BEAMS, embed, project)
        about = {name: tile(value, BEAMS) for name, value in about.items()}
        return layers.dynamic_decode(decoder, inits=first, max_step_num=LONGEST + 1, is_test=True, **about)[0]
    given, wanted = (fluid.data(name, [None, None], "int64") for name in ("given", "wanted"))
    states, _ = layers.rnn(Attending(), embed(given), first, **about)
    losses = layers.softmax_with_cross_entropy(project(states), layers.unsqueeze(wanted, [2]))
    mask = layers.sequence_mask(lengths + 1, layers.shape(given)[1], "float32")
    return layers.reduce_sum(layers.squeeze(losses, [2]) * mask) / layers.reduce_sum(mask)


def pairs(random, count):
    """A batch of padded rows with their lengths, what the decoder is given, and what it has to say."""
    lengths = random.randint(2, LONGEST + 1, count).astype("int64")
    source = np.full((count, lengths.max()), END, "int64")
    given, wanted = (np.full((count, lengths.max() + 1), END, "int64") for _ in range(2))
    given[:, 0] = START
    for row, length in enumerate(lengths):
        words = random.randint(2, WORDS, length)
        said = [(words[at ^ 1 if at ^ 1 < length else at] * 3) % (WORDS - 2) + 2 for at in range(length)]
        source[row, :length], given[row, 1 : length + 1], wanted[row, :length] = words, said, said
    return {"source": source, "lengths": lengths, "given": given, "wanted": wanted}


def main(steps):
    training, startup, search = fluid.Program(), fluid.Program(), fluid.Program()
    training.random_seed = startup.random_seed = 90
    with fluid.program_guard(training, startup), fluid.unique_name.guard():
        loss = network(searching=False)
        clip = fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0)
        decay = fluid.regularizer.L2DecayRegularizer(1e-5)
        fluid.optimizer.Adam(0.01, regularization=decay, grad_clip=clip).minimize(loss)
    with fluid.program_guard(search, fluid.Program()), fluid.unique_name.guard():
        found = network(searching=True)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    random = np.random.RandomState(8)
    for step in range(steps):
        (value,) = exe.run(training, feed=pairs(random, 32), fetch_list=[loss])
        if step % (steps // 10) == 0:
            print(f"step {step}: loss {value.item():.6f}")
    tested = pairs(random, 4)
    told = exe.run(search, feed={name: tested[name] for name in ("source", "lengths")}, fetch_list=[found])[0]
    for row, length in enumerate(tested["lengths"]):
        print(f"{tested['source'][row, :length].tolist()} is")
        print("\n".join(f"    {words}" for words in told[row].T.tolist()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
