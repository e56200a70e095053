"""Records training on batches of different lengths: record.py CASES.jsonl FOLDER.

A case is {"id", "workload", "batches"}: batches are the tokens of each sample, a list a batch, which are padded to the
longest as collators do it. Each case runs in a fork of its own. FOLDER/ID.pickle gets every allocation; a line with the
peaks of each step, as the allocator's statistics have them, is printed. On a card that is not there:

    memorymark run --gpu h200 -- python record.py cases.jsonl FOLDER
"""

import contextlib
import json
import os
import sys
import tempfile
import traceback

import torch
import transformers


class Samples(torch.utils.data.Dataset):
    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return self.lengths[i]


def collate(classify, lengths):
    longest = max(lengths)
    ids, mask = torch.zeros(len(lengths), longest, dtype=torch.long), torch.zeros(len(lengths), longest, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.arange(5, 5 + length)
        mask[row, :length] = 1
    labels = torch.zeros(len(lengths), dtype=torch.long) if classify else ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class Recording:
    def __init__(self, path, steps):
        self.path, self.steps, self.peaks = path, steps, []
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=1000000)

    def begin(self, *_, **__):
        torch.cuda.reset_peak_memory_stats()

    def end(self, *_, **__):
        self.peaks.append((torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()))
        if len(self.peaks) == self.steps:
            torch.cuda.memory._dump_snapshot(self.path)


def plain(w, model, loader, recording):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    cast = torch.autocast("cuda", torch.bfloat16, enabled=w.get("precision") == "amp-bf16")

    def step(batch):
        with cast:
            out = model(**batch)
            loss = out.loss
        del out
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for batch in loader:
        inputs = {key: value.cuda() for key, value in batch.items()}
        recording.begin()
        step(inputs)
        recording.end()


def accelerate(w, model, loader, recording):
    from accelerate import Accelerator

    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-5), loader)
    for batch in loader:
        recording.begin()
        optimizer.zero_grad()
        outputs = model(**batch)
        loss = outputs.loss
        accelerator.backward(loss)
        optimizer.step()
        recording.end()


def trainer(w, model, loader, recording):
    class Watch(transformers.TrainerCallback):
        on_step_begin, on_step_end = staticmethod(recording.begin), staticmethod(recording.end)

    class InOrder(transformers.Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loader)

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=recording.steps, gradient_accumulation_steps=w.get("accumulate", 1), report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, bf16=w.get("precision") == "amp-bf16",
        )  # fmt: skip
        InOrder(model, arguments, train_dataset=loader.dataset, callbacks=[Watch()]).train()


def run(case, path):
    torch.manual_seed(0)
    w = case["workload"]
    recording = Recording(path, len(case["batches"]) // w.get("accumulate", 1))
    keys = dict(w["config"])
    architecture = keys.pop("architectures")[0]
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    loop = {"plain": plain, "trainer": trainer, "accelerate": accelerate}[w.get("loop", "plain")]
    make = getattr(transformers, architecture)  # its module is imported here, on the CPU
    with torch.device("cuda") if loop is plain else contextlib.nullcontext():
        model = make(config).train()
    lengths = [length for batch in case["batches"] for length in batch]
    classify = "Classification" in architecture
    loader = torch.utils.data.DataLoader(Samples(lengths), batch_size=w["batch"], collate_fn=lambda rows: collate(classify, rows))
    loop(w, model, loader, recording)
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
            print(json.dumps({**case, **answer}), flush=True)
            os._exit("error" in answer)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
