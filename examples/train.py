"""Trains a small language model on one GPU: python train.py BATCH"""

import sys

import torch
from torch import nn

batch, length, vocabulary = int(sys.argv[1]), 1024, 50_257


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(768, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(tokens)))


print("training on", torch.cuda.get_device_name())
model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1, 4):
    tokens = torch.randint(vocabulary, (batch, length), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step)
