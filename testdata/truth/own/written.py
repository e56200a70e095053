"""Models as people write them, for predictions from source."""
import copy
import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor, optim


# --- a network of layers
class MLP(nn.Module):
    def __init__(self, sizes=(784, 512, 256, 10), p=0.2):
        super().__init__()
        layers = []
        for i in range(len(sizes) - 1):
            layers.append(nn.Linear(sizes[i], sizes[i + 1]))
            if i < len(sizes) - 2:
                layers += [nn.BatchNorm1d(sizes[i + 1]), nn.ReLU(), nn.Dropout(p)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x.view(x.size(0), -1))


def mlp():
    criterion = nn.CrossEntropyLoss()
    return {
        "model": MLP(),
        "batch": lambda n: (torch.randn(n, 1, 28, 28),),
        "loss": lambda out, b: criterion(out, torch.zeros(out.size(0), dtype=torch.long, device=out.device)),
        "optimizer": lambda p: optim.Adam(p, lr=1e-3, weight_decay=1e-5),
    }


# --- a small ResNet
class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes * self.expansion:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers=(2, 2, 2), classes=10):
        super().__init__()
        self.inplanes = 64
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.layer1 = self._make_layer(64, layers[0])
        self.layer2 = self._make_layer(128, layers[1], 2)
        self.layer3 = self._make_layer(256, layers[2], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(256, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, planes, blocks, stride=1):
        layers = [BasicBlock(self.inplanes, planes, stride)]
        self.inplanes = planes
        for _ in range(1, blocks):
            layers.append(BasicBlock(planes, planes))
        return nn.Sequential(*layers)

    def forward(self, batch):
        x, y = batch["image"], batch["label"]
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        x = torch.flatten(self.avgpool(x), 1)
        return F.cross_entropy(self.fc(x), y)


class Wrapper(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, image, label):
        return {"loss": self.m({"image": image, "label": label})}


def resnet():
    return Wrapper(ResNet()), lambda n: {"image": torch.randn(n, 3, 32, 32), "label": torch.randint(0, 10, (n,))}, lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)


# --- a GPT with attention by hand
@dataclass
class GPTConfig:
    block_size: int = 256
    vocab_size: int = 8000
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 256
    dropout: float = 0.1
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd = config.n_head, config.n_embd
        self.register_buffer("bias", torch.tril(torch.ones(config.block_size, config.block_size)).view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class GPTBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(), nn.Linear(4 * config.n_embd, config.n_embd), nn.Dropout(config.dropout))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(config.vocab_size, config.n_embd),
            wpe=nn.Embedding(config.block_size, config.n_embd),
            drop=nn.Dropout(config.dropout),
            h=nn.ModuleList([GPTBlock(config) for _ in range(config.n_layer)]),
            ln_f=nn.LayerNorm(config.n_embd),
        ))
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))
        print(f"number of parameters: {self.get_num_params() / 1e6:.2f}M")

    def get_num_params(self, non_embedding=True):
        n_params = sum(p.numel() for p in self.parameters())
        if non_embedding:
            n_params -= self.transformer.wpe.weight.numel()
        return n_params

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.config.block_size, f"Cannot forward sequence of length {t}"
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return logits, loss


def gpt():
    model = GPT(GPTConfig())
    param_dict = {pn: p for pn, p in model.named_parameters() if p.requires_grad}
    decay = [p for n, p in param_dict.items() if p.dim() >= 2]
    nodecay = [p for n, p in param_dict.items() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}]
    return {
        "model": model,
        "batch": lambda n: (torch.randint(0, 8000, (n, 256)), torch.randint(0, 8000, (n, 256))),
        "loss": lambda out, b: out[1],
        "optimizer": lambda p: torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True),
    }


# --- a ViT with nn.MultiheadAttention
class ViTBlock(nn.Module):
    def __init__(self, dim, heads, mlp_dim, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(mlp_dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        h = self.norm1(x)
        a, _ = self.attn(h, h, h)
        x = x + a
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, image=64, patch=8, dim=192, depth=4, heads=3, classes=100):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, dim) * 0.02)
        self.blocks = nn.ModuleList([ViTBlock(dim, heads, dim * 4, 0.1) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.pos
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x)[:, 0])


def vit():
    return ViT(), lambda n: torch.randn(n, 3, 64, 64)


