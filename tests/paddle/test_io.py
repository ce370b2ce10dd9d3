"""`paddle.io` through the import hook: the names of Paddle 2.0 and its example."""

import numpy as np
import pytest

import fluidlite.paddle as paddle
import fluidlite.paddle.io as paddle_io
from fluidlite.framework import mode

SCRIPT = """
import numpy as np
import paddle
from paddle.io import BatchSampler, DataLoader, Dataset, RandomSampler, random_split

class Digits(Dataset):
    def __init__(self, mode):
        super().__init__()
        self.images = [[0.5 * i] * 784 for i in range(250)]
        self.labels = list(range(250))

    def __getitem__(self, idx):
        image = np.array(self.images[idx]).astype('float32')
        label = np.array(self.labels[idx]).astype('float32')
        return image, label

    def __len__(self):
        return len(self.images)

if __name__ == '__main__':
    if {spawn}:
        import multiprocessing
        multiprocessing.set_start_method('spawn')
    data_loader = paddle.io.DataLoader(Digits('train'), batch_size=100, shuffle=True, num_workers={workers})
    for i, data in enumerate(data_loader()):
        images, labels = data
        print(i, images.shape, labels.shape, str(labels.numpy().dtype))
        if i >= 2:
            break
    parts = random_split(Digits('train'), [200, 50])
    sampler = BatchSampler(sampler=RandomSampler(parts[1]), batch_size=20, drop_last=True)
    print(len(DataLoader(parts[1], batch_sampler=sampler)), issubclass(Dataset, paddle.io.Dataset))
"""


@pytest.mark.parametrize(("workers", "spawn"), [(0, False), (2, False), (1, True)])
def test_the_guides_loop(python, tmp_path, workers, spawn):
    script = tmp_path / "digits.py"
    script.write_text(SCRIPT.replace("{workers}", str(workers)).replace("{spawn}", str(spawn)))
    done = python("-W", "error", "-m", "fluidlite", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "0 [100, 784] [100] float32",
        "1 [100, 784] [100] float32",
        "2 [50, 784] [50] float32",
        "2 True",
    ]


def test_states_of_loaders_go_into_checkpoints(tmp_path):
    def make():
        return paddle_io.DataLoader(paddle_io.TensorDataset([np.arange(10)]), batch_size=3, shuffle=True)

    def numbers(batches):
        return [n.numpy().tolist() for (n,) in batches]

    loader = make()
    epoch = iter(loader)
    begun = numbers([next(epoch), next(epoch)])
    paddle.save({"loader": loader.state_dict(), "step": 2}, str(tmp_path / "checkpoint"))
    rest = numbers(epoch)
    resumed = make()
    resumed.set_state_dict(paddle.load(str(tmp_path / "checkpoint"))["loader"])
    assert numbers(resumed) == rest and sorted(sum(begun + rest, [])) == list(range(10))


def test_loaders_of_generators():
    loader = paddle_io.DataLoader.from_generator(capacity=2)
    loader.set_sample_generator(lambda: ((np.full(3, i), i) for i in range(5)), batch_size=2, drop_last=False)
    assert [(x.shape, n.numpy().ravel().tolist()) for x, n in loader] == [
        ([2, 3], [0, 1]),
        ([2, 3], [2, 3]),
        ([1, 3], [4]),
    ]
    with mode.guard(False), pytest.raises(ValueError, match="feed_list must be given in static mode"):
        paddle_io.DataLoader.from_generator(capacity=2)


def test_misspelt_names_get_a_suggestion():
    with pytest.raises(AttributeError, match="did you mean 'DataLoader'"):
        _ = paddle_io.DataLoder
