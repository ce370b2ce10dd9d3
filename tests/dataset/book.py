"""Samples of the readers of the book's data sets for synthetic archives: recorded on Fluid 1.8.5, compared here.

With the Python of Fluid 1.8.5 `python book.py book.json` records anew. The data sets' own randomness is left out (the
order of Python 3.8's sets of texts numbers categories, words of titles and labels).
"""

import json
import os
import re
import sys
import tempfile

import numpy as np


def plain(value):
    """`value` as JSON has it; arrays as dtype, shape, sum and first elements."""
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        return [str(value.dtype), list(value.shape), float(flat.astype("float64").sum()), flat[:3].tolist()]
    if isinstance(value, dict):
        return sorted(([plain(key), plain(each)] for key, each in value.items()), key=repr)
    if isinstance(value, (list, tuple)):
        return [type(value).__name__] + [plain(each) for each in value]
    if isinstance(value, bytes):
        return ["bytes", value.decode("latin1") if len(value) < 50 else len(value)]
    return value


def imdb(module, paths):
    found = {}
    for cutoff in (0, 1, 3):
        found[f"dict {cutoff}"] = module.build_dict(
            re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$"), cutoff
        )
    words = module.build_dict(re.compile(r"aclImdb/train/(pos|neg)/.*\.txt$"), 1)
    found["words"] = list(module.tokenize(re.compile(r".*/neg/.*")))
    found["train"], found["test"] = list(module.train(words)()), list(module.test(words)())
    return found


def imikolov(module, paths):
    found = {f"dict {freq}": module.build_dict(freq) for freq in (0, 1, 2)}
    words = module.build_dict(1)
    for n in range(5):
        found[f"grams {n}"] = list(module.train(words, n)())
        found[f"sentences {n}"] = list(module.train(words, n, module.DataType.SEQ)())
    found["test"] = list(module.test(words, 2)()), list(module.test(words, 3, data_type=2)())
    found["count"] = dict(module.word_count([b" a b\n", b"a\n"]))
    return found


def movielens(module, paths):
    kinds = {number: name for name, number in module.movie_categories().items()}
    words = {number: word for word, number in module.get_movie_title_dict().items()}

    def named(sample):
        sample = list(sample)
        return sample[:5] + [[kinds[i] for i in sample[5]], [words[i] for i in sample[6]], sample[7]]

    found = {"numbers": [sorted(kinds), sorted(words), sorted(kinds.values()), sorted(words.values())]}
    found["train"] = [named(sample) for sample in module.train()()]
    found["halves"] = [
        [named(s) for s in f(rand_seed=3, test_ratio=0.5)()] for f in (module.train, module.test)
    ]
    found["largest"] = module.max_movie_id(), module.max_user_id(), module.max_job_id()
    found["info"] = [
        repr(each) for info in (module.movie_info(), module.user_info()) for each in info.values()
    ]
    found["value"] = [user.value() for user in module.user_info().values()]
    return found


def conll05(module, paths):
    words, verbs, labels = module.get_dict()
    found = {"dicts": [words, verbs, sorted(labels), sorted(labels.values())]}
    found["labels"] = all(
        number == labels["B" + name[1:]] + 1 for name, number in labels.items() if name[0] == "I"
    )
    labels = {name: number for number, name in enumerate(sorted(labels))}
    names = (f"conll05st-release/test.wsj/{name}/test.wsj.{name}.gz" for name in ("words", "props"))
    corpus = module.corpus_reader(paths("conll05st-tests.tar.gz"), *names)
    found["corpus"] = list(corpus())
    found["samples"] = list(module.reader_creator(corpus, words, verbs, labels)())
    found["test"] = [sample[:8] for sample in module.test()()]
    found["embedding"] = module.get_embedding()[-3:]
    return found


def wmt14(module, paths):
    found = {}
    for f in (module.train, module.test, module.gen):
        for size in (4, 6, 20):
            found[f"{f.__name__} {size}"] = list(f(size)())
    found["dicts"] = module.get_dict(5), module.get_dict(7, reverse=False)
    return found


def wmt16(module, paths):
    found = {}
    for sizes in ((5, 5), (6, 7, "de"), (100, 100), (3, 3)):
        for f in (module.train, module.test, module.validation):
            found[f"{f.__name__} {sizes}"] = list(f(*sizes)())
    found["dicts"] = module.get_dict("en", 5), module.get_dict("de", 6, reverse=True)
    return found


