"""Learn to turn rows of digits around, by a sequence to sequence network with attention, and decode by beam search.

python -m fluidlite examples/translate.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

layers = fluid.layers
START, END, DIGITS = 0, 1, 8  # tokens 2 to 9 are digits
WORDS, WIDTH, LONGEST, BATCH, BEAMS = DIGITS + 2, 48, 6, 64, 3


def embed(tokens):
    return fluid.embedding(tokens, [WORDS, WIDTH], param_attr="embedding")


def project(hidden):
    return layers.fc(
        hidden, WORDS, num_flatten_dims=len(hidden.shape) - 1, param_attr="out_w", bias_attr="out_b"
    )


class AttendingCell(layers.RNNCell):
    """A GRU that in each step reads the encoder's outputs, weighed by how well they fit its state."""

    def __init__(self):
        self.gru = layers.GRUCell(
            WIDTH, fluid.ParamAttr(name="decoder_w"), fluid.ParamAttr(name="decoder_b"), name="decoder"
        )

    def call(self, inputs, states, encoded, hidden_ends):
        query = layers.unsqueeze(layers.fc(states, WIDTH, param_attr="query_w", bias_attr=False), [1])
        fit = layers.matmul(query, encoded, transpose_y=True) + layers.unsqueeze(hidden_ends, [1])
        context = layers.squeeze(layers.matmul(layers.softmax(fit), encoded), [1])
        return self.gru(layers.concat([inputs, context], axis=1), states)


def network(decode):
    """The tokens found, [batch, time, beams], or the loss of a batch that has its target."""
    source = fluid.data("source", [None, None], "int64")
    length = fluid.data("length", [None], "int64")
    cell = layers.GRUCell(
        WIDTH, fluid.ParamAttr(name="encoder_w"), fluid.ParamAttr(name="encoder_b"), name="encoder"
    )
    encoded, last = layers.rnn(cell, embed(source), sequence_length=length)
    # What lies behind the end of a row gets no weight.
    ends = (layers.sequence_mask(length, layers.shape(source)[1], "float32") - 1.0) * 1e9
    if decode:
        tile = layers.BeamSearchDecoder.tile_beam_merge_with_batch
        decoder = layers.BeamSearchDecoder(AttendingCell(), START, END, BEAMS, embed, project)
        found, _ = layers.dynamic_decode(
            decoder,
            last,
            LONGEST + 1,
            is_test=True,
            encoded=tile(encoded, BEAMS),
            hidden_ends=tile(ends, BEAMS),
        )
        return found
    given = fluid.data("given", [None, None], "int64")
    wanted = fluid.data("wanted", [None, None], "int64")
    decoded, _ = layers.rnn(AttendingCell(), embed(given), last, encoded=encoded, hidden_ends=ends)
    losses = layers.softmax_with_cross_entropy(project(decoded), layers.unsqueeze(wanted, [2]))
    mask = layers.sequence_mask(length + 1, layers.shape(given)[1], "float32")
    loss = layers.reduce_sum(layers.squeeze(losses, [2]) * mask) / layers.reduce_sum(mask)
    fluid.optimizer.Adam(0.008, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(loss)
    return loss


def batch(random, rows):
    """Rows of digits, padded, with their lengths; what the decoder is given, and what it has to say."""
    lengths = random.integers(2, LONGEST + 1, rows)
    source = np.full((rows, LONGEST), END, "int64")
    given, wanted = (np.full((rows, LONGEST + 1), END, "int64") for _ in range(2))
    given[:, 0] = START
    for row, length in enumerate(lengths):
        digits = random.integers(2, WORDS, length)
        source[row, :length] = digits
        given[row, 1 : length + 1] = wanted[row, :length] = digits[::-1]
    return {"source": source, "length": lengths, "given": given, "wanted": wanted}


def main():
    random = np.random.default_rng(3)
    training, startup, searching = fluid.Program(), fluid.Program(), fluid.Program()
    training.random_seed = startup.random_seed = 1
    with fluid.program_guard(training, startup), fluid.unique_name.guard():
        loss = network(decode=False)
    with fluid.program_guard(searching, fluid.Program()), fluid.unique_name.guard():
        found = network(decode=True)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 301):
        (value,) = exe.run(training, feed=batch(random, BATCH), fetch_list=[loss])
        if step % 100 == 0:
            print(f"step {step}: loss {value.item():.3f}")
    test = batch(random, 200)
    (tokens,) = exe.run(
        searching, feed={name: test[name] for name in ("source", "length")}, fetch_list=[found]
    )
    right = 0
    for row, length in enumerate(test["length"]):
        said = tokens[row, :, 0].tolist()
        said = said[: said.index(END)] if END in said else said
        right += said == test["wanted"][row, :length].tolist()
        if row < 3:
            print(test["source"][row, :length].tolist(), "->", said)
    print(f"{right} of {len(tokens)} rows turned around")


if __name__ == "__main__":
    main()
