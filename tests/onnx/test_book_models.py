"""The networks of the book's chapters as ONNX models, with onnxruntime, for two batches of other sizes and lengths."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.paddle import hook
from tests.onnx.running import PLACE, check

BOOK = Path(__file__).parents[2] / "examples" / "book"
L = fluid.layers
pytestmark = pytest.mark.usefixtures("alone")


def chapter(name):
    """The module of a chapter, which has not run anything yet."""
    hook.install()
    spec = importlib.util.spec_from_file_location(name, BOOK / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compared(feeds, fetches, batches, path):
    """Initialise the default program, export it, run the batches on both sides."""
    exe = fluid.Executor(PLACE)
    fluid.default_startup_program().random_seed = 90
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program().clone(for_test=True)
    outputs = [program.global_block().var(var.name) for var in fetches]
    check(program, [var.name for var in feeds], outputs, path / "model.onnx", batches, exe)


def rows(feeds, samples):
    """Batches of 5 and 3 samples, of which the feeds are the first columns."""
    feeder = fluid.DataFeeder(feed_list=feeds, place=PLACE)
    random = np.random.RandomState(1)
    count = len(feeds)
    return [feeder.feed([sample[:count] for sample in samples(random, size)]) for size in (5, 3)]


def test_houses(tmp_path):
    module = chapter("c01_fit_a_line")
    figures = fluid.data("figures", [None, module.FIGURES], "float32")
    batches = [{"figures": module.houses(np.random.RandomState(1), size)[0]} for size in (5, 3)]
    compared([figures], [L.fc(figures, 1)], batches, tmp_path)


@pytest.mark.parametrize("network", ["regression", "perceptron", "convolutions"])
def test_digits(network, tmp_path):
    module = chapter("c02_recognize_digits")
    picture = fluid.data("picture", [None, 1, module.SIDE, module.SIDE], "float32")
    random = np.random.RandomState(1)
    patterns = random.uniform(-1, 1, (10, 1, module.SIDE, module.SIDE))
    batches = [{"picture": module.pictures(random, patterns, size)[0]} for size in (5, 3)]
    compared([picture], [getattr(module, network)(picture)], batches, tmp_path)


def test_textures(tmp_path):
    module = chapter("c03_image_classification")
    image = fluid.data("image", [None, 3, module.SIDE, module.SIDE], "float32")
    batches = [{"image": module.textures(np.random.RandomState(1), size)[0]} for size in (5, 3)]
    compared([image], [module.network(image)], batches, tmp_path)


def test_words(tmp_path):
    """With the parameters that the chapter learns in its first steps."""
    module = chapter("c04_word2vec")
    module.main(10)
    program = fluid.default_main_program().clone(for_test=True)
    words = [f"word_{place}" for place in range(module.BEFORE)]
    batches = []
    for size in (5, 3):
        grams = module.grams(np.random.RandomState(1), size)
        batches.append({name: grams[:, place : place + 1] for place, name in enumerate([*words, "next"])})
    chances = next(op.input("X")[0] for op in program.global_block().ops if "cross_entropy" in op.type)
    outputs = [program.global_block().var(chances)]
    check(program, words, outputs, tmp_path / "model.onnx", batches, fluid.Executor(PLACE))


def test_films(tmp_path):
    module = chapter("c05_recommender_system")
    users = [fluid.data(name, [None, 1], "int64") for name in ("user", "sex", "age", "job")]
    films = [fluid.data("film", [None, 1], "int64")]
    films += [fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("genres", "title")]
    guess = L.cos_sim(module.user_vector(*users), module.film_vector(*films))
    compared([*users, *films], [guess], rows(users + films, module.ratings), tmp_path)


@pytest.mark.parametrize("network", ["convolutions", "dynamic_rnn", "stacked_lstm"])
def test_reviews(network, tmp_path):
    module = chapter("c06_understand_sentiment")
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    chances = getattr(module, network)(L.embedding(words, size=[module.WORDS, module.WIDTH]))
    compared([words], [chances], rows([words], module.reviews), tmp_path)


def test_roles(tmp_path):
    module = chapter("c07_label_semantic_roles")
    columns = [fluid.data(f"column_{k}", [None, 1], "int64", lod_level=1) for k in range(8)]
    found = module.scores(columns)
    L.create_parameter([module.TAGS + 2, module.TAGS], "float32", "moves")
    path = L.crf_decoding(found, fluid.ParamAttr("moves"))
    compared(columns, [found, path], rows(columns, module.sentences), tmp_path)


@pytest.mark.parametrize("searching", [False, True])
def test_translations(searching, tmp_path):
    module = chapter("c08_machine_translation")
    names = ["source", "lengths"] if searching else ["source", "lengths", "given", "wanted"]
    result = module.network(searching)
    feeds = [fluid.default_main_program().global_block().var(name) for name in names]
    batches = []
    for size in (5, 3):
        made = module.pairs(np.random.RandomState(size), size)
        batches.append({name: made[name] for name in names})
    compared(feeds, [result], batches, tmp_path)
