"""On the path of Python that scripts start: `paddle` in this folder. See `hook.py`."""
