"""Records stages of a pipeline on an emulated card, whole, from before the model is built.

memorymark run --gpu h200 --gpus 8 -- python pipeline.py cases.jsonl FOLDER [ID...]

It is record.py for torch.distributed.pipelining: a stage is the model of transformers with some of its layers, given to
PipelineStage with the shapes of what comes in and goes out, so that nobody has to be asked for them. NCCL is emulated; whatever
a rank would learn from others at the beginning, the store makes up.
"""
import json, sys
import torch, transformers
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import record

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Alone(dist.Store):
    """A store at which nobody else comes: every value is there."""

    def set(self, key, value): pass
    def get(self, key): return bytes(128)  # an ncclUniqueId
    def wait(self, *args): pass
    def check(self, keys): return True
    def add(self, key, value): return value
    def set_timeout(self, timeout): pass


class Stage(torch.nn.Module):
    """A part of a decoder: layers, the embedding before the first and the head after the last."""

    def __init__(self, model, stages, rank):
        super().__init__()
        self.model, self.first, self.last = model.model, rank == 0, rank == len(stages) - 1
        begin = sum(stages[:rank])
        self.model.layers = self.model.layers[begin:begin + stages[rank]]
        if not self.first:
            self.model.embed_tokens = None
        if self.last:
            self.lm_head = model.lm_head
        else:
            self.model.norm = torch.nn.Identity()

    def forward(self, x):
        out = self.model(input_ids=x) if self.first else self.model(inputs_embeds=x)
        return self.lm_head(out.last_hidden_state) if self.last else out.last_hidden_state


def build(w, rank):
    config = dict(w["config"])
    cls = getattr(transformers, config.pop("architectures")[0])
    cfg = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    cfg._attn_implementation, cfg.use_cache = "sdpa", False
    model = cls(cfg).train()
    if w.get("checkpointing"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
    record.record(w)
    stage = Stage(model, w["parallel"]["stages"], rank).to(dtype)
    return stage.to("cuda"), model.loss_function, cfg, dtype


def schedule(w, rank, stage, cfg, dtype, loss):
    p = w["parallel"]
    one = w["batch"] // p["microbatches"]
    ids = torch.empty(one, w["sequence"], dtype=torch.long, device="meta")
    hidden = torch.empty(one, w["sequence"], cfg.hidden_size, dtype=dtype, device="meta")
    logits = torch.empty(one, w["sequence"], cfg.vocab_size, dtype=dtype, device="meta")
    part = PipelineStage(
        stage, rank, p["gpus"], torch.device("cuda"), input_args=hidden if rank else ids, output_args=logits if stage.last else hidden)
    return SCHEDULES[p.get("schedule", "1f1b")](part, p["microbatches"], loss_fn=lambda out, labels: loss(out, labels, cfg.vocab_size))


def steps(c):
    w, rank = c["workload"], c.get("rank", 0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=Alone(), rank=rank, world_size=w["parallel"]["gpus"], device_id=torch.device("cuda:0"))
    torch.manual_seed(0)
    stage, loss, cfg, dtype = build(w, rank)
    opt = torch.optim.AdamW(stage.parameters(), lr=1e-5, foreach=True)
    pipe = schedule(w, rank, stage, cfg, dtype, loss)
    ids = torch.randint(0, cfg.vocab_size, (w["batch"], w["sequence"]), device="cuda") if stage.first or stage.last else None
    for _ in range(record.STEPS):
        if stage.first:
            pipe.step(ids)
        elif stage.last:
            losses = []
            out = pipe.step(target=ids, losses=losses)
        else:
            pipe.step()
        opt.step()
        opt.zero_grad(set_to_none=True)
        yield


record.steps = steps

if __name__ == "__main__":
    record.main()
