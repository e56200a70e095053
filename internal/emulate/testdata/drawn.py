"""Draws on the device after manual_seed(0)."""

import torch

for name, draw in {
    "rand": lambda: torch.rand(5, device="cuda"),
    "randn": lambda: torch.randn(6, device="cuda"),
    "normal_": lambda: torch.empty(2, 3, device="cuda").normal_(1, 2),
    "randn half": lambda: torch.randn(6, device="cuda", dtype=torch.half),
    "rand transposed": lambda: torch.empty(5, 1, device="cuda").t().uniform_(),
}.items():
    torch.manual_seed(0)
    print(f"{name}:", *(f"{x:.3f}" for x in draw().flatten().tolist()))