# --- a VAE
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def vae():
    def loss(out, x):
        recon, mu, logvar = out
        bce = F.binary_cross_entropy(recon, x.view(-1, 784), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return bce + kld
    return {"model": VAE(), "batch": lambda n: torch.rand(n, 1, 28, 28), "loss": loss, "optimizer": lambda p: optim.Adam(p, lr=1e-3)}


# --- Llama by hand
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, dim, heads, kv, hidden):
        super().__init__()
        self.heads, self.kv, self.hd = heads, kv, dim // heads
        self.wq = nn.Linear(dim, heads * self.hd, bias=False)
        self.wk = nn.Linear(dim, kv * self.hd, bias=False)
        self.wv = nn.Linear(dim, kv * self.hd, bias=False)
        self.wo = nn.Linear(heads * self.hd, dim, bias=False)
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False), nn.Linear(dim, hidden, bias=False)
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        h = self.n1(x)
        q = self.wq(h).view(b, t, self.heads, self.hd).transpose(1, 2)
        k = self.wk(h).view(b, t, self.kv, self.hd).transpose(1, 2)
        v = self.wv(h).view(b, t, self.kv, self.hd).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = k.repeat_interleave(self.heads // self.kv, dim=1)
        v = v.repeat_interleave(self.heads // self.kv, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).reshape(b, t, -1))
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Llama(nn.Module):
    def __init__(self, vocab=8000, dim=256, layers=3, heads=8, kv=2, t=256):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(LlamaBlock(dim, heads, kv, 688))
        self.norm = RMSNorm(dim)
        self.out = nn.Linear(dim, vocab, bias=False)
        hd = dim // heads
        inv = 1.0 / (10000 ** (torch.arange(0, hd, 2).float() / hd))
        freqs = torch.outer(torch.arange(t).float(), inv)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos", emb.cos(), persistent=False)
        self.register_buffer("sin", emb.sin(), persistent=False)

    def forward(self, ids, labels: Optional[Tensor] = None):
        x = self.tok(ids)
        t = ids.size(1)
        for layer in self.layers:
            x = layer(x, self.cos[:t], self.sin[:t])
        logits = self.out(self.norm(x)).float()
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1))
        return {"loss": loss}


def llama():
    def batch(n):
        ids = torch.randint(0, 8000, (n, 256))
        return {"ids": ids, "labels": ids}
    return Llama(), batch


# --- text classification with padding
class Classifier(nn.Module):
    def __init__(self, vocab=20000, dim=128, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Parameter(torch.zeros(1, 512, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.1, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(dim))
        self.head = nn.Linear(dim, 2)

    def forward(self, ids, mask, y):
        x = self.embed(ids) + self.pos[:, : ids.size(1)]
        x = self.encoder(x, src_key_padding_mask=mask)
        w = (~mask).unsqueeze(-1).float()
        x = (x * w).sum(1) / w.sum(1).clamp(min=1)
        return {"loss": F.cross_entropy(self.head(x), y, label_smoothing=0.1)}


def classifier():
    return Classifier(), lambda n: (torch.randint(1, 20000, (n, 128)), torch.zeros(n, 128, dtype=torch.bool), torch.randint(0, 2, (n,)))


# --- an image encoder that is frozen, and a head
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        for p in self.body.parameters():
            p.requires_grad = False
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        with torch.no_grad():
            f = self.body(x)
        return self.head(f)


def frozen():
    return Encoder(), lambda n: torch.randn(n, 3, 96, 96)


# --- translation with nn.TransformerDecoder
class Seq2Seq(nn.Module):
    def __init__(self, vocab=8000, dim=256):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 4, 512, batch_first=True), 2)
        self.dec = nn.TransformerDecoder(nn.TransformerDecoderLayer(dim, 4, 512, batch_first=True), 2)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        memory = self.enc(self.src(src) * math.sqrt(256))
        y = self.dec(self.tgt(tgt[:, :-1]), memory)
        logits = self.out(y)
        return {"loss": F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1), ignore_index=0)}


def seq2seq():
    return Seq2Seq(), lambda n: (torch.randint(1, 8000, (n, 64)), torch.randint(1, 8000, (n, 65)))


# --- a network with convolutions along time
class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(8 if i == 0 else 64, 64, 3, padding=2**i, dilation=2**i) for i in range(4)])
        self.norms = nn.ModuleList([nn.GroupNorm(8, 64) for _ in range(4)])
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        for c, n in zip(self.convs, self.norms):
            h = F.gelu(n(c(x)))
            x = h if x.shape[1] != 64 else x + h
        return self.out(x.mean(-1)).squeeze(-1)


def tcn():
    return TCN(), lambda n: torch.randn(n, 8, 128), None, lambda out, b: F.smooth_l1_loss(out, torch.zeros_like(out))


