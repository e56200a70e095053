"""A Fourier neural operator on a grid of 85 x 85: 17 is a factor that cuFFT has no kernel for."""
import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self, c, k):
        super().__init__()
        self.k = k
        self.w = nn.Parameter(torch.randn(2, c, c, k, k, dtype=torch.cfloat) / c)

    def forward(self, x):
        k = self.k
        f = torch.fft.rfft2(x)
        o = torch.zeros(x.size(0), x.size(1), x.size(2), x.size(3) // 2 + 1, dtype=torch.cfloat, device=x.device)
        o[:, :, :k, :k] = torch.einsum("bixy,ioxy->boxy", f[:, :, :k, :k], self.w[0])
        o[:, :, -k:, :k] = torch.einsum("bixy,ioxy->boxy", f[:, :, -k:, :k], self.w[1])
        return torch.fft.irfft2(o, s=x.shape[-2:])


class Operator(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.i = nn.Conv2d(3, c, 1)
        self.s = nn.ModuleList([Spectral(c, 10) for _ in range(3)])
        self.w = nn.ModuleList([nn.Conv2d(c, c, 1) for _ in range(3)])
        self.o = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        x = self.i(x)
        for a, b in zip(self.s, self.w):
            x = nn.functional.gelu(a(x) + b(x))
        return self.o(x)


m = Operator().cuda()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(4):
    x = torch.randn(8, 3, 85, 85, device="cuda")
    y = torch.randn(8, 1, 85, 85, device="cuda")
    loss = ((m(x) - y).flatten(1).norm(dim=1) / y.flatten(1).norm(dim=1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
w = torch.randn(4, 16000, device="cuda", requires_grad=True)
for n in (512, 1024):
    s = torch.stft(w, n, n // 4, window=torch.hann_window(n, device="cuda"), return_complex=True).abs()
    s.log1p().mean().backward()
