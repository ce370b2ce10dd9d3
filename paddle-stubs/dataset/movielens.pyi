# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.movielens import (
    MD5 as MD5,
    MovieInfo as MovieInfo,
    URL as URL,
    UserInfo as UserInfo,
    age_table as age_table,
    fetch as fetch,
    get_movie_title_dict as get_movie_title_dict,
    max_job_id as max_job_id,
    max_movie_id as max_movie_id,
    max_user_id as max_user_id,
    movie_categories as movie_categories,
    movie_info as movie_info,
    test as test,
    train as train,
    unittest as unittest,
    user_info as user_info,
)
from fluidlite.paddle import (
    compat as cpt,
)
