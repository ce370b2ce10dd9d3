"""Small made-up data sets in the true formats: what the readers are tested on, and what Fluid 1.8.5 was recorded on.

`make(folder)` writes one file for each name in `FILES`. Everything is drawn from seeded generators, so that the files
have the same contents everywhere (pictures are PNG inside whatever their names say, which readers do not look at).
"""

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

REVIEWS = {
    "aclImdb/train/pos/0_9.txt": "A great movie, the best!! the the movie\n",
    "aclImdb/train/pos/1_8.txt": "Great fun. I like the movie; it's GREAT fun\n",
    "aclImdb/train/neg/0_1.txt": "the worst movie -- bad, bad<br />bad\n",
    "aclImdb/train/neg/10_2.txt": "not fun\n",
    "aclImdb/train/neg/2_2.txt": "A bad movie\n",
    "aclImdb/test/pos/0_10.txt": "unseen but great movie \xe9t\xe9\n",
    "aclImdb/test/neg/0_3.txt": "bad fun\r\nsecond line\n",
    "aclImdb/train/unsup/0_0.txt": "the movie\n",
    "aclImdb/README": "the the the\n",
}

SENTENCES = {
    "./simple-examples/data/ptb.train.txt": (
        " no it was n't black monday \n but the <unk> of N did n't \n a b c the the \n\n it was \n"
    ),
    "./simple-examples/data/ptb.valid.txt": " the was it N monday \n a \n it the it \n",
    "./simple-examples/data/ptb.test.txt": " never read \n",
}

MOVIES = """\
1::Toy Story (1995)::Animation|Children's|Comedy
2::Jumanji (1995)::Adventure|Children's|Fantasy
5::Mis\xe9rables, Les (1995)::Drama|Musical
9::The Comedy Story (2000)::Comedy
"""
USERS = "1::F::1::10::48067\n2::M::56::16::70072\n4::M::45::7::02460\n"
RATINGS = "".join(
    f"{user}::{movie}::{(user + movie) % 5 + 1}::978300{user}{movie}\n"
    for user in (1, 2, 4)
    for movie in (1, 2, 5, 9)
)

WORDS = """\
The
cat
chased
and
ate
a
mouse
.

Dogs
bark
.

It
rained
.

"""
PROPS = """\
-       (A0*     (A0*
-       *)       *)
chase   (V*)     *
-       *        *
eat     *        (V*)
-       (A1*     (A1*
-       *)       *)
-       *        *

-       (A0*)
bark    (V*)
-       *

-
-
-

"""
WORD_DICT = "<unk>\nthe\ncat\nThe\nchased\na\nbos\neos\n.\n"
VERB_DICT = "<unk>\nchase\neat\n"
TARGET_DICT = "B-A0\nI-A0\nB-A1\nI-A1\nB-V\nI-V\nO\n"

PAIRS_14 = (
    "le chat noir\tthe black cat\nbon jour\tgood day\nun deux\nmot "
    + "x " * 90
    + "\tlong\nle mot inconnu\tthe word\n"
)
SOURCE_14 = "<s>\n<e>\n<unk>\nle\nchat\nbon\njour\nmot\n"
TARGET_14 = "<s>\n<e>\n<unk>\nthe\ncat\nday\ngood\nblack\n"

PAIRS_16 = {
    "wmt16/train": "a cat sat\teine katze sa\xdf\na dog sat\tein hund sa\xdf\na cat\teine katze\nbroken line\n",
    "wmt16/test": "a cat ran\teine katze lief\n",
    "wmt16/val": "the dog sat\tder hund sa\xdf\n",
}

OPINIONS = {
    f"movie_reviews/{kind}/cv00{i}_{i}.txt": text
    for kind, texts in {
        "neg": ["bad , bad plot .\nit's dull", "so Dull !?", "plot ? what plot"],
        "pos": ["good plot , fine film .", "fine ! it's good", "good good film"],
    }.items()
    for i, text in enumerate(texts)
}


def ranking(queries: int = 4, seed: int = 3) -> str:
    """Lines of LETOR 4.0: relevance, query, 46 features, a comment; one query without a relevant document."""
    draw = random.Random(seed)
    lines = []
    for query in range(queries):
        for document in range(5):
            relevance = 0 if query == 1 else (document + query) % 3
            values = [f"{draw.random():.6f}" for _ in range(46)]
            features = " ".join(f"{i}:{value}" for i, value in enumerate(values, 1))
            comment = f"#docid = GX{query}-{document} inc = 1 prob = 0.{document}"
            lines.append(f"{relevance} qid:{10 + query} {features} {comment}\n")
    return "".join(lines)


