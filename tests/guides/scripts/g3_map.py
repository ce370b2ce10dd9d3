import paddle.reader
d = {"h": 0, "i": 1}
def func(x):
    return d[x]
def reader():
    yield "h"
    yield "i"
map_reader_result = paddle.reader.map_readers(func, reader)
