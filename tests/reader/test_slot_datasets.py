"""Training from slot files: parsing, batches, pipe commands, shuffling, and what goes wrong."""

import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluidlite import DatasetFactory, layers
from fluidlite.base.dtypes import VarType
from fluidlite.base.errors import FormatError, NotSupportedError
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, FetchHandler, Scope, scope_guard
from fluidlite.framework import program_guard
from fluidlite.incubate import data_generator
from fluidlite.optimizer import SGD

from ..refusals import refuses

LINES = "2 1 2 3 0.5 1 2\n1 5 3 1 2 3\n3 7 8 9 3 4 5 6\n"


@pytest.fixture
def variables(programs):
    return [data("ids", [None, 1], "int64", lod_level=1), data("dense", [None, 3], "float32")]


def made(variables, *paths, kind="QueueDataset", batch_size=2, **more):
    dataset = DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_batch_size(batch_size)
    dataset.set_filelist([str(path) for path in paths])
    dataset.set_pipe_command(more.get("command", "cat"))
    return dataset


def written(folder, text, name="part-0"):
    path = folder / name
    path.write_text(text)
    return path


def seen(dataset):
    return [
        (
            feed["ids"].recursive_sequence_lengths()[0],
            np.array(feed["ids"]).ravel().tolist(),
            feed["dense"].tolist(),
        )
        for feed in dataset._feeds()
    ]


def test_batches_go_on_across_files(variables, tmp_path):
    paths = [written(tmp_path, LINES, f"part-{k}") for k in range(2)]
    dataset = made(variables, *paths)
    want = [
        ([2, 1], [1, 2, 5], [[0.5, 1, 2], [1, 2, 3]]),
        ([3, 2], [7, 8, 9, 1, 2], [[4, 5, 6], [0.5, 1, 2]]),
        ([1, 3], [5, 7, 8, 9], [[1, 2, 3], [4, 5, 6]]),
    ]
    assert seen(dataset) == want and seen(dataset) == want


def test_hashes_beyond_int64_keep_their_bits_and_what_follows_is_ignored(variables, tmp_path):
    path = written(tmp_path, "2 18446744073709551615 -5 3 1 2 3 9 9\n")
    assert seen(made(variables, path)) == [([2], [-1, -5], [[1, 2, 3]])]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 3 1 2 3", "slot 'ids' needs a count of at least 1"),
        ("2 1 2 3 0.1 0.2", "slot 'dense' should have 3 numbers, but the line ends after 2"),
        ("2 1 2 2 0.1 0.2", r"slot 'dense' has 2 numbers, but its variable has shape \[-1, 3,?\]"),
        ("2 1 2", "slot 'dense' needs a count"),
        ("a b c", "slot 'ids' expects a whole number, got 'a'"),
        ("1 2.5 3 1 2 3", "slot 'ids' expects a whole number, got '2.5'"),
        ("1 2 3 1 2x 3", "slot 'dense' expects a number, got '2x'"),
        ("-3 1", "slot 'ids' needs a count of at least 1"),
        (
            "99999999999999999 1",
            "slot 'ids' should have 99999999999999999 numbers, but the line ends after 1",
        ),
        ("", "slot 'ids' needs a count"),
    ],
)
def test_lines_that_are_no_sample(variables, tmp_path, line, message):
    path = written(tmp_path, LINES + line + "\n")
    refuses(lambda: seen(made(variables, path, batch_size=1)), FormatError, f"part-0, line 4: {message}")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(data_=st.data())
def test_damaged_files_give_samples_or_a_clear_error(variables, tmp_path, data_):
    text = bytearray(LINES.encode())
    for _ in range(data_.draw(st.integers(1, 4))):
        at = data_.draw(st.integers(0, len(text) - 1))
        inserted = data_.draw(
            st.one_of(st.binary(max_size=3), st.sampled_from([b" -1 ", b"1e999", b"nan", b"9" * 25]))
        )
        text[at : at + data_.draw(st.integers(0, 3))] = inserted
    (tmp_path / "damaged").write_bytes(bytes(text))
    try:
        for lengths, ids, dense in seen(made(variables, tmp_path / "damaged")):
            assert sum(lengths) == len(ids) and all(len(row) == 3 for row in dense)
    except FormatError as error:
        assert "damaged, line " in str(error) and "slot '" in str(error)


