# Modules of torch.nn that are made of others, for the evaluator alone: the operators that PyTorch
# 2.11 runs, in their order, with what stays alive between them. Paths of inference, and arguments
# that change which operators run, are left out; they fail.

import copy

import torch
from torch import nn
from torch.nn import functional as F


def _projected(query, key, value, weight, bias, size):
    """Queries, keys and values of one packed weight."""
    if key is value and query is key:
        whole = F.linear(query, weight, bias)
        whole = whole.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return whole[0], whole[1], whole[2]
    if key is value:
        first, others = weight.split([size, size * 2])
        first_bias, others_bias = (None, None) if bias is None else bias.split([size, size * 2])
        queries = F.linear(query, first, first_bias)
        whole = F.linear(key, others, others_bias)
        whole = whole.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return queries, whole[0], whole[1]
    one, two, three = weight.chunk(3)
    one_bias, two_bias, three_bias = (None, None, None) if bias is None else bias.chunk(3)
    return F.linear(query, one, one_bias), F.linear(key, two, two_bias), F.linear(value, three, three_bias)


def _as_mask(mask, like):
    """A mask of booleans becomes numbers that are added."""
    if mask is not None and mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
    return mask


class MultiheadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            raise NotImplementedError("this MultiheadAttention is not known")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim, device=device, dtype=dtype))
        if bias:
            self.in_proj_bias = nn.Parameter(torch.empty(3 * embed_dim, device=device, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        if query.dim() != 3:
            raise NotImplementedError("MultiheadAttention of one sample is not known")
        key_padding_mask, attn_mask = _as_mask(key_padding_mask, query), _as_mask(attn_mask, query)
        if self.batch_first:
            if key is value and query is key:
                query = key = value = query.transpose(1, 0)
            elif key is value:
                query, key = (x.transpose(1, 0) for x in (query, key))
                value = key
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        out, weights = self._attend(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
        if self.batch_first:
            return out.transpose(1, 0), weights
        return out, weights

    def _attend(self, query, key, value, key_padding_mask, need_weights, attn_mask, average, is_causal):
        length, samples, size = query.shape
        heads, width = self.num_heads, self.head_dim
        if is_causal and key_padding_mask is None and not need_weights:
            attn_mask = None
        elif attn_mask is not None:
            is_causal = False
        if key_padding_mask is not None:
            is_causal = False
        q, k, v = _projected(query, key, value, self.in_proj_weight, self.in_proj_bias, size)
        if attn_mask is not None and attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)
        q = q.view(length, samples * heads, width).transpose(0, 1)
        k = k.view(k.shape[0], samples * heads, width).transpose(0, 1)
        v = v.view(v.shape[0], samples * heads, width).transpose(0, 1)
        sources = k.size(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.view(samples, 1, 1, sources).expand(-1, heads, -1, -1).reshape(samples * heads, 1, sources)
            attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            scaled = q * (1.0 / width) ** 0.5
            if attn_mask is not None:
                weights = torch.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
            else:
                weights = torch.bmm(scaled, k.transpose(-2, -1))
            weights = F.softmax(weights, dim=-1)
            if dropout > 0.0:
                weights = F.dropout(weights, p=dropout)
            out = torch.bmm(weights, v)
            out = out.transpose(0, 1).contiguous().view(length * samples, size)
            out = F.linear(out, self.out_proj.weight, self.out_proj.bias)
            out = out.view(length, samples, out.size(1))
            weights = weights.view(samples, heads, length, sources)
            if average:
                weights = weights.mean(dim=1)
            return out, weights
        if attn_mask is not None:
            if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
                attn_mask = attn_mask.unsqueeze(0)
            else:
                attn_mask = attn_mask.view(samples, heads, -1, sources)
        q = q.view(samples, heads, length, width)
        k = k.view(samples, heads, sources, width)
        v = v.view(samples, heads, sources, width)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal)
        out = out.permute(2, 0, 1, 3).contiguous().view(samples * length, size)
        out = F.linear(out, self.out_proj.weight, self.out_proj.bias)
        return out.view(length, samples, out.size(1)), None


def _activation(given):
    return {"relu": F.relu, "gelu": F.gelu}[given] if isinstance(given, str) else given


def _copies(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


def _is_causal(mask, given):
    """Whether a mask hides what comes later. Without the hint its numbers decide."""
    if mask is None or given is not None:
        return bool(given)
    raise NotImplementedError("whether a mask is causal is not known; give is_causal=True or False with it")


class TransformerEncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first)
        self.linear1 = nn.Linear(d_model, dim_feedforward, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(dim_feedforward, d_model, bias=bias)
        self.norm_first = norm_first
        self.norm1 = nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias)
        self.norm2 = nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        src_key_padding_mask, src_mask = _as_mask(src_key_padding_mask, src), _as_mask(src_mask, src)
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            x = x + self._feed(self.norm2(x))
        else:
            x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
            x = self.norm2(x + self._feed(x))
        return x

    def _attend(self, x, mask, padding, is_causal):
        x = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _feed(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)


class TransformerEncoder(nn.Module):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        src_key_padding_mask, mask = _as_mask(src_key_padding_mask, src), _as_mask(mask, src)
        output = src
        is_causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output


class TransformerDecoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first)
        self.linear1 = nn.Linear(d_model, dim_feedforward, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(dim_feedforward, d_model, bias=bias)
        self.norm_first = norm_first
        self.norm1 = nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias)
        self.norm2 = nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias)
        self.norm3 = nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2, self.dropout3 = nn.Dropout(dropout), nn.Dropout(dropout), nn.Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        x = tgt
        if self.norm_first:
            x = x + self._attend(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._look(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            x = x + self._feed(self.norm3(x))
        else:
            x = self.norm1(x + self._attend(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
            x = self.norm2(x + self._look(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
            x = self.norm3(x + self._feed(x))
        return x

    def _attend(self, x, mask, padding, is_causal):
        x = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False)[0]
        return self.dropout1(x)

    def _look(self, x, memory, mask, padding, is_causal):
        x = self.multihead_attn(x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False)[0]
        return self.dropout2(x)

    def _feed(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)


class TransformerDecoder(nn.Module):
    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        output = tgt
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
            )
        if self.norm is not None:
            output = self.norm(output)
        return output


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """With smoothing: the names are those that at::cross_entropy_loss_label_smoothing has until it returns."""
    if weight is not None or reduction != "mean" or target.dtype != torch.long:
        raise NotImplementedError("cross_entropy with weights, without a mean, or of probabilities is not known")
    logs = F.log_softmax(input, 1)
    loss = F.nll_loss(logs, target, ignore_index=ignore_index)
    smooth = -logs.sum(1)
    ignored = target == ignore_index
    smooth.masked_fill_(ignored, 0.0)
    counted = ~ignored
    spread = smooth.sum() / counted.sum()
    return (1 - label_smoothing) * loss + spread * (label_smoothing / input.size(1))
