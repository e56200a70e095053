"""Lightning's Tuner.scale_batch_size, with its defaults: from 2 up, three steps a trial, 5 % off in the end."""

from __future__ import annotations

import logging
import tempfile
import warnings

import pytorch_lightning as lightning
import torch
from pytorch_lightning.tuner import Tuner
from torch.utils.data import DataLoader

from finding import Inputs
from workload import Batch, Workload

VERSION = lightning.__version__

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="pytorch_lightning")


class Training(lightning.LightningModule):
    """The workload as Lightning wants it."""

    def __init__(self, workload: Workload, inputs: Inputs) -> None:
        super().__init__()
        self.batch_size = 2  # Tuner starts there and sets it
        self.workload = workload
        self.inputs = inputs
        self.model = workload.build()

    def training_step(self, batch: Batch, index: int) -> torch.Tensor:
        return self.model(**batch).loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.workload.optimizer(self.model)

    def train_dataloader(self) -> DataLoader[Batch]:
        return self.inputs.loader(self.batch_size)


def power(workload: Workload, inputs: Inputs) -> int:
    return scale(workload, inputs, "power")


def binsearch(workload: Workload, inputs: Inputs) -> int:
    return scale(workload, inputs, "binsearch")


def scale(workload: Workload, inputs: Inputs, mode: str) -> int:
    with tempfile.TemporaryDirectory() as folder:  # Tuner saves the model there and restores it
        trainer = lightning.Trainer(
            accelerator="gpu" if workload.device == "cuda" else "cpu",
            devices=1,
            max_epochs=1,
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        answer = Tuner(trainer).scale_batch_size(Training(workload, inputs), mode=mode)
    assert answer is not None  # it is with fast_dev_run only
    return answer
