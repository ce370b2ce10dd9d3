"""`fluid.DataFeedDesc`: what it reads, changes and prints, and texts that are none."""

import pytest

from fluidlite import DataFeedDesc
from fluidlite.base.errors import FormatError

TEXT = """name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_dense: false
    is_used: true
  }
  slots {
    name: "label"
    type: "uint64"
    is_dense: false
    is_used: false
  }
}
"""


def read(tmp_path, text):
    path = tmp_path / "data.proto"
    path.write_text(text)
    return DataFeedDesc(str(path))


def test_it_prints_what_it_has_read(tmp_path):
    assert read(tmp_path, TEXT).desc() == TEXT + 'pipe_command: "cat"\n'
    assert read(tmp_path, "").desc() == 'pipe_command: "cat"\n'


def test_changes(tmp_path):
    desc = read(tmp_path, TEXT)
    desc.set_batch_size(128)
    desc.set_dense_slots(["words"])
    desc.set_use_slots(["label"])
    changed = TEXT.replace("batch_size: 2", "batch_size: 128").replace("is_used: false", "is_used: true")
    assert desc.desc() == changed.replace("is_dense: false", "is_dense: true", 1) + 'pipe_command: "cat"\n'
    with pytest.raises(KeyError, match="other"):
        desc.set_use_slots(["other"])
    with pytest.raises(TypeError, match="'a' has type str, but expected one of: int"):
        desc.set_batch_size("a")


def test_other_ways_of_writing_the_same(tmp_path):
    text = (
        "# a comment\nbatch_size : 0x10; name: 'X' \"Y\", "
        "multi_slot_desc: < slots { shape: 1 shape: [2, -3] name: 'q' }"
        ' uid_slot: "u" > thread_num: 2 rank_offset: "a\\"b" pv_batch_size: 4'
    )
    assert read(tmp_path, text).desc() == (
        'name: "XY"\nbatch_size: 16\nmulti_slot_desc {\n  slots {\n    name: "q"\n    shape: 1\n    shape: 2\n'
        '    shape: -3\n  }\n  uid_slot: "u"\n}\npipe_command: "cat"\nthread_num: 2\nrank_offset: "a\\"b"\n'
        "pv_batch_size: 4\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('nme: "A"', "line 1: the message has no field 'nme'"),
        ('\nname "A"', "line 2: expected ':', got '\"A\"'"),
        ("batch_size: a", "'a' is no integer"),
        ("name: A", "'A' is no text in quotes"),
        ('name: "A" name: "B"', "there is a second 'name'"),
        ("multi_slot_desc { slots { name: 'q' ", "expected more, got 'the end'"),
        ("multi_slot_desc { name: 'q' }", "the message has no field 'name'"),
        ("slots { }", "the message has no field 'slots'"),
        ("multi_slot_desc { } multi_slot_desc { }", "a second multi_slot_desc"),
        ("multi_slot_desc { slots { is_used: maybe } }", "expected 'true' or"),
        ('name: "open', "cannot read '\"open'"),
        ("name: 'A' }", "the message has no field '}'"),
    ],
)
def test_texts_that_are_none(tmp_path, text, message):
    with pytest.raises(
        FormatError, match="data.proto, line .*" if "line" not in message else message
    ) as error:
        read(tmp_path, text)
    assert message in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        DataFeedDesc(str(tmp_path / "nothing"))
