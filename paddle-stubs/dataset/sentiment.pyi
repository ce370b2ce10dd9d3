# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.sentiment import (
    MD5 as MD5,
    NUM_TOTAL_INSTANCES as NUM_TOTAL_INSTANCES,
    NUM_TRAINING_INSTANCES as NUM_TRAINING_INSTANCES,
    URL as URL,
    download_data_if_not_yet as download_data_if_not_yet,
    fetch as fetch,
    get_word_dict as get_word_dict,
    load_sentiment_data as load_sentiment_data,
    movie_reviews as movie_reviews,
    reader_creator as reader_creator,
    sort_files as sort_files,
    test as test,
    train as train,
)