def sentiment(module, paths):
    module.NUM_TRAINING_INSTANCES = 4
    return {
        "words": module.get_word_dict(),
        "files": module.sort_files(),
        "all": module.load_sentiment_data(),
        "train": list(module.train()),
        "test": list(module.test()),
    }


def mq2007(module, paths):
    path = paths("MQ2007.txt")
    queries = module.load_from_text(path)
    found = {"queries": [[[vars(query) for query in each] for each in queries], str(queries[0][0])]}
    found["filter"] = [each.query_id for each in module.query_filter(queries)]
    for name in ("gen_plain_txt", "gen_point", "gen_pair", "gen_list"):
        found[name] = list(getattr(module, name)(module.load_from_text(path)[3]))
    for kind in ("plain_txt", "pointwise", "pairwise", "listwise"):
        found[kind] = (
            list(module.train(filepath=path, format=kind)),
            len(list(module.test(filepath=path, format=kind))),
        )
    found["empty"] = vars(module.Query()), str(module.Query(1, 2, [0.5], "d"))
    return found


def voc2012(module, paths):
    return {f.__name__: list(f()()) for f in (module.train, module.test, module.val)}


def flowers(module, paths):
    def same(sample):
        return sample

    found = {
        f.__name__: list(f(mapper=same, use_xmap=False)()) for f in (module.train, module.test, module.valid)
    }
    found["labels"] = sorted(label for _, label in module.test()())
    endless = module.test(mapper=same, use_xmap=False, cycle=True)()
    found["cycle"] = [next(endless)[1] for _ in range(5)]
    return found


def image(module, paths):
    found = {}
    picture = np.arange(5 * 7 * 3, dtype="uint8").reshape(5, 7, 3)
    grey = picture[:, :, 0]
    np.random.seed(3)
    for n in range(4):
        found[f"random {n}"] = module.random_crop(picture, 3), module.random_crop(grey, 4, is_color=False)
    for size in (3, 4):
        found[f"center {size}"] = module.center_crop(picture, size), module.center_crop(grey, size, False)
    found["flip"] = module.left_right_flip(picture), module.left_right_flip(grey, is_color=False)
    found["axes"] = module.to_chw(picture), module.to_chw(picture, (1, 2, 0))
    for mean in (None, [1.0, 2.0, 3.0], np.ones((3, 4, 4))):
        for is_train in (False, True, True, True):
            name = f"{np.shape(mean)} {is_train} {len(found)}"
            found[name] = module.simple_transform(
                picture, 5, 4, is_train, mean=mean
            )  # a size that is not resized
    found["grey"] = module.simple_transform(grey, 5, 4, True, is_color=False, mean=[2.0])
    return found


DATASETS = (imdb, imikolov, movielens, conll05, wmt14, wmt16, sentiment, mq2007, voc2012, flowers, image)


def record():
    """The samples of Fluid 1.8.5 for the archives."""
    import importlib
    import shutil
    import zipfile

    import archives

    folder = tempfile.mkdtemp()
    home = os.path.join(folder, "home")
    os.environ["HOME"] = home
    import paddle.dataset.common as common

    archives.make(folder)

    def path(url, *args, **kwargs):
        return os.path.join(folder, url.split("/")[-1])

    common.download = path
    for name in ("wmt16", "corpora"):
        os.makedirs(os.path.join(home, ".cache/paddle/dataset", name))
    reviews = path("movie_reviews%2Fmovie_reviews.zip")
    shutil.copy(reviews, os.path.join(home, ".cache/paddle/dataset/corpora/movie_reviews.zip"))
    zipfile.ZipFile(reviews).extractall(os.path.join(home, ".cache/paddle/dataset/corpora"))
    found = {}
    for results in DATASETS:
        module = importlib.import_module("paddle.dataset." + results.__name__)
        if hasattr(module, "download"):
            module.download = path
        if results is mq2007:
            vars(module)["__initialize_meta_info__"] = lambda: ""
        if results is voc2012:  # Python 3 makes names b'...' of lines
            members = {
                re.sub(r"(Images|Class)/(\w+)", r"\1/b'\2'", name): data
                for name, data in archives.pascal().items()
            }
            with open(path(module.VOC_URL), "wb") as file:
                file.write(archives.tar(members, "w"))
        found[results.__name__] = plain(results(module, path))
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump(record(), file, sort_keys=True, separators=(",", ":"))
        file.write("\n")
