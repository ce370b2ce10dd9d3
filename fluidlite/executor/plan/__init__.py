"""What plans of the host and of GPUs have in common: analysis, instructions, the fuser, `StepPlan`."""
