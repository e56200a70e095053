"""Programs that take numbers from the device and continue by them. The arguments choose some."""

import json
import math
import sys
import tempfile

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, kept = torch.randn(512, 64).cuda(), []


def step():
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def matters():
    if (1 - step()).item() > 0.5:
        kept.append(torch.empty(64 << 20, device="cuda"))


def large():
    """Which of some numbers are large."""
    return torch.randn(4 << 10, device="cuda") > 1.5


def count():
    kept.append(torch.zeros(large().sum().item(), 1 << 10, device="cuda"))


def integer():
    kept.append(torch.zeros(int(large().sum()), 1 << 10, device="cuda"))


def listed():
    kept.append(torch.zeros(sum(v > 1.5 for v in torch.randn(4 << 10, device="cuda").tolist()), 1 << 10, device="cuda"))


def copied():
    some = torch.randn(4 << 10, device="cuda").cpu().numpy()
    kept.append(torch.zeros(int((some > 1.5).sum()), 1 << 10, device="cuda"))


def drawn():
    """An action that is drawn, and what it leads to."""
    if torch.distributions.Categorical(logits=model(x)[:2, 0]).sample().item():
        kept.append(torch.empty(8 << 20, device="cuda"))


def accuracy():
    right = (model(x) > 0).sum().item()
    print(right / 512, (model(x) > 0).float().cpu().mean())


def logged():
    """An action that goes to the host. The distribution reads whether its logits are numbers."""
    with torch.no_grad():
        print(torch.distributions.Categorical(logits=model(x).expand(-1, 4)).sample().cpu().numpy()[:3])


def norm():
    """How DeepSpeed looks whether a norm is right: nothing that a step would have to be computed for."""
    step()
    norms = torch.stack([torch.linalg.vector_norm(p.grad) for p in model.parameters()])
    total = torch.linalg.vector_norm(norms).pow(2).sum().float().pow(0.5)
    total.masked_fill_(total.isnan().logical_or(total.isinf()), torch.tensor(-1.0, device="cuda"))
    if bool((~torch.isfinite(total) | (total < 0)).any()):
        kept.append(torch.empty(8 << 20, device="cuda"))


def best():
    lowest = float("inf")
    for _ in range(3):
        if (loss := step().item()) < lowest:
            lowest = loss


def prints():
    loss = step().item()
    print(f"{loss:.2f}", json.dumps({"loss": loss}), sum([loss, loss]) / 2, 1 / loss > 0, isinstance(loss, float))
    with tempfile.NamedTemporaryFile() as f:
        torch.save({"loss": loss}, f.name)
        assert type(torch.load(f.name)["loss"]) is float


def types():
    loss = step().item()
    assert type(loss) in (int, float)
    print(f"{loss:.2f}")


def file():
    print(step().item())
    open("no such file")


def logarithm():
    print(math.log10(step().item()))


def solver():
    """An adaptive solver, which halves or doubles the length of its steps."""
    time, length, end = torch.zeros((), device="cuda"), torch.full((), 0.5, device="cuda"), torch.ones((), device="cuda")
    y = torch.randn(64, 64, device="cuda")
    while time < end:
        error = (model(y).mean() * length).abs()
        if error < 1:
            time = time + length
        length = length * torch.where(error < 0.5, 2.0, 0.5)


def solver_of_numbers():
    time, rate = 0.0, torch.full((), 0.25, device="cuda")
    while time < 1:
        time += (rate * (1 + model(x).mean() * 0)).item()


def flat():
    """L-BFGS where there is nothing to descend: it ends with the first look, and keeps no history."""
    y, looks = torch.nn.Parameter(torch.zeros(1 << 20, device="cuda")), []
    optimizer = torch.optim.LBFGS([y], line_search_fn="strong_wolfe")

    def look():
        looks.append(1)
        optimizer.zero_grad()
        loss = y.square().sum()
        loss.backward()
        return loss

    optimizer.step(look)
    print("looked", len(looks))


for name in sys.argv[1:]:
    globals()[name]()
