"""The Python in the documents that users read: every block runs, on an emulated
GPU, in addition to what the text takes for granted."""

import re
import unittest

from test_memorymark import ROOT, emulated

PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)

# How a block begins that is a file of its own. The tests of the console blocks run it.
FILE = "# train.py\n"

# A reader's own module, which the example of a test imports.
MODULE = """
import torch


class Model(torch.nn.Linear):
    def __init__(self):
        super().__init__(8, 8)

    def fill_cache(self):
        self.cache = torch.zeros(8, 8, device="cuda")


def train_one_step(model, batch):
    model(torch.ones(batch, 8, device="cuda")).sum().backward()
"""

# A reader's own model, data and Trainer.
READERS = """
import torch, transformers

config = transformers.BertConfig(num_hidden_layers=1, num_labels=2)
dataset = [{"input_ids": [1] * n, "labels": 0} for n in (8, 8, 8, 8)]
build_model = lambda: transformers.BertForSequenceClassification(config)
model = build_model()
args = transformers.TrainingArguments("out", max_steps=1, report_to=[], disable_tqdm=True, save_strategy="no")
trainer = transformers.Trainer(model, args, train_dataset=dataset)


def train(model):
    ids = torch.ones(4, 8, dtype=torch.long, device="cuda")
    model.cuda()(input_ids=ids, labels=ids[:, 0]).loss.backward()

"""


class Guide(unittest.TestCase):
    def test_every_block(self):
        ran = 0
        own = (ROOT / "docs" / "guide" / "my-own-model.md").read_text(encoding="utf-8")
        train = next(b for b in BLOCK.findall(own) if b.startswith(FILE))
        for page in PAGES:
            blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
            blocks = [b for b in blocks if not b.startswith(FILE)]
            if not blocks:
                continue
            with self.subTest(page.name):
                program = READERS + "\n".join(blocks) + "\nprint('every block ran')\n"
                self.assertIn("every block ran", emulated(program, files={"train.py": train, "mymodel.py": MODULE}))
            ran += len(blocks)
        self.assertGreater(ran, 5)


if __name__ == "__main__":
    unittest.main()