def test_a_pipe_command_makes_the_lines(variables, tmp_path):
    path = written(tmp_path, LINES)
    assert len(seen(made(variables, path, command="head -n 1", batch_size=1))) == 1
    with pytest.raises(RuntimeError, match="'head -n 1; exit 3' failed on .*part-0 with status 3"):
        seen(made(variables, path, command="head -n 1; exit 3"))
    refuses(lambda: seen(made(variables, tmp_path / "nothing")), FileNotFoundError)
    cut = "head -c 30; kill -9 $$"
    with pytest.raises(RuntimeError, match=r"line ends after .* ended with status -9"):
        seen(made(variables, path, command=cut))
    with pytest.raises(FormatError, match=r"line 1 of 'echo 1; cat': slot (?!.*status)"):
        seen(made(variables, path, command="echo 1; cat"))


def test_files_where_hdfs_is(variables):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    with system.open("/slots/part-0", "wb") as file:
        file.write(LINES.encode())
    dataset = made(variables, "hdfs:/slots/part-0", batch_size=1)
    dataset.set_hdfs_config("memory://", "user,password")
    assert seen(dataset) == seen(made(variables, "memory://slots/part-0", batch_size=1))
    dataset.set_hdfs_config("nowhere", "user,password")  # as in Fluid; it is told when it is needed
    with pytest.raises(ValueError, match="fs_name must be a URL such as hdfs://HOST:PORT, got 'nowhere'"):
        seen(dataset)


def test_a_script_in_the_pipe_can_import_paddle(tmp_path, python):
    script = tmp_path / "make.py"
    script.write_text(
        "import paddle.fluid.incubate.data_generator as dg\n"
        "class Made(dg.MultiSlotDataGenerator):\n"
        "    def generate_sample(self, line):\n"
        "        return lambda: iter([[('a', [int(line)])], None, [('a', [int(line) * 2])]])\n"
        "Made().run_from_stdin()\n"
    )
    written(tmp_path, "1\n5\n")
    code = f"""
import numpy as np, paddle.fluid as fluid
dataset = fluid.DatasetFactory().create_dataset()
dataset.set_use_var([fluid.data('a', [None, 1], 'int64')])
dataset.set_filelist([{str(tmp_path / "part-0")!r}])
dataset.set_pipe_command('python {script}')
print([feed['a'].tolist() for feed in dataset._feeds()])
"""
    assert python("-m", "fluidlite", "-c", code).strip() == "[[[1], [2], [5], [10]]]"


@pytest.fixture
def python():
    def run(*args):
        done = subprocess.run(
            [sys.executable, *args], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_shuffling_in_memory(variables, tmp_path):
    dataset = made(variables, written(tmp_path, LINES), kind="InMemoryDataset", batch_size=1)
    assert seen(dataset) == [] and dataset.get_memory_data_size() == 0
    dataset.load_into_memory()
    before = seen(dataset)
    assert len(before) == dataset.get_shuffle_data_size() == 3 and dataset.get_memory_data_size() == 0
    dataset.load_into_memory()
    dataset.local_shuffle()
    after = seen(dataset)
    assert sorted(after) == sorted(before)
    dataset.release_memory()
    assert seen(dataset) == []
    refuses(lambda: made(variables).local_shuffle(), NotImplementedError, "use InMemoryDataset")


def test_wrong_use(variables):
    with pytest.raises(ValueError, match="no data set class 'Other', only QueueDataset, InMemoryDataset"):
        DatasetFactory().create_dataset("Other")
    with pytest.raises(ValueError, match="float32 and int64, but 'small' is int32"):
        made([data("small", [None, 1], "int32")])
    refuses(lambda: next(DatasetFactory().create_dataset()._feeds()), ValueError, "call set_use_var first")
    refuses(lambda: made(variables, batch_size=0), ValueError, "batch_size must be at least 1, got 0")
    refuses(lambda: Executor(CPUPlace()).train_from_dataset(), RuntimeError, "dataset is need")


def test_training_prints_and_watches(programs, tmp_path, capsys):
    x, y = data("x", [None, 2], "float32"), data("y", [None, 1], "float32")
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    with program_guard(*programs):
        SGD(0.1).minimize(loss)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (40, 2))
    text = "".join(f"2 {a:.4f} {b:.4f} 1 {a - 2 * b:.4f}\n" for a, b in rows)
    dataset = made([x, y], written(tmp_path, text), batch_size=8)
    watched = []

    class Watcher(FetchHandler):
        def handler(self, values):
            watched.append(values["seen"])

    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        for _ in range(8):
            executor.train_from_dataset(
                programs[0], dataset, fetch_list=[loss], fetch_info=["loss"], print_period=2,
                fetch_handler=Watcher({"seen": loss}, period_secs=0.01),
            )  # fmt: skip
        printed = re.findall(r"loss\tmean_0.tmp_0\t\tlod: {}\n\tdim: 1\n\tlayout: NCHW\n\tdtype: float\n"
                             r"\tdata: \[(.*)\]\n\t\n", capsys.readouterr().out)  # fmt: skip
        assert len(printed) == 8 * 3 and float(printed[-1]) < float(printed[0]) / 10
        assert len(watched) >= 8 and watched[-1].dtype == np.float32
        with pytest.raises(AssertionError, match="1 variables in fetch_list, 2 texts in fetch_info"):
            executor.train_from_dataset(programs[0], dataset, fetch_list=[loss], fetch_info=["a", "b"])


