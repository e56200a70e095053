"""Programs whose results and sizes follow from values, on the CPU and on an emulated card whose values are computed.

values.py: says which of them differ.
values.py events: what the programs allocate, to compare runs whose values come from elsewhere.
values.py tf32: products of numbers that TF32 rounds.
values.py masked, rows, labels, or huge: a size that follows from values which only a kernel knows, and more memory than a host has."""

import hashlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


def numbers(*shape, seed=1, dtype=torch.float32):
    """The same on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def trained(module, *inputs, optimizer=None, steps=2):
    """What training a module makes of it."""
    device = inputs[0].device
    module = module.to(device).train()
    optimizer = (optimizer or (lambda p: torch.optim.SGD(p, lr=0.1)))(module.parameters())
    losses = []
    for _ in range(steps):
        out = module(*inputs)
        loss = (out[0] if isinstance(out, tuple) else out).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [torch.tensor(losses), *module.parameters()]


def seeded(make):
    torch.manual_seed(0)
    return make()


@program
def reads(d):
    x = numbers(8, 8).to(d)
    return [x.sum().item(), x.max().item(), bool((x > 0).any()), x[2].tolist()[3], int(x.argmax()), x.t()[1].cpu(), x.double().cpu(), f"{x[0, 0].item():.4f}"]


@program
def masks(d):
    x = numbers(50, 4).to(d)
    kept = x[x[:, 0] > 0]
    y = x.clone()
    y[y < 0] = 0
    y[torch.tensor([1, 3], device=d)] += 1
    z = x.masked_fill(x > 1, 9.0)
    w = x.clone().masked_scatter_(x > 0, torch.arange(200.0, device=d))
    return [kept.shape[0], kept, y, z, w, x.masked_select(x > 0.5), x[x[:, 1] > 0, 2], torch.where(x > 0), x.nonzero()]


@program
def masks_in_backward(d):
    x = numbers(50, 4).to(d).requires_grad_()
    y = x * 2
    (y[y > 0].sum() + y[y[:, 0] > 0].square().sum()).backward()
    return [x.grad]


@program
def counts(d):
    x = torch.tensor([3, 1, 1, 7, 3, 3], device=d)
    return [*x.unique(return_counts=True, return_inverse=True), x.bincount(), x.unique_consecutive(), torch.repeat_interleave(x, x), x.sort(), x.topk(2), torch.equal(x, x), torch.equal(x, x + 1), torch.tensor([[1, 2], [1, 2], [0, 5]], device=d).unique(dim=0)]  # fmt: skip


@program
def views_and_writes(d):
    x = torch.zeros(6, 6, device=d)
    x[1:3].fill_(2)
    x.t()[0].add_(1)
    x.view(-1)[::7] = 5
    torch.add(x, 1, out=x)
    y = x.narrow(0, 1, 2)
    y.mul_(3)
    x.data = x.data * 2
    x.index_add_(0, torch.tensor([0, 0], device=d), torch.ones(2, 6, device=d))
    x.scatter_(1, torch.tensor([[2]], device=d), 100.0)
    return [x, x[:, 2], x.flip(0), x.roll(1), x.cumsum(1)]


@program
def host_and_back(d):
    x = numbers(4, 4)
    y = torch.empty(4, 4, device=d)
    y.copy_(x.t())
    z = torch.tensor([[1.0, 2.0]], device=d)
    h = y.half().to(d).cpu()
    p = torch.empty(4, 4)
    p.copy_(y.t())
    s = y.new_tensor([3.0, 4.0])
    return [y, z, h, p, s, torch.as_tensor([True, False], device=d), y.to(torch.float64), torch.full((2,), 3.5, device=d), torch.arange(3, device=d)]


@program
def branches(d):
    x, steps = torch.full((4,), 100.0, device=d), 0
    while x.norm() > 1 and steps < 50:
        x, steps = x * 0.7, steps + 1
    return [steps, x]


@program
def convolutions(d):
    net = seeded(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(8, 4, 2), nn.GroupNorm(2, 4), nn.AdaptiveAvgPool2d(2)))
    out = trained(net, numbers(4, 3, 12, 12).to(d))
    net.eval()
    return [*out, net[1].running_mean, net[1].running_var, net(numbers(2, 3, 12, 12).to(d))]


@program
def layers(d):
    net = seeded(lambda: nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 8), nn.LogSoftmax(-1)))
    return trained(net, numbers(5, 16).to(d))


@program
def attention(d):
    out = []
    for causal, heads in ((False, 4), (True, 4), (True, 2)):
        q, k, v = (numbers(2, h, 16, 8, seed=s).to(d).requires_grad_() for s, h in ((1, 4), (2, heads), (3, heads)))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != 4)
        o.square().sum().backward()
        out += [o, q.grad, k.grad, v.grad]
    bias = numbers(2, 1, 16, 16).to(d)
    return [*out, F.scaled_dot_product_attention(q, q, q, attn_mask=bias)]


@program
def half_attention(d):
    out = []
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (numbers(2, 4, 16, 8, seed=s, dtype=dtype).to(d).requires_grad_() for s in (1, 2, 3))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        o.float().square().sum().backward()
        out += [o, q.grad, k.grad, v.grad]
    return out


@program
def half_rounding(d):
    x = torch.tensor([2049.0, 0.1, 1e-8], device=d)
    return [x.half(), x.bfloat16(), (x.half() * 3 + 1), x.bfloat16().sum(), (numbers(8, 8).half().to(d) @ numbers(8, 8, seed=2).half().to(d))]


@program
def autocast(d):
    net = seeded(lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(d))
    with torch.autocast(torch.device(d).type, dtype=torch.bfloat16):
        out = net(numbers(8, 16).to(d))
        loss = F.cross_entropy(out.float(), torch.tensor([0, 1, 2, 3] * 2, device=d))
    loss.backward()
    return [out, loss, net[0].weight.grad]


@program
def recurrent(d):
    out = []
    for make in (nn.LSTM, nn.GRU, nn.RNN):
        net = seeded(lambda: make(6, 8, num_layers=2, bidirectional=True, batch_first=True))
        out += trained(net, numbers(3, 5, 6).to(d))
        packed = nn.utils.rnn.pack_padded_sequence(numbers(3, 5, 6).to(d), torch.tensor([5, 3, 2]), batch_first=True)
        out.append(nn.utils.rnn.pad_packed_sequence(net(packed)[0], batch_first=True)[0])
    for make in (nn.LSTMCell, nn.GRUCell):
        out += trained(seeded(lambda: make(6, 8)), numbers(3, 6).to(d))
    return out


@program
def embeddings(d):
    ids = torch.tensor([[1, 2], [2, 9]])
    return [*trained(seeded(lambda: nn.Embedding(10, 4, padding_idx=9)), ids.to(d)), *trained(seeded(lambda: nn.EmbeddingBag(10, 4, mode="mean")), ids.to(d))]


@program
def optimizers(d):
    out = []
    for make in (
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, foreach=True, amsgrad=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.RMSprop(p),
        lambda p: torch.optim.Adagrad(p),
    ):
        out += trained(seeded(lambda: nn.Linear(6, 3)), numbers(4, 6).to(d), optimizer=make, steps=3)
    return out


@program
def until_it_descends(d):
    x = torch.tensor([-1.5, 1.0], device=d, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    return [optimizer.step(closure), closure(), len(optimizer.state[x].get("old_dirs", []))]


@program
def losses(d):
    logits, target = numbers(6, 5).to(d).requires_grad_(), torch.tensor([0, 1, 2, 3, 4, -100], device=d)
    out = [F.cross_entropy(logits, target), F.binary_cross_entropy_with_logits(logits, (logits > 0).float()), F.smooth_l1_loss(logits, logits.detach() * 2)]
    speech = numbers(7, 2, 5).to(d).requires_grad_()
    out.append(F.ctc_loss(speech.log_softmax(-1), torch.tensor([[1, 2], [3, 3]], device=d), torch.tensor([7, 7]), torch.tensor([2, 1])))
    sum(out).backward()
    return [*out, logits.grad, speech.grad]


@program
def a_checkpoint_on_the_device(d):
    def make():
        net = seeded(lambda: nn.Linear(4, 4).to(d))
        return net, torch.optim.AdamW(net.parameters(), fused=True)

    net, optimizer = make()
    for _ in range(3):
        net(torch.ones(2, 4, device=d)).sum().backward()
        optimizer.step()
    saved = {"net": {k: v.clone() for k, v in net.state_dict().items()}, "optimizer": optimizer.state_dict()}
    other, again = make()
    other.load_state_dict(saved["net"])
    again.load_state_dict(saved["optimizer"])
    other(torch.ones(2, 4, device=d)).sum().backward()
    again.step()
    return [again.state[other.weight]["step"].item(), other.weight, again.state[other.weight]["exp_avg"]]


@program
def scaled_gradients(d):
    if torch.device(d).type == "cpu":
        return [torch.tensor(65536.0), torch.tensor(32768.0), 1]
    scaler, p = torch.amp.GradScaler("cuda"), nn.Parameter(torch.ones(2, device=d))
    optimizer, scales, steps = torch.optim.SGD([p], lr=0.0), [], 0
    for value in (1.0, float("inf")):
        scaler.scale((p * value).sum()).backward()
        before = p.grad.isfinite().all().item()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        steps += before
        scales.append(torch.tensor(scaler.get_scale()))
    return [*scales, steps]


@program
def factorizations(d):
    a = numbers(5, 5).to(d)
    a = a @ a.t() + torch.eye(5, device=d)
    return [torch.linalg.cholesky(a), torch.linalg.solve(a, a[:, :2]), torch.linalg.eigvalsh(a), torch.linalg.svdvals(a), torch.linalg.inv(a), torch.linalg.det(a), torch.fft.rfft(a).abs()]


@program
def sparse(d):
    t = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([3.0, 4.0, 5.0]), (2, 3)).to(d)
    return [torch.sparse.mm(t, numbers(3, 2).to(d)), t.to_dense(), t.coalesce().values()]


@program
def complex_numbers(d):
    z = torch.view_as_complex(numbers(4, 2).to(d))
    return [z.conj().imag.clone(), (z * z.conj()).real.clone(), z.abs(), torch.view_as_real(z.conj().resolve_conj())]


@program
def padded(d):
    """In evaluation, an encoder makes a nested tensor of what is not padding."""
    net = seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)).to(d).eval()
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], device=d).bool()
    with torch.no_grad():
        return [net(numbers(3, 5, 8).to(d), src_key_padding_mask=padding)[~padding]]


@program
def fused_encoder(d):
    """In evaluation, a layer is one operator."""
    layer = seeded(lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)).to(d).eval()
    with torch.no_grad():
        return [layer(numbers(2, 8, 64).to(d))]


@program
def recomputed(d):
    from torch.utils.checkpoint import checkpoint

    net = seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))).to(d)
    checkpoint(net, numbers(3, 4).to(d), use_reentrant=False).sum().backward()
    return [net[0].weight.grad]


@program
def mapped(d):
    weight = numbers(3, 4).to(d)
    per_sample = torch.func.vmap(torch.func.grad(lambda x: (weight @ x).square().sum()))
    return [per_sample(numbers(5, 4).to(d)), torch.func.vmap(lambda x: x.sort()[0])(numbers(5, 4).to(d))]


@program
def types(d):
    """Types of tensors that say where they are."""
    if d == "cpu":
        return [numbers(40, 200), numbers(40, 200)[0, :4].double()]
    large = numbers(40, 200).type(torch.cuda.FloatTensor)
    return [large, large[0, :4].type("torch.cuda.FloatTensor").type(torch.cuda.DoubleTensor)]


@program
def other_threads(d):
    import threading

    out = []
    thread = threading.Thread(target=lambda: out.append(numbers(3, 3).to(d).exp().sum().item()))
    thread.start()
    thread.join()
    return out


def flat(value):
    if isinstance(value, (list, tuple)):
        return [w for v in value for w in flat(v)]
    if isinstance(value, torch.Tensor):
        value = value.detach().to_dense() if value.layout is not torch.strided else value.detach()
        return [value.cpu()]
    return [value]


def differ(a, b):
    if type(a) is not type(b):
        return True
    if not isinstance(a, torch.Tensor):
        return abs(a - b) > 1e-3 * (1 + abs(a)) if isinstance(a, float) else a != b
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    close = {torch.float16: 5e-3, torch.bfloat16: 4e-2}.get(a.dtype, 1e-3)
    return not torch.allclose(a.double() if not a.is_complex() else a, b.double() if not b.is_complex() else b, rtol=close, atol=close)


def drawn():
    """Random numbers, which are nobody's in particular: their shares are what they should be."""
    torch.manual_seed(3)
    before = torch.get_rng_state()
    x, kept = torch.randn(4000, device="cuda"), F.dropout(torch.ones(4000, device="cuda"), 0.25)
    again = torch.randn(4000, device="cuda")
    assert torch.equal(before, torch.get_rng_state()), "the CPU's generator moved"
    assert abs(x.mean().item()) < 0.1 and abs(x.std().item() - 1) < 0.1, "randn"
    assert 0.2 < (kept == 0).float().mean().item() < 0.3, "dropout"
    assert not torch.equal(x, again), "the same numbers twice"
    torch.manual_seed(3)
    assert torch.equal(x, torch.randn(4000, device="cuda")), "a seed gives the same numbers"
    assert sorted(torch.randperm(50, device="cuda").tolist()) == list(range(50)), "randperm"
    shares = torch.multinomial(torch.tensor([0.2, 0.8], device="cuda"), 4000, replacement=True).float().mean().item()
    assert 0.75 < shares < 0.85, "multinomial"


