"""A decoder whose loop ends when all sequences have: trained and run as a program, saved, and used from its file."""

import tempfile

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.dygraph import Embedding, GRUUnit, Linear, declarative, to_variable

WORDS, WIDTH, END = 11, 16, 0


class CountDown(fluid.dygraph.Layer):
    """Says the numbers after a given one, down to zero."""

    def __init__(self):
        super().__init__()
        self.table = Embedding([WORDS, WIDTH])
        self.project = Linear(WIDTH, 3 * WIDTH)
        self.cell = GRUUnit(3 * WIDTH)
        self.answer = Linear(WIDTH, WORDS)

    def step(self, word, state):
        state, _, _ = self.cell(self.project(self.table(word)), state)
        return self.answer(state), state

    @declarative
    def forward(self, words, lengths):
        """The loss of saying `words` (batch, steps) after one another, up to the length of each row."""
        state = fluid.layers.fill_constant([words.shape[0], WIDTH], "float32", 0.0)
        total, count = 0.0, 0.0
        for t in range(words.shape[1] - 1):
            scores, state = self.step(words[:, t], state)
            wanted = fluid.layers.unsqueeze(words[:, t + 1], [1])
            loss = fluid.layers.softmax_with_cross_entropy(scores, wanted)
            inside = fluid.layers.cast(lengths > t + 1, "float32")
            total += fluid.layers.reduce_sum(loss * inside)
            count += fluid.layers.reduce_sum(inside)
        return total / count

    @declarative
    def say(self, first):
        """The numbers that follow `first` (batch), until all rows have come to the end."""
        said = []
        word = first
        state = fluid.layers.fill_constant([first.shape[0], WIDTH], "float32", 0.0)
        while fluid.layers.reduce_any(word != END) and len(said) < WORDS:
            scores, state = self.step(word, state)
            goes_on = fluid.layers.cast(word != END, "int64")
            word = fluid.layers.argmax(scores, axis=1) * goes_on
            said.append(word)
        return fluid.layers.stack(said, axis=1)


def batch(rng, size):
    """Counts down from random numbers, filled up with zeros."""
    firsts = rng.integers(1, WORDS, size)
    words = np.maximum(firsts[:, None] - np.arange(firsts.max() + 1), 0)
    return words.astype("int64"), (firsts + 1).astype("int64")[:, None]


def main():
    rng = np.random.default_rng(0)
    with fluid.dygraph.guard():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 1
        model = CountDown()
        adam = fluid.optimizer.AdamOptimizer(0.02, parameter_list=model.parameters())
        for step in range(120):
            words, lengths = batch(rng, 8 + step % 3)
            loss = model(to_variable(words), to_variable(lengths))
            loss.backward()
            adam.minimize(loss)
            model.clear_gradients()
            if step % 40 == 39:
                print(f"step {step + 1}: loss {loss.numpy().item():.4f}")
        for first in ([5, 2], [3], [9, 1, 4]):
            said = model.say(to_variable(np.array(first, "int64"))).numpy()
            print(first, "->", said.tolist())
        with tempfile.TemporaryDirectory() as folder:
            fluid.dygraph.ProgramTranslator().save_inference_model(folder)
            exe = fluid.Executor(fluid.CPUPlace())
            program, (name,), fetches = fluid.io.load_inference_model(folder, exe)
            (said,) = exe.run(program, feed={name: np.array([6, 1, 4], "int64")}, fetch_list=fetches)
            print("from the file: [6, 1, 4] ->", said.tolist())


if __name__ == "__main__":
    main()