def regression(programs):
    """Two inputs, a table and a loss; the executor's scope is the caller's."""
    ids, dense = data("ids", [None, 1], "int64", lod_level=1), data("dense", [None, 2], "float32")
    looked = layers.embedding(ids, [30, 4], is_sparse=True)
    loss = layers.mean(layers.square(layers.fc([layers.sequence_pool(looked, "sum"), dense], 1) - 1.0))
    with program_guard(*programs):
        SGD(0.01).minimize(loss)
    return [ids, dense], loss


def regression_lines(count, seed=0):
    rng = np.random.default_rng(seed)
    rows = [(rng.integers(0, 30, rng.integers(1, 4)).tolist(), rng.uniform(-1, 1, 2)) for _ in range(count)]
    return "".join(f"{len(a)} {' '.join(map(str, a))} 2 {x:.4f} {y:.4f}\n" for a, (x, y) in rows)


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_threads_train_the_same_parameters(programs, tmp_path, kind):
    variables, loss = regression(programs)
    paths = [written(tmp_path, regression_lines(90, seed), f"part-{seed}") for seed in range(3)]
    dataset = made(variables, *paths, kind=kind, batch_size=4)
    dataset.set_thread(3)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    with scope_guard(Scope()) as _:
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        feed = next(iter(made(variables, *paths, batch_size=270)._feeds()))
        first = executor.run(programs[0].clone(for_test=True), feed=feed, fetch_list=[loss])[0].item()
        threads = set()
        run = executor.run

        def watched(*args, **kwargs):
            threads.add(threading.current_thread().name)
            return run(*args, **kwargs)

        executor.run = watched
        for _ in range(6):
            executor.train_from_dataset(programs[0], dataset)
        last = run(programs[0].clone(for_test=True), feed=feed, fetch_list=[loss])[0].item()
    assert 1 < len(threads) <= 3 and last < first / 4


def test_an_error_in_one_thread_ends_all(programs, tmp_path):
    variables, _ = regression(programs)
    paths = [written(tmp_path, regression_lines(400, seed), f"part-{seed}") for seed in range(2)]
    paths[1].write_text(regression_lines(40) + "1 2 2 0.5 x\n")
    dataset = made(variables, *paths)
    dataset.set_thread(2)
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        with pytest.raises(FormatError, match="part-1, line 41: slot 'dense' expects a number, got 'x'"):
            executor.train_from_dataset(programs[0], dataset)


def test_samples_before_a_bad_line_are_there(variables, tmp_path):
    path = written(tmp_path, LINES + "1 2\n")
    found = []
    with pytest.raises(FormatError, match="line 4"):
        for feed in made(variables, path, batch_size=2)._feeds():
            found.append(len(feed["dense"]))
    assert found == [2]


@pytest.mark.parametrize(
    ("kind", "lengths", "words"),
    [("QueueDataset", [3, 2, 1], [0, 5, 0, 0, 0, 7]), ("InMemoryDataset", [1, 1, 1], [5, 0, 7])],
)
def test_zeros_of_sequences_stay_out_of_memory(variables, tmp_path, kind, lengths, words):
    """As in Fluid 1.8.5, whose samples of nothing but zeros keep one."""
    path = written(tmp_path, "3 0 5 0 3 0 1 0\n2 0 0 3 0 0 0\n1 7 3 1 0 0\n")
    dataset = made(variables, path, kind=kind, batch_size=3)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    assert seen(dataset) == [(lengths, words, [[0, 1, 0], [0, 0, 0], [1, 0, 0]])]


