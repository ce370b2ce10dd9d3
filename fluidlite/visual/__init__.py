"""Curves of a training: `LogWriter` writes them down, `fluidlite plot LOGDIR` draws them.

`LogWriter` has the methods of VisualDL 2.0, whose name public scripts import; where VisualDL is not installed,
`import visualdl` means this package in scripts that fluidlite runs. The files are TensorBoard's, written by
tensorboardX (the extra `visual`), so TensorBoard reads them as well.
"""

from .writer import LogWriter

__all__ = ["LogWriter"]
