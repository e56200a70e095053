"""Small training programs as people write them, for any PyTorch from 2.4 on.

programs.py NAME... runs them, each in a fork, on whatever GPUs there are:
`make test-versions` gives them two emulated ones with 1 GiB. It prints the name
of each and its exit status, 0 if PyTorch did all that it was asked.
"""

import os
import sys
import traceback

import torch
from torch import nn

STEPS = 3


def train(model, inputs, loss, optimizer=None, dtype=None):
    """Steps as a plain loop makes them; with dtype under autocast."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            value = loss(model(**inputs) if isinstance(inputs, dict) else model(inputs))
        scaler.scale(value).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    value.item()


def tokens(vocabulary, *shape):
    return torch.randint(0, vocabulary, shape).cuda()


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel  # not before the fork: some versions open the device

    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4)).cuda()
    ids = tokens(50257, 4, 128)
    train(model, {"input_ids": ids, "labels": ids}, lambda out: out.loss)


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(num_hidden_layers=2, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    model = BertForSequenceClassification(config).cuda()
    mask = torch.ones(4, 128, dtype=torch.long)
    mask[1, 100:] = 0
    inputs = {"input_ids": tokens(30522, 4, 128), "attention_mask": mask.cuda(), "labels": tokens(2, 4)}
    train(model, inputs, lambda out: out.loss, dtype=torch.bfloat16)


def checkpointed():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4)).cuda()
    model.gradient_checkpointing_enable()
    ids = tokens(50257, 4, 128)
    train(model.train(), {"input_ids": ids, "labels": ids}, lambda out: out.loss, dtype=torch.bfloat16)


def convolutions():
    layers, channels = [], 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)).cuda()
    images, labels = torch.randn(16, 3, 64, 64).cuda(), tokens(10, 16)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train(model, images, lambda out: nn.functional.cross_entropy(out, labels), sgd)
    model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    train(model, images, lambda out: nn.functional.cross_entropy(out, labels), sgd, torch.bfloat16)


def lstm():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(1000, 128), nn.LSTM(128, 256, num_layers=2, dropout=0.1, batch_first=True)
            self.out = nn.Linear(256, 1000)

        def forward(self, ids):
            return self.out(self.lstm(self.embedding(ids))[0])

    ids = tokens(1000, 8, 64)
    train(Model().cuda(), ids, lambda out: nn.functional.cross_entropy(out.flatten(0, 1), ids.flatten()))


def encoder(dtype=torch.float16):
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).cuda()
    train(model, torch.randn(8, 128, 256).cuda(), lambda out: out.float().pow(2).mean(), dtype=dtype)


def expandable():
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    encoder(dtype=None)


def ddp():
    torch.distributed.init_process_group("nccl")
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
    train(model, torch.randn(32, 512).cuda(), lambda out: out.pow(2).mean())
    torch.distributed.destroy_process_group()


def fsdp2():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # before 2.6
        from torch.distributed._composable.fsdp import fully_shard

    torch.distributed.init_process_group("nccl")
    layers = nn.ModuleList(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True) for _ in range(3)).cuda()
    model = nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer)
    fully_shard(model)
    train(model, torch.randn(8, 128, 256).cuda(), lambda out: out.pow(2).mean())
    torch.distributed.destroy_process_group()


def out_of_memory():
    """The error is PyTorch's own, and the program continues after it."""
    try:
        torch.empty(2 << 30, device="cuda")
    except torch.OutOfMemoryError as e:
        print(e, file=sys.stderr)
        return encoder()
    sys.exit("there was room for 8 GiB")


def fourier():
    """cuFFT's plans: real and complex, of one and two dimensions, there and back."""

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 33, dtype=torch.complex64))

        def forward(self, x):
            along = torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=64)
            return torch.fft.ifft2(torch.fft.fft2(along)).real + torch.fft.rfft(x, n=1001).abs().mean()

    train(Mixer().cuda(), torch.randn(16, 8, 64).cuda(), lambda out: out.pow(2).mean())


def linear_algebra():
    """cuSOLVER's factorizations, of one matrix and of a batch, and what is built on them."""
    for matrix in (torch.randn(96, 64), torch.randn(4, 48, 32), torch.randn(40, 40, dtype=torch.complex128)):
        a = matrix.cuda().requires_grad_()
        square = a.mH @ a + torch.eye(a.shape[-1], device="cuda", dtype=a.dtype)
        lu, pivots = torch.linalg.lu_factor(square)
        results = [
            torch.linalg.cholesky(square), torch.linalg.qr(a).R, torch.linalg.inv(square), torch.linalg.det(square), lu,
            torch.linalg.solve(square, a.mH), torch.linalg.eigvalsh(square), torch.linalg.svdvals(a), torch.linalg.lu_solve(lu, pivots, a.mH),
        ]  # fmt: skip
        sum(r.abs().sum() for r in results).backward()
        with torch.no_grad():
            torch.linalg.svd(a, full_matrices=False), torch.linalg.eigh(square), torch.linalg.pinv(a), torch.linalg.lstsq(a, a)
            torch.cholesky_solve(a.mH, results[0]), torch.linalg.ldl_factor(square)


def sparse():
    """cuSPARSE's products of a sparse matrix in each layout, and their gradients."""
    weight = torch.randn(64, 32).cuda().requires_grad_()
    coordinates = torch.eye(64).to_sparse_coo().cuda()
    rows = torch.eye(64).to_sparse_csr().cuda()
    (torch.sparse.mm(coordinates, weight) + rows @ weight).sum().backward()
    rows @ weight[:, 0].detach()


def graphed():
    """Layers as CUDA graphs, which have pools of memory of their own, and a whole step as one."""
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
    x = torch.randn(32, 256).cuda()
    layers = torch.cuda.make_graphed_callables(model, (x.clone().requires_grad_(),))
    train(layers, x.requires_grad_(), lambda out: out.pow(2).mean())
    step, optimizer = torch.cuda.CUDAGraph(), torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(step):
        model[0](x).pow(2).mean().backward()
    step.replay()


def graph():
    """A CUDA graph is captured and launched. What is not emulated, memory of
    another process, fails as an error of PyTorch's."""
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        x = torch.zeros(1, device="cuda") + 1
    captured.replay()
    try:
        torch.UntypedStorage._new_shared_cuda(*x.untyped_storage()._share_cuda_())
    except RuntimeError as e:
        return print(e, file=sys.stderr)
    sys.exit("memory of another process was opened")


def run(name):
    """In a fork: PyTorch is imported once, and a crash is one program's."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    sys.argv[1:] = [name]
    status = 1
    try:
        globals()[name]()
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, run(name), flush=True)