@pytest.mark.parametrize("threads", [1, 2])
def test_files_are_in_memory_in_their_order(variables, tmp_path, threads):
    paths = [written(tmp_path, f"1 {k} 3 1 2 3\n" * 50, f"part-{k}") for k in range(6)]
    dataset = made(variables, *paths, kind="InMemoryDataset", batch_size=50)
    dataset.preload_into_memory(threads)
    dataset.wait_preload_done()
    dataset.wait_preload_done()
    assert [ids[0] for _, ids, _ in seen(dataset)] == list(range(6))
    dataset.set_filelist([str(paths[0]), str(tmp_path / "nothing")])
    refuses(dataset.load_into_memory, FileNotFoundError)
    assert len(seen(dataset)) == 6


def test_what_an_epoch_has_gone_through_keeps_its_order(variables, tmp_path):
    path = written(tmp_path, "".join(f"1 {k} 3 1 2 3\n" for k in range(20)))
    dataset = made(variables, path, kind="InMemoryDataset", batch_size=20)
    dataset.load_into_memory()
    assert (dataset.get_memory_data_size(), dataset.get_shuffle_data_size()) == (20, 0)
    dataset.local_shuffle()
    dataset.global_shuffle()
    first = seen(dataset)
    assert first[0][1] != list(range(20)) and sorted(first[0][1]) == list(range(20))
    dataset.local_shuffle()  # as in Fluid: nothing
    assert seen(dataset) == first
    assert (dataset.get_memory_data_size(), dataset.get_shuffle_data_size()) == (0, 20)


def test_slots_are_shuffled_among_samples(variables, tmp_path):
    path = written(tmp_path, "".join(f"2 {k} {k} 3 {k} 2 3\n" for k in range(1, 21)))
    dataset = made(variables, path, kind="InMemoryDataset", batch_size=20)
    dataset.load_into_memory()
    refuses(lambda: dataset.slots_shuffle(["ids"]), ValueError, "call set_fea_eval")
    dataset.set_fea_eval(1000)
    refuses(lambda: dataset.slots_shuffle(["other"]), ValueError, "no slot 'other'")
    dataset.slots_shuffle(["ids"])
    ((lengths, ids, dense),) = seen(dataset)
    assert lengths == [2] * 20 and ids[::2] == ids[1::2] != list(range(1, 21))
    assert [row[0] for row in dense] == list(range(1, 21))
    refuses(lambda: made(variables).set_fea_eval(10), NotImplementedError, "use InMemoryDataset")


def test_names_of_samples_are_left_out(variables, tmp_path):
    path = written(tmp_path, "1 name-1 1 5 3 1 2 3\n1 name-2 1 6 3 1 2 3\n")
    dataset = made(variables, path, kind="InMemoryDataset")
    dataset.set_parse_ins_id(True)
    dataset.load_into_memory()
    assert [ids for _, ids, _ in seen(dataset)] == [[5, 6]]


@pytest.mark.parametrize(
    "tell", [lambda dataset: dataset.set_merge_by_lineid(), lambda dataset: dataset.set_parse_logkey(True)]
)
def test_samples_are_not_merged_in_their_process(variables, tmp_path, tell):
    """As in Paddle 1.8.5, where only `global_shuffle` and `preprocess_instance` merge."""
    key = "000000000000de010000000000000005"
    path = written(tmp_path, f"1 {key} 1 5 3 1 2 3\n1 {key} 1 6 3 1 2 3\n")
    dataset = made(variables, path, kind="InMemoryDataset")
    tell(dataset)
    dataset.set_enable_pv_merge(True)
    dataset.set_generate_unique_feasigns(True, 3)
    dataset.load_into_memory()
    dataset.global_shuffle()
    assert dataset.get_memory_data_size() == 2 and dataset.get_pv_data_size() == 0
    assert [ids for _, ids, _ in seen(dataset)] == [[5, 6]]
    refuses(dataset.preprocess_instance, NotSupportedError, "page views")
    dataset.set_enable_pv_merge(False)
    dataset.preprocess_instance()
    dataset.postprocess_instance()