def png(height: int, width: int, seed: int, palette: bool = False) -> bytes:
    """A picture of random pixels: colours, or numbers of a palette as masks have them."""
    draw = random.Random(seed)
    row = width if palette else 3 * width
    pixels = b"".join(
        b"\0" + bytes(draw.randrange(21 if palette else 256) for _ in range(row)) for _ in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3 if palette else 2, 0, 0, 0))]
    if palette:
        parts.append(chunk(b"PLTE", bytes(draw.randrange(256) for _ in range(3 * 21))))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [*parts, chunk(b"IDAT", zlib.compress(pixels)), chunk(b"IEND", b"")]
    )


def tar(members, mode="w:gz", encoding="utf8"):
    """A tar file of texts or bytes by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:
        for name, contents in members.items():
            data = contents if isinstance(contents, bytes) else contents.encode(encoding)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def packed(members, encoding="utf8"):
    """A zip file of texts by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, contents in members.items():
            file.writestr(name, contents.encode(encoding))
    return buffer.getvalue()


def flowers():
    """Six flowers of sizes around 256 pixels, in an order of their own."""
    order = [3, 1, 2, 6, 5, 4]
    return {f"jpg/image_{number:05}.jpg": png(250 + 9 * number, 300 - 8 * number, number) for number in order}


def matrix(**names):
    """A MATLAB file of rows of integers."""
    import numpy as np
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, {name: np.array([row], dtype="uint16") for name, row in names.items()})
    return buffer.getvalue()


def pascal():
    """The part of PASCAL VOC that is about segmentation."""
    root = "VOCdevkit/VOC2012"
    lists = {"trainval": "2007_1\n2007_2\n2007_3\n", "train": "2007_2\n2007_1\n", "val": "2007_3\n"}
    members = {f"{root}/ImageSets/Segmentation/{name}.txt": text for name, text in lists.items()}
    for i in (1, 2, 3):
        members[f"{root}/JPEGImages/2007_{i}.jpg"] = png(3 + i, 5, i)
        members[f"{root}/SegmentationClass/2007_{i}.png"] = png(3 + i, 5, 10 + i, palette=True)
    return members


FILES = {
    "imdb%2FaclImdb_v1.tar.gz": lambda: tar(REVIEWS),
    "imikolov%2Fsimple-examples.tgz": lambda: tar(SENTENCES),
    "movielens%2Fml-1m.zip": lambda: packed(
        {"ml-1m/movies.dat": MOVIES, "ml-1m/users.dat": USERS, "ml-1m/ratings.dat": RATINGS}, "latin1"
    ),
    "conll05st-tests.tar.gz": lambda: tar(
        {
            "conll05st-release/test.wsj/words/test.wsj.words.gz": gzip.compress(WORDS.encode()),
            "conll05st-release/test.wsj/props/test.wsj.props.gz": gzip.compress(PROPS.encode()),
        }
    ),
    "conll05st%2FwordDict.txt": lambda: WORD_DICT.encode(),
    "conll05st%2FverbDict.txt": lambda: VERB_DICT.encode(),
    "conll05st%2FtargetDict.txt": lambda: TARGET_DICT.encode(),
    "conll05st%2Femb": lambda: bytes(48),
    "wmt14.tgz": lambda: tar(
        {"wmt14/train/train": PAIRS_14, "wmt14/test/test": "le jour\tthe day\n", "wmt14/gen/gen": "bon mot\tgood\n",
         "wmt14/src.dict": SOURCE_14, "wmt14/trg.dict": TARGET_14}
    ),
    "wmt16.tar.gz": lambda: tar(PAIRS_16),
    "102flowers.tgz": lambda: tar(flowers()),
    "imagelabels.mat": lambda: matrix(labels=[7, 5, 77, 102, 1, 9]),
    "setid.mat": lambda: matrix(trnid=[6, 1], tstid=[3, 5, 2], valid=[4]),
    "movie_reviews%2Fmovie_reviews.zip": lambda: packed(OPINIONS),
    "VOCtrainval_11-May-2012.tar": lambda: tar(pascal(), "w"),
    "MQ2007.txt": lambda: ranking().encode(),
}  # fmt: skip


def make(folder):
    """Write all files into `folder`."""
    for name, contents in FILES.items():
        Path(folder, name).write_bytes(contents())
