"""Records whole processes of training loops: record.py CASES.jsonl FOLDER.

Each case runs in a fork of its own. FOLDER/ID.pickle gets every allocation from before the model is moved to the card
to the end of the last step; peaks are printed, a JSON line a case. Keys of a case:

  id, config (a config.json with architectures), batch, sequence or image, accumulate, steps (2), dtype, lora
  trainer         hf, lightning, accelerate, or object for a loop by hand
  args            of TrainingArguments, lightning.Trainer or Accelerator
  loop            of one by hand: outputs, zero_grad
  optimizer       of torch.optim, or bnb.NAME of bitsandbytes; optimizer_args
  mask            false for a batch without an attention mask
  nostacks        true where recording stacks fails (checkpointing)
"""

import json
import os
import sys
import tempfile
import traceback

import torch
import transformers


class Rows(torch.utils.data.Dataset):
    def __init__(self, case, vocab):
        self.case, self.vocab = case, vocab
        self.classify = "Classification" in case["config"]["architectures"][0]

    def __len__(self):
        return self.case["batch"] * self.case.get("accumulate", 1) * 4

    def __getitem__(self, i):
        if "image" in self.case:
            return {"pixel_values": torch.zeros(3, self.case["image"], self.case["image"]), "labels": torch.tensor(i % 2)}
        ids = torch.randint(5, self.vocab, (self.case["sequence"],), generator=torch.Generator().manual_seed(i))
        labels = torch.tensor(i % 2) if self.classify else ids.clone()
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def build(case):
    keys = dict(case["config"])
    architecture = keys.pop("architectures")[0]
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    model = getattr(transformers, architecture)(config)
    if case.get("lora"):
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(**case["lora"]))
    if case.get("dtype") == "bf16":
        model = model.to(torch.bfloat16)
    return model, Rows(case, getattr(config, "vocab_size", 0))


def optimizer(case, parameters):
    name, arguments = case.get("optimizer", "AdamW"), case.get("optimizer_args", {"lr": 1e-5})
    if name.startswith("bnb."):
        import bitsandbytes.optim

        return getattr(bitsandbytes.optim, name[4:])(parameters, **arguments)
    return getattr(torch.optim, name)(parameters, **arguments)


class Recording:
    def __init__(self, path, steps, stacks):
        self.path, self.steps, self.peaks = path, steps, []
        torch.cuda.memory._record_memory_history("all", context="all" if stacks else None, stacks="python", max_entries=1000000)

    def begin(self, *_, **__):
        torch.cuda.reset_peak_memory_stats()

    def end(self, *_, **__):
        self.peaks.append((torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()))
        if len(self.peaks) == self.steps:
            torch.cuda.memory._dump_snapshot(self.path)
            torch.cuda.memory._record_memory_history(None)


def with_trainer(case, model, rows, recording):
    class Watch(transformers.TrainerCallback):
        on_step_begin, on_step_end = staticmethod(recording.begin), staticmethod(recording.end)

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=3, per_device_train_batch_size=case["batch"], gradient_accumulation_steps=case.get("accumulate", 1),
            report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, **case.get("args", {}),
        )  # fmt: skip
        transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[Watch()]).train()


def with_lightning(case, model, rows, recording):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            return self.model(**batch).loss

        def configure_optimizers(self):
            return optimizer(case, self.parameters())

    class Watch(lightning.Callback):
        on_train_batch_start, on_train_batch_end = staticmethod(recording.begin), staticmethod(recording.end)

    trainer = lightning.Trainer(
        accelerator="gpu", devices=1, max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[Watch()], **case.get("args", {}),
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(rows, batch_size=case["batch"]))


def with_accelerate(case, model, rows, recording):
    import accelerate

    accelerator = accelerate.Accelerator(**case.get("args", {}))
    loader = torch.utils.data.DataLoader(rows, batch_size=case["batch"])
    model, opt, loader = accelerator.prepare(model, optimizer(case, model.parameters()), loader)
    model.train()
    for i, batch in enumerate(loader):
        if i == 3:
            break
        recording.begin()
        opt.zero_grad()
        outputs = model(**batch)
        loss = outputs.loss
        accelerator.backward(loss)
        opt.step()
        recording.end()


def by_hand(case, model, rows, recording):
    loop = {"outputs": "dropped", "zero_grad": "after-step", **case.get("loop", {})}
    model.to("cuda").train()
    opt = optimizer(case, [p for p in model.parameters() if p.requires_grad])
    batch = next(iter(torch.utils.data.DataLoader(rows, batch_size=case["batch"])))
    same = not rows.classify and case["config"]["model_type"] != "t5"  # labels are the ids themselves
    left = {"labels"} if same else set()
    left |= set() if case.get("mask", True) else {"attention_mask"}
    batch = {key: value.to("cuda") for key, value in batch.items() if key not in left}
    if same:
        batch["labels"] = batch["input_ids"]
    for _ in range(case.get("steps", 2)):
        recording.begin()
        if loop["zero_grad"] == "before-forward":
            opt.zero_grad()
        out = model(**batch)
        loss = out.loss
        if loop["outputs"] == "dropped":
            del out
        if loop["zero_grad"] == "before-backward":
            opt.zero_grad()
        loss.backward()
        opt.step()
        if loop["zero_grad"] == "after-step":
            opt.zero_grad()
        recording.end()


loops = {"hf": with_trainer, "lightning": with_lightning, "accelerate": with_accelerate, "object": by_hand}


def run(case, path):
    torch.manual_seed(0)
    model, rows = build(case)
    recording = Recording(path, case.get("steps", 2), not case.get("nostacks"))
    loops[case["trainer"]](case, model, rows, recording)
    return {"peak_allocated": [a for a, _ in recording.peaks], "peak_reserved": [r for _, r in recording.peaks]}


def main():
    with open(sys.argv[1]) as file:
        cases = [json.loads(line) for line in file]
    for case in cases:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                answer = {"measured": run(case, os.path.join(sys.argv[2], case["id"] + ".pickle"))}
            except BaseException:
                answer = {"error": traceback.format_exc()[-800:]}
            print(json.dumps({"id": case["id"], **answer}), flush=True)
            os._exit("error" in answer)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
