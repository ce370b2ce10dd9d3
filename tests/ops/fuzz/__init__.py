"""Differential fuzzing of operators: random cases (`recipes_*`), run in every way there is (`ways`) and compared."""
