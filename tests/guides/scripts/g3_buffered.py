import paddle.reader as reader
import time

def reader_creator_10(dur):
    def reader():
        for i in range(10):
            time.sleep(dur)
            yield i
    return reader

for size in range(20):
    b = reader.buffered(reader_creator_10(0), size)
    c = 0
    for i in b():
        assert i == c
        c += 1
    assert c == 10