# --- recommendation: two towers
class Towers(nn.Module):
    def __init__(self, users=100000, items=50000, d=64):
        super().__init__()
        self.u, self.i = nn.Embedding(users, d), nn.Embedding(items, d)
        self.mlp = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        self.temperature = nn.Parameter(torch.tensor(0.07))

    def forward(self, u, i):
        a = F.normalize(self.mlp(self.u(u)), dim=-1)
        b = F.normalize(self.mlp(self.i(i)), dim=-1)
        logits = a @ b.t() / self.temperature
        target = torch.arange(logits.size(0), device=logits.device)
        return {"loss": (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2}


def towers():
    return Towers(), lambda n: (torch.randint(0, 100000, (n,)), torch.randint(0, 50000, (n,))), lambda p: torch.optim.Adam(p, lr=1e-3)


def dataset():
    class Pairs(torch.utils.data.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, i):
            return torch.randn(16), i % 4
    return {"model": nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4)), "batch": lambda n: torch.randn(n, 16)}


def half():
    return MLP((784, 2048, 10)).to(torch.bfloat16).cuda(), lambda n: torch.randn(n, 784, dtype=torch.bfloat16)


class SE(nn.Module):
    def __init__(self, c, r=4):
        super().__init__()
        self.fc = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // r, 1), nn.ReLU(True), nn.Conv2d(c // r, c, 1), nn.Sigmoid())

    def forward(self, x):
        return x * self.fc(x)


class MobileBlock(nn.Module):
    def __init__(self, i, o, s, t=4):
        super().__init__()
        h = i * t
        self.use_res = s == 1 and i == o
        self.conv = nn.Sequential(
            nn.Conv2d(i, h, 1, bias=False), nn.BatchNorm2d(h), nn.ReLU6(inplace=True),
            nn.Conv2d(h, h, 3, s, 1, groups=h, bias=False), nn.BatchNorm2d(h), nn.Hardswish(),
            SE(h), nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o),
        )

    def forward(self, x):
        return x + self.conv(x) if self.use_res else self.conv(x)


def mobile():
    m = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), MobileBlock(16, 16, 1), MobileBlock(16, 24, 2), MobileBlock(24, 24, 1), nn.AvgPool2d(4), nn.Flatten(), nn.LazyLinear(10) if False else nn.Linear(24 * 8 * 8, 10))
    return m, lambda n: torch.randn(n, 3, 128, 128)


class MoE(nn.Module):
    def __init__(self, d=128, experts=4):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d)) for _ in range(experts)])

    def forward(self, x):
        w = torch.softmax(self.gate(x), dim=-1)
        outs = torch.stack([e(x) for e in self.experts], dim=-1)
        return torch.einsum("bnde,bne->bnd", outs, w)


def moe():
    return MoE(), lambda n: torch.randn(n, 64, 128)


class Diffusion(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.t = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))
        self.inp = nn.Conv2d(3, d, 3, padding=1)
        self.b1 = nn.Sequential(nn.GroupNorm(8, d), nn.SiLU(), nn.Conv2d(d, d, 3, padding=1))
        self.b2 = nn.Sequential(nn.GroupNorm(8, d), nn.SiLU(), nn.Conv2d(d, d, 3, padding=1))
        self.out = nn.Conv2d(d, 3, 3, padding=1)
        self.d = d
        betas = torch.linspace(1e-4, 0.02, 1000)
        self.register_buffer("alphas", torch.cumprod(1 - betas, dim=0))

    def emb(self, t):
        half = self.d // 2
        f = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
        a = t[:, None].float() * f[None]
        return torch.cat([a.sin(), a.cos()], dim=-1)

    def forward(self, x):
        t = torch.randint(0, 1000, (x.shape[0],), device=x.device)
        noise = torch.randn_like(x)
        a = self.alphas[t].view(-1, 1, 1, 1)
        y = a.sqrt() * x + (1 - a).sqrt() * noise
        h = self.inp(y)
        h = h + self.b1(h) + self.t(self.emb(t))[:, :, None, None]
        h = h + self.b2(h)
        return {"loss": F.mse_loss(self.out(h), noise)}


def diffusion():
    return Diffusion(), lambda n: torch.randn(n, 3, 32, 32)


class GNN(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.l1, self.l2 = nn.Linear(d, d), nn.Linear(d, 7)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, adj):
        h = F.relu(torch.bmm(adj, self.l1(x)), inplace=True)
        h = self.drop(h)
        return F.log_softmax(torch.bmm(adj, self.l2(h)), dim=-1)


def gnn():
    return GNN(), lambda n: (torch.randn(n, 100, 64), torch.rand(n, 100, 100)), lambda p: torch.optim.AdamW([{"params": list(p), "lr": 1e-3}]), lambda out, b: -out.mean()


class Rec(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(32, 64, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


def gru():
    return Rec(), lambda n: torch.randn(n, 20, 32)


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 0)


class UsesCustom(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 512), nn.Linear(512, 64)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.b(Custom.apply(self.a(x))) * self.scale


def custom():
    return UsesCustom(), lambda n: torch.randn(n, 64)
