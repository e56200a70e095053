"""cuDNN's recurrent layers, and PyTorch's fused cells for CUDA, on the CPU."""

from __future__ import annotations

from typing import Any

RELU, TANH, LSTM, GRU = range(4)  # cudnnRNNMode_t


class Recurrent:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        C = torch._C
        self.fresh = C._dispatch_tls_local_include_set(), C._dispatch_tls_local_exclude_set()  # as outside of any operator
        self.kernels = {
            "_cudnn_rnn": self.forward,
            "_cudnn_rnn_backward": self.backward,
            "_thnn_fused_lstm_cell": self.lstm_cell,
            "_thnn_fused_lstm_cell_backward_impl": self.lstm_cell_backward,
            "_thnn_fused_gru_cell": self.gru_cell,
            "_thnn_fused_gru_cell_backward": self.gru_cell_backward,
        }
        self.whole = {"_cudnn_rnn_flatten_weight": self.flatten}

    def layers(self, x: Any, weights: Any, h: Any, c: Any, options: Any) -> Any:
        """Dropout between layers is left out: which numbers it took, backward would have to know."""
        VF = self.torch._VF
        mode, _, _, layers, batch_first, _, train, both_ways, lengths, biases = options
        call = {RELU: VF.rnn_relu, TANH: VF.rnn_tanh, LSTM: VF.lstm, GRU: VF.gru}[mode]
        state = (h, c) if mode == LSTM else h
        if lengths:
            got = call(x, self.torch.tensor(lengths, device="cpu"), state, list(weights), biases, layers, 0.0, train, both_ways)
        else:
            got = call(x, state, list(weights), biases, layers, 0.0, train, both_ways, batch_first)
        return got

    def forward(self, x: Any, weights: Any, stride: int, buffer: Any, h: Any, c: Any, *options: Any) -> Any:
        x, weights, h, c = self.widen(x, weights, h, c)
        out, *states = self.layers(x, weights, h, c, (*options[:9], stride in (4, 5)))
        return [out, *states, *[None] * (4 - len(states))]

    def backward(self, x: Any, weights: Any, stride: int, buffer: Any, h: Any, c: Any, out: Any, grad: Any, grad_h: Any, grad_c: Any, *options: Any) -> Any:
        torch = self.torch
        x, weights, h, c = self.widen(x, weights, h, c)
        with torch._C._ForceDispatchKeyGuard(*self.fresh), torch.enable_grad():
            x, h, *weights = leaves = [t.detach().clone().requires_grad_() for t in (x, h, *weights)]
            if c is not None:
                c = c.detach().clone().requires_grad_()
            got = self.layers(x, weights, h, c, (*options[:9], stride in (4, 5)))
            ends = [(o, g.to(o.dtype)) for o, g in zip(got, (grad, grad_h, grad_c)) if g is not None]
            of = torch.autograd.grad([o for o, _ in ends], [*leaves, *([c] if c is not None else [])], [g for _, g in ends], allow_unused=True)
        of_x, of_h, *of_weights = of[: len(leaves)]
        return [of_x, of_h, of[-1] if c is not None else None, of_weights]

    def widen(self, x: Any, weights: Any, h: Any, c: Any) -> Any:
        return x.float(), [w.float() for w in weights], h.float(), None if c is None else c.float()

    def flatten(self, side: Any, run: Any, args: Any, kwargs: Any) -> Any:
        """The weights move into one buffer, numbers and all."""
        before = [side.mirror.of(w).clone() for w in args[0]]
        out = run()
        for w, numbers in zip(args[0], before):
            side.mirror.of(w).copy_(numbers)
        return out

    # --- cells (aten/src/ATen/native/cuda/RNN.cu): the workspace has the gates for backward
    def lstm_cell(self, x: Any, h: Any, c: Any, x_bias: Any = None, h_bias: Any = None) -> Any:
        torch = self.torch
        i, f, g, o = self.sum(x, h, x_bias, h_bias).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        new = f * c.float() + i * g
        return [o * new.tanh(), new, torch.cat([i, f, g, o], 1)]

    def lstm_cell_backward(self, grad_h: Any, grad_c: Any, before: Any, after: Any, gates: Any, biased: bool) -> Any:
        torch = self.torch
        i, f, g, o = gates.float().chunk(4, 1)
        tanh = after.float().tanh()
        of_h = grad_h.float() if grad_h is not None else torch.zeros_like(tanh)
        of_c = of_h * o * (1 - tanh * tanh) + (grad_c.float() if grad_c is not None else 0)
        of = torch.cat([of_c * g * i * (1 - i), of_c * before.float() * f * (1 - f), of_c * i * (1 - g * g), of_h * tanh * o * (1 - o)], 1)
        return [of, of_c * f, of.sum(0) if biased else None]

    def gru_cell(self, x: Any, h: Any, before: Any, x_bias: Any = None, h_bias: Any = None) -> Any:
        xr, xz, xn = self.sum(x, None, x_bias, None).chunk(3, 1)
        hr, hz, hn = self.sum(h, None, h_bias, None).chunk(3, 1)
        r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
        n, before = (xn + r * hn).tanh(), before.float()
        return [n + z * (before - n), self.torch.cat([r, z, n, before, hn], 1)]

    def gru_cell_backward(self, grad: Any, gates: Any, biased: bool) -> Any:
        torch = self.torch
        r, z, n, before, hn = gates.float().chunk(5, 1)
        grad = grad.float()
        of_n = grad * (1 - z) * (1 - n * n)
        of_z, of_r = grad * (before - n) * z * (1 - z), of_n * hn * r * (1 - r)
        of_x, of_h = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
        return [of_x, of_h, grad * z, of_x.sum(0) if biased else None, of_h.sum(0) if biased else None]

    def sum(self, x: Any, h: Any, x_bias: Any, h_bias: Any) -> Any:
        total = x.float()
        for t in (h, x_bias, h_bias):
            total = total if t is None else total + t.float()
        return total
