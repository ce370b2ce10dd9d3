"""Layers of tags and labels in programs: one plan for all lengths, errors of data, metrics that a program adds up."""

import numpy as np
import pytest

import fluidlite as fluid

layers = fluid.layers


pytestmark = pytest.mark.usefixtures("alone")


def started():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def sequences(array, lengths):
    return fluid.create_lod_tensor(array, [list(lengths)], fluid.CPUPlace())


def tagger():
    """Words whose tag is the word before modulo 3, which needs transitions between tags."""
    words, tags = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("words", "tags"))
    emission = layers.fc(layers.embedding(words, [9, 8]), 3)
    cost = layers.linear_chain_crf(emission, tags, param_attr=fluid.ParamAttr(name="crf"))
    path = layers.crf_decoding(emission, param_attr=fluid.ParamAttr(name="crf"))
    right = layers.crf_decoding(emission, param_attr=fluid.ParamAttr(name="crf"), label=tags)
    loss = layers.mean(cost)
    fluid.optimizer.Adam(0.05).minimize(loss)
    return loss, path, right


def batch(rng, lengths):
    tags = np.concatenate([(rng.integers(0, 3) + np.arange(n)) % 3 for n in lengths])
    words = np.where(rng.random(len(tags)) < 0.5, tags, rng.integers(3, 9, len(tags)))
    shape = (-1, 1)
    return {
        "words": sequences(words.reshape(shape), lengths),
        "tags": sequences(tags.reshape(shape), lengths),
    }


def test_a_tagger_learns_in_one_plan():
    loss, path, right = tagger()
    assert path.lod_level == right.lod_level == 1 and path.dtype == fluid.core.VarDesc.VarType.INT64
    exe, rng = started(), np.random.default_rng(0)
    for _ in range(60):
        exe.run(feed=batch(rng, rng.integers(2, 9, rng.integers(2, 5))), fetch_list=[loss])
    feed = batch(rng, [5, 3, 8])
    found, correct = exe.run(feed=feed, fetch_list=[path, right], return_numpy=False)
    assert found.lod() == [[0, 5, 8, 16]] and np.array(correct).mean() > 0.9
    training = exe.describe().split("fed ")[1]
    assert "instructions on the CPU" in training and "Python" not in training


def test_wrong_tags_are_named():
    loss, *_ = tagger()
    exe, feed = started(), batch(np.random.default_rng(0), [2, 3])
    feed["tags"] = sequences(np.full((5, 1), 3), [2, 3])
    with pytest.raises(
        fluid.core.EnforceNotMet, match=r"linear_chain_crf: Label \['tags'\] must be in \[0, 3\); got 3"
    ):
        exe.run(feed=feed, fetch_list=[loss])


def test_a_parameter_that_is_not_there():
    emission = fluid.data("emission", [None, 3], "float32", lod_level=1)
    with pytest.raises(ValueError, match="crf"):
        layers.crf_decoding(emission, param_attr=fluid.ParamAttr(name="crf"))


def test_padded_and_ragged_sequences_cost_the_same():
    x, label = (
        fluid.data("x", [None, 3], "float32", lod_level=1),
        fluid.data("label", [None, 1], "int64", lod_level=1),
    )
    wide, length = fluid.data("wide", [None, None, 3], "float32"), fluid.data("length", [None], "int64")
    wide_label = fluid.data("wide_label", [None, None], "int64")
    crf = fluid.ParamAttr(name="crf")
    ragged = layers.linear_chain_crf(x, label, param_attr=crf)
    padded = layers.linear_chain_crf(wide, wide_label, param_attr=crf, length=length)
    exe, rng = started(), np.random.default_rng(1)
    for lengths in ([2, 5], [1, 4, 3]):
        rows, tags = (
            rng.normal(size=(sum(lengths), 3)).astype("float32"),
            rng.integers(0, 3, (sum(lengths), 1)),
        )
        inside = np.arange(max(lengths)) < np.array(lengths)[:, None]
        whole = np.zeros((*inside.shape, 3), "float32")
        whole[inside] = rows
        whole_tags = np.zeros(inside.shape, "int64")
        whole_tags[inside] = tags[:, 0]
        feed = {"x": sequences(rows, lengths), "label": sequences(tags, lengths), "wide": whole}
        feed |= {"wide_label": whole_tags, "length": np.array(lengths)}
        np.testing.assert_allclose(*exe.run(feed=feed, fetch_list=[ragged, padded]), rtol=1e-5)


def test_labels_without_places_are_learnt_and_read_off():
    frames = fluid.data("frames", [None, 4], "float32", lod_level=1)
    label = fluid.data("label", [None, 1], "int64", lod_level=1)
    logits = layers.fc(frames, 4)
    loss = layers.mean(layers.warpctc(logits, layers.cast(label, "int32"), blank=3))
    read = layers.ctc_greedy_decoder(layers.softmax(logits), blank=3)
    distance, count = layers.edit_distance(read, label, normalized=True)
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe, rng = started(), np.random.default_rng(2)
    for _ in range(80):
        tokens = [rng.integers(0, 3, n) for n in rng.integers(1, 4, 3)]
        shown = [np.repeat(np.append(np.stack([one, one * 0 + 3], 1).ravel(), 3), 2) for one in tokens]
        noise = rng.normal(0, 0.1, (sum(map(len, shown)), 4))
        feed = {
            "frames": sequences(
                (np.eye(4)[np.concatenate(shown)] + noise).astype("float32"), map(len, shown)
            ),
            "label": sequences(np.concatenate(tokens).reshape(-1, 1), map(len, tokens)),
        }
        far, sequences_seen, _ = exe.run(feed=feed, fetch_list=[distance, count, loss])
    assert far.shape == (3, 1) and sequences_seen == [3] and far.mean() < 0.1


def test_what_evaluators_add_up():
    guess, tags = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("guess", "tags"))
    with pytest.warns(Warning, match="fluid.metrics.ChunkEvaluator"):
        chunks = fluid.evaluator.ChunkEvaluator(guess, tags, "IOB", 2)
    with pytest.warns(Warning, match="fluid.metrics.EditDistance"):
        edits = fluid.evaluator.EditDistance(guess, tags)
    names = [var.name for var in (*chunks.states, *edits.states)]
    assert names[0] == "chunk_eval_0_0_num_infer_chunks" and names[-1] == "edit_distance_0_2_instance_error"
    exe = started()
    for _ in range(2):
        chunks.reset(exe)
        edits.reset(exe)
        # Chunks found, wanted and correct: 2, 2, 1 and then 1, 1, 1.
        for found, wanted, lengths in (([0, 1, 4, 2], [0, 1, 2, 3], [4]), ([0, 4, 4], [0, 4, 4], [2, 1])):
            feed = {
                name: sequences(np.array(values).reshape(-1, 1), lengths)
                for name, values in (("guess", found), ("tags", wanted))
            }
            exe.run(feed=feed, fetch_list=[*chunks.metrics, *edits.metrics])
        np.testing.assert_allclose(np.ravel(chunks.eval(exe)), [2 / 3, 2 / 3, 2 / 3], rtol=1e-6)
        np.testing.assert_allclose(np.ravel(edits.eval(exe)), [0.5 / 3, 1 / 3], rtol=1e-6)
