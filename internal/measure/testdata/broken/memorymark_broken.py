import memorymark_absent  # noqa: F401  which nobody has
