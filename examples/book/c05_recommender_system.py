"""Ratings of films by users: a vector of each, and the cosine between them.

usage: python -m fluidlite examples/book/c05_recommender_system.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

USERS, JOBS, AGES, FILMS, GENRES, WORDS, WIDTH = 40, 6, 5, 60, 8, 90, 16
layers = fluid.layers


def ratings(random, count):
    """What `DataFeeder` takes: user, sex, age, job, film, its genres, its title's words, the rating from 1 to 5."""
    made = []
    for _ in range(count):
        user, film = random.randint(0, USERS), random.randint(0, FILMS)
        genres = [film % GENRES, film // GENRES][: 1 + film % 2]
        title = [(film * 7 + place * 3) % WORDS for place in range(2 + film % 4)]
        liked = 5.0 if user % GENRES in genres else 1.0 + (user + film) % 3
        made.append((user, user % 2, user % AGES, user % JOBS, film, genres, title, [liked]))
    return made


def user_vector(user, sex, age, job):
    found = []
    for number, size, width in ((user, USERS, 16), (sex, 2, 4), (age, AGES, 4), (job, JOBS, 4)):
        found.append(layers.fc(layers.embedding(number, size=[size, width], is_sparse=True), size=WIDTH))
    return layers.fc(found, size=32, act="tanh")


def film_vector(film, genres, title):
    itself = layers.fc(layers.embedding(film, size=[FILMS, 16], is_sparse=True), size=WIDTH)
    kinds = layers.sequence_pool(layers.embedding(genres, size=[GENRES, 8], is_sparse=True), "sum")
    words = fluid.nets.sequence_conv_pool(
        layers.embedding(title, size=[WORDS, 8], is_sparse=True),
        num_filters=8,
        filter_size=3,
        act="tanh",
        pool_type="sum",
    )
    return layers.fc(layers.concat([itself, kinds, words], axis=1), size=32, act="tanh")


def main(steps):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 90
    users = [fluid.data(name, [None, 1], "int64") for name in ("user", "sex", "age", "job")]
    films = [fluid.data("film", [None, 1], "int64")]
    films += [fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("genres", "title")]
    rating = fluid.data("rating", [None, 1], "float32")
    guess = layers.scale(layers.cos_sim(user_vector(*users), film_vector(*films)), scale=5.0)
    loss = layers.mean(layers.square_error_cost(input=guess, label=rating))
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=0.2).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=users + films + [rating], place=fluid.CPUPlace())
    random = np.random.RandomState(5)
    for step in range(steps):
        (value,) = exe.run(feed=feeder.feed(ratings(random, 64)), fetch_list=[loss])
        if step % (steps // 10) == 0:
            print(f"step {step}: loss {value.item():.6f}")
    tested = ratings(random, 200)
    told, value = exe.run(testing, feed=feeder.feed(tested), fetch_list=[guess, loss])
    print(f"new ratings: loss {value.item():.6f}")
    for sample, found in zip(tested[:3], told[:, 0]):  # noqa: B905 - Python 3.8 runs it, too
        print(f"user {sample[0]}, film {sample[4]}: {found:.4f}, true one {sample[-1][0]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
