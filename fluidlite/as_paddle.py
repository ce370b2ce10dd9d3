"""`import fluidlite.as_paddle`: from here on `import paddle` and `import paddle.fluid` mean this package."""

from .paddle import hook

hook.install()