def test_a_hanging_pipe_command_ends_with_the_reader(variables, tmp_path):
    path = written(tmp_path, LINES)
    mark = tmp_path / "mark"
    dataset = made(variables, path, command=f"cat; touch {mark}; sleep 60", batch_size=1)
    began = time.monotonic()
    feeds = dataset._feeds()
    next(feeds)
    while not mark.exists():
        time.sleep(0.01)
    feeds.close()
    assert time.monotonic() - began < 20


def test_loading_can_be_interrupted(tmp_path):
    written(tmp_path, LINES)
    code = f"""
import os, signal, threading, time
import fluidlite as fluid
dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_use_var([fluid.data("a", [None, 1], "int64", lod_level=1)])
dataset.set_filelist([{str(tmp_path / "part-0")!r}])
dataset.set_pipe_command("sleep 60")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    dataset.load_into_memory()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - began < 20)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "interrupted True", done.stderr


def test_descriptions_are_those_of_fluid(variables):
    assert DatasetFactory().create_dataset().desc() == 'name: "MultiSlotDataFeed"\npipe_command: "cat"\n'
    dataset = made(
        [*variables, data("y", [None, 1], "int64")], kind="InMemoryDataset", batch_size=1, command='a "b"'
    )
    dataset.set_pv_batch_size(3)
    dataset.set_rank_offset("r")
    slots = (
        'slots {\n    name: "ids"\n    type: "uint64"\n    is_used: true\n  }\n  '
        'slots {\n    name: "dense"\n    type: "float"\n    is_dense: true\n    is_used: true\n'
        "    shape: -1\n    shape: 3\n  }\n  "
        'slots {\n    name: "y"\n    type: "uint64"\n    is_dense: true\n    is_used: true\n'
        "    shape: -1\n    shape: 1\n  }\n"
    )
    assert dataset.desc() == (
        f'name: "MultiSlotInMemoryDataFeed"\nbatch_size: 1\nmulti_slot_desc {{\n  {slots}}}\n'
        'pipe_command: "a \\"b\\""\nrank_offset: "r"\npv_batch_size: 3\n'
    )


def test_kinds_that_there_are_none_of_say_why():
    with pytest.raises(NotSupportedError, match="exists inside Baidu only"):
        DatasetFactory().create_dataset("BoxPSDataset")
    with pytest.raises(NotSupportedError, match="use QueueDataset"):
        DatasetFactory().create_dataset("FileInstantDataset")


def test_generators_write_lines(capsys):
    generator = data_generator.MultiSlotDataGenerator()
    assert generator._gen_str([("ids", [1, 2]), ("dense", [0.5, 1])]) == "2 1 2 2 0.5 1\n"
    assert generator._proto_info == [("ids", "uint64"), ("dense", "float")]
    assert generator._gen_str(zip(["ids", "dense"], [[3], [4]], strict=True)) == "1 3 1 4\n"
    for wrong, message in (
        ([("ids", [1]), ("other", [2])], "slot 1 was 'dense'"),
        ([("ids", [1])], "the previous samples had the slots"),
        ([("ids", []), ("dense", [1])], "slot 'ids' has no values"),
        ("text", "must be a list or tuple"),
    ):
        with pytest.raises(ValueError, match=message):
            generator._gen_str(wrong)
    texts = data_generator.MultiSlotStringDataGenerator()
    assert texts._gen_str([("a", ["1", "2"]), ("b", ["x"])]) == "2 1 2 1 x\n"
    with pytest.raises(NotImplementedError, match="must override generate_sample"):
        data_generator.DataGenerator().run_from_memory()


def test_auc_without_a_window_has_the_states_of_all_batches(programs):
    scores, label = data("scores", [None, 2], "float32"), data("label", [None, 1], "int64")
    area, batch_area, states = layers.auc(scores, label, slide_steps=0, num_thresholds=7)
    assert {state.shape for state in states} == {(1, 8)} and states[0].dtype == VarType.INT64
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        feed = {"scores": np.array([[0.4, 0.6], [0.8, 0.2]], "float32"), "label": np.array([[1], [0]])}
        for _ in range(2):
            found = executor.run(programs[0], feed=feed, fetch_list=[area, batch_area])
        assert [float(value) for value in found] == [1.0, 1.0]