def compare():
    wrong = 0
    for run in PROGRAMS:
        want, got = flat(run("cpu")), flat(run("cuda"))
        for i, (a, b) in enumerate(zip(want, got)):
            if differ(a, b):
                wrong += 1
                print(f"{run.__name__}, result {i}: {b}, on the CPU {a}")
        if len(want) != len(got):
            wrong += 1
            print(f"{run.__name__}: {len(got)} results, on the CPU {len(want)}")
    drawn()
    print(f"{len(PROGRAMS)} programs, {wrong} differences")


# No size of these follows from a value. Autocast frees its copies of weights in the order of a hash map of host addresses.
SAME_EVENTS = (views_and_writes, host_and_back, convolutions, layers, attention, half_attention, recurrent, embeddings, optimizers, losses, factorizations, fused_encoder, recomputed, types)


def events():
    torch.cuda.memory._record_memory_history(context=None)
    for run in SAME_EVENTS:
        run("cuda")
        run("cuda")
    trace = [(e["action"], e["size"], e["addr"]) for e in torch.cuda.memory._snapshot()["device_traces"][0]]
    print(len(trace), hashlib.sha256(str(trace).encode()).hexdigest())


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = sys.argv[1:] == ["tf32"]
    if sys.argv[1:] == ["events"]:
        events()
    elif sys.argv[1:] == ["tf32"]:
        x = torch.tensor([[1 + 2**-11, 1 + 2**-12, -1 - 3 * 2**-11]], device="cuda")
        print("products", *(x.t() @ torch.ones(1, 1, device="cuda")).flatten().sub(1).mul(2048).tolist())
        print("convolved", *F.conv1d(x[None], torch.ones(1, 1, 1, device="cuda"), torch.full((1,), 2**-13, device="cuda")).flatten().sub(1).mul(2048).tolist())
    elif sys.argv[1:] == ["masked"]:
        x = numbers(300, 40).cuda()
        x = x @ x.t()
        print("kept", len(x[x > 0]))
    elif sys.argv[1:] == ["rows"]:
        x = numbers(300, 40).cuda()
        print("kept", len(x[(x < 1.5).all(1)]))
    elif sys.argv[1:] == ["labels"]:
        y = numbers(300, 40)
        y[y > 1] = float("nan")
        y = y.cuda()
        print("kept", len(y[~torch.isnan(y)]))
    elif sys.argv[1:] == ["huge"]:
        x = torch.empty(120 << 30, dtype=torch.uint8, device="cuda")
        y = torch.randn(300, 300, device="cuda")
        print(len(y[y > 0]))
    else:
        compare()
