"""The package against the program that MEMORYMARK_BINARY names; recording and
callbacks on an emulated GPU, with the PyTorch that the tests have."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import memorymark
from memorymark import _program

ROOT = pathlib.Path(__file__).parents[2]


def emulated(program: str, gpu: str = "t4", files=None) -> str:
    """What a program prints, on standard output and standard error, on a GPU
    that is not there, with files next to it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**(files or {}), "program.py": textwrap.dedent(program)}.items():
            (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
        file = os.path.join(folder, "program.py")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run(
            [_program.path(), "run", "--gpu", gpu, "--", sys.executable, file],
            cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if done.returncode:
            raise AssertionError(done.stdout)
        return done.stdout


class Questions(unittest.TestCase):
    def test_predict(self):
        p = memorymark.predict("bert", batch=8, gpu="a10", picture=True)
        self.assertTrue(p.fits)
        self.assertEqual(len(p.steps), 3)
        self.assertEqual(p.json["steps"][2]["peak_allocated"], p.steps[2].peak_allocated)
        self.assertEqual(sum(vars(p.breakdown).values()) - p.breakdown.total, p.breakdown.total)
        self.assertIn("<svg", p._repr_html_())
        self.assertEqual(p.verdict, "fits")
        tight = memorymark.predict("gpt2", batch=90, gpu="a10")
        self.assertEqual(tight.verdict, "tight")
        self.assertLess(tight.limit - tight.peak_reserved, tight.margin)
        self.assertTrue(str(tight).startswith("fits tightly on a10: "))

    def test_plan(self):
        p = memorymark.plan("gpt2", mine="rtx-4090 x2", samples="1M")
        self.assertIsNone(p.cheapest)
        self.assertEqual(p.fastest.gpus, 2)
        self.assertIn("optimizer.step()", p.fastest.recipe["program"])
        self.assertIn("fastest: 2 × rtx-4090", str(p))
        p = memorymark.plan("llama-3.1-8b", cards="rtx-4060", max_gpus=1, full=True)
        self.assertEqual(p.options, [])
        self.assertIn(" with batch 64 needs ", p.misfits[0]["reason"])

    def test_fit(self):
        self.assertEqual(memorymark.fit("gpt2", gpu="a10").verdict, "fits")
        tight = memorymark.fit("gpt2", gpu="a10", batch=90)
        self.assertTrue(tight.fits)
        self.assertEqual(str(tight), "gpt2 fits a10 as it is, with less than a margin to spare")
        f = memorymark.fit("gpt2", gpu="t4", batch=128)
        self.assertFalse(f.fits)
        self.assertEqual(f.options[0].batch * f.options[0].accumulate, 128)
        self.assertEqual((f.verdict, f.options[0].verdict), ("does not fit", "fits"))
        self.assertIn("gpt2 does not fit t4 as it is; it does with ", str(f))
        self.assertIn(" + ".join(f.options[0].changes), str(f))
        f = memorymark.fit("llama-3.1-8b", gpu="rtx-4060", full=True)
        self.assertEqual(str(f), "llama-3.1-8b does not fit rtx-4060, and no change makes it fit")

    def test_changes(self):
        took = {"memory": {"reserved_bytes": 1 << 30}, "speed": {"samples_per_second": 2.0}}
        answer = {"model": "gpt2", "gpu": "t4", "fits": False, "verdict": "x", "options": [
            {**took, "changes": [{"label": "half the batch", "patch": {"batch": 64}}, {"label": "checkpointing", "patch": {"checkpointing": True}}]},
            {**took, "changes": [{"label": "8-bit AdamW", "patch": {"optimizer": "adamw-8bit"}}], "verdict": "tight"},
        ]}
        f = memorymark.Fit.of(answer)
        self.assertEqual([o.changes for o in f.options], [["half the batch", "checkpointing"], ["8-bit AdamW"]])
        self.assertEqual([o.patch for o in f.options], [{"batch": 64, "checkpointing": True}, {"optimizer": "adamw-8bit"}])
        self.assertEqual(str(f), "gpt2 does not fit t4 as it is; it does with half the batch + checkpointing, or with 8-bit AdamW (tight)")
        self.assertEqual(repr(f.options[0]), "<Option: half the batch + checkpointing>")
        self.assertIn("<td style='text-align:left'>8-bit AdamW (tight)</td>", f._repr_html_())

    def test_answers_show_themselves(self):
        plan = memorymark.plan("gpt2", mine="rtx-4090", samples="1M")
        fit = memorymark.fit("gpt2", gpu="t4", batch=128)
        explained = memorymark.explain(ROOT / "examples" / "gpt2_oom.pickle.xz")
        for answer in (
            memorymark.predict("bert", gpu="a10"), memorymark.predict("llama-3.1-8b", gpu="t4"),
            memorymark.largest_batch("bert", gpu="a10"), plan, plan.options[0], fit, fit.options[0], explained,
        ):
            self.assertRegex(repr(answer), rf"^<{type(answer).__name__}: .{{10,250}}>$")
            self.assertIn("<", answer._repr_html_())
            self.assertNotIn("\n", repr(answer))
        self.assertIn("<td style='text-align:left'>1 × rtx-4090</td>", plan._repr_html_())
        self.assertIn("days", str(plan.options[0]))
        for shown in (fit._repr_html_(), fit.options[0]._repr_html_(), str(fit.options[0])):
            self.assertNotRegex(shown, r"\bdays\b|\$")  # the question does not say how long a run is
        self.assertIn("<th style='text-align:left'>tokens/s</th>", fit._repr_html_())
        self.assertIn("<pre>import torch\n", plan.fastest._repr_html_())

    def test_dir_lists_what_is_for_users(self):
        self.assertEqual(dir(memorymark), sorted(memorymark.__all__))
        self.assertIn("TrainerCallback", dir(memorymark))

    def test_what_does_not_fit_is_an_answer(self):
        p = memorymark.predict("llama-3.1-8b", gpu="t4", precision="amp-fp16", checkpointing=True)
        self.assertFalse(p.fits)
        self.assertEqual(p.out_of_memory.limit, p.limit)
        self.assertRegex(str(p), r"^does not fit t4: \d+\.\d\d MiB requested with 1\d\.\d\d GiB reserved of 14.42 GiB$")

    def test_largest_batch(self):
        a = memorymark.largest_batch("gpt2", gpu="rtx-4090", precision="amp-bf16", config={"n_layer": 2})
        self.assertGreater(a.optimal_batch_size, a.current_batch_size)
        self.assertTrue(memorymark.predict("gpt2", gpu="rtx-4090", precision="amp-bf16", config={"n_layer": 2}, batch=a.optimal_batch_size).fits)
        self.assertIn("<table>", a._repr_html_())

    def test_errors_are_the_programs(self):
        with self.assertRaisesRegex(memorymark.MemoryMarkError, 'model "brt" is not in the catalog') as e:
            memorymark.predict("brt")
        self.assertIn("memorymark models", e.exception.hint)
        with self.assertRaisesRegex(memorymark.MemoryMarkError, "not a top-level function in a file"):
            memorymark.largest_batch(lambda: None)

    def test_explain(self):
        x = memorymark.explain(ROOT / "examples" / "gpt2_oom.pickle.xz")
        self.assertIn("Out of memory at event", str(x))
        self.assertIn("<svg", x._repr_html_())

    def test_a_program_that_is_gone(self):
        before = os.environ.get("MEMORYMARK_BINARY")
        os.environ["MEMORYMARK_BINARY"] = "/nowhere/memorymark"
        try:
            with self.assertRaisesRegex(memorymark.MemoryMarkError, "which is not a file"):
                memorymark.predict("bert")
        finally:
            del os.environ["MEMORYMARK_BINARY"]
            if before is not None:
                os.environ["MEMORYMARK_BINARY"] = before


class Recording(unittest.TestCase):
    def test_a_run_that_dies_leaves_a_snapshot(self):
        said = emulated("""
            import torch, memorymark
            try:
                with memorymark.record("oom.pickle"):
                    torch.ones(1 << 20, device="cuda")
                    torch.empty(64 << 30, device="cuda")
            except torch.OutOfMemoryError:
                print("died")
            print(memorymark.explain("oom.pickle"))
        """)
        self.assertIn("died", said)
        self.assertRegex(said, r"Out of memory at event \d+  256.00 GiB requested by")

    def test_the_first_steps(self):
        said = emulated("""
            import torch, memorymark
            model = torch.nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters())
            with memorymark.record("steps.pickle", steps=2):
                for _ in range(5):
                    model(torch.ones(4, 8, device="cuda")).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
            print(memorymark.explain("steps.pickle"))
        """)
        self.assertIn("2 optimizer steps", said)


class Callbacks(unittest.TestCase):
    """In a real Trainer, on an emulated GPU."""

    PROGRAM = """
        import torch, transformers, memorymark
        from transformers import Trainer, TrainingArguments

        config = transformers.BertConfig(num_hidden_layers=2, num_labels=3)
        model = transformers.BertForSequenceClassification(config)
        lengths = [128] * 64
        PREPARE

        class Samples(torch.utils.data.Dataset):
            def __len__(self):
                return len(lengths)

            def __getitem__(self, i):
                return {"input_ids": torch.ones(lengths[i], dtype=torch.long), "labels": 0}

        class InOrder(Trainer):
            def _get_train_sampler(self, *_):
                return torch.utils.data.SequentialSampler(self.train_dataset)

        args = TrainingArguments("out", per_device_train_batch_size=8, max_steps=4, bf16=True, report_to=[], disable_tqdm=True, save_strategy="no")
        callback = memorymark.TrainerCallback(ARGUMENTS)
        InOrder(model, args, train_dataset=Samples(), callbacks=[callback]).train()
        print(callback.watch.metrics())
    """

    def run_with(self, arguments: str = "", prepare: str = "", gpu: str = "a10") -> str:
        return emulated(self.PROGRAM.replace("PREPARE", prepare).replace("ARGUMENTS", arguments), gpu)

    def test_prediction_and_outcome_agree(self):
        said = self.run_with('snapshot="first.pickle", steps=2')
        self.assertRegex(said, r"memorymark: the first 2 steps took \d+\.\d+ MiB, \d+\.\d+ MiB was predicted \([+-]0\.0\d %\)")
        self.assertIn("memorymark/predicted_allocated_gib", said)
        self.assertNotIn("no prediction", said)

    def test_adapters(self):
        lora = 'import peft; model = peft.get_peft_model(model.bfloat16(), peft.LoraConfig(r=8, target_modules=["query", "value"], task_type="SEQ_CLS"))'
        self.assertRegex(self.run_with(prepare=lora), r"was predicted \([+-]0\.\d\d %\)")

    def test_the_largest_batch_is_predicted(self):
        said = self.run_with(prepare="lengths = [64] * 8 + [256] * 24")
        self.assertRegex(said, r"was predicted \([+-]0\.\d\d %\)")

    def test_it_warns_on_the_card_that_is_here(self):
        filler = "filler = torch.empty(21 << 30, dtype=torch.uint8, device='cuda'); lengths = [512] * 64"
        with self.assertRaisesRegex(AssertionError, "this will run out of memory: does not fit a10(?s:.)*OutOfMemoryError"):
            self.run_with(prepare=filler)

    def test_it_never_breaks_a_run(self):
        said = self.run_with('snapshot="/nowhere/first.pickle", gpu="no-such-card"')
        self.assertIn("no prediction", said)
        self.assertIn("could not be written", said)


class Precision(unittest.TestCase):
    # Each in a process of its own: PyTorch refuses to mix the two ways to set the flags.
    PROGRAM = """
        import os, torch
        from memorymark.workload import of_precision

        texts, images = torch.nn.Linear(2, 2), torch.nn.Conv2d(3, 2, 1)
        for setting in SETTINGS:
            if os.fork():
                os.wait()
                continue
            exec(setting)
            print(of_precision(texts, None), of_precision(images, None), flush=True)
            os._exit(0)
    """

    def test_tf32_is_recognized(self):
        expected = {
            "pass": "fp32 tf32",  # convolutions are in TF32 unless the user objects
            "torch.set_float32_matmul_precision('high')": "tf32 tf32",
            "torch.backends.cudnn.allow_tf32 = False": "fp32 fp32",
            "torch.backends.cuda.matmul.allow_tf32 = True": "tf32 tf32",
            "if hasattr(torch.backends, 'fp32_precision'): torch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
            "else: torch.set_float32_matmul_precision('high')": "tf32 tf32",
        }
        program = textwrap.dedent(self.PROGRAM).replace("SETTINGS", repr(list(expected)))
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.stdout.splitlines(), list(expected.values()))


class Lightning(unittest.TestCase):
    """In Lightning's real Trainer, on an emulated GPU."""

    PROGRAM = """
        import torch, transformers, memorymark
        import pytorch_lightning as pl
        from pytorch_lightning.loggers import CSVLogger

        class Classifier(pl.LightningModule):
            def __init__(self):
                super().__init__()
                config = transformers.BertConfig(num_hidden_layers=2, num_labels=3)
                self.model = transformers.BertForSequenceClassification(config)

            def training_step(self, batch, i):
                return self.model(input_ids=batch, labels=batch[:, 0]).loss

            def configure_optimizers(self):
                return OPTIMIZER

        data = torch.utils.data.DataLoader(torch.ones(64, SEQUENCE, dtype=torch.long), batch_size=8)
        callback = memorymark.LightningCallback(CALLBACK)
        trainer = pl.Trainer(
            accelerator="gpu", devices=1, callbacks=[callback], logger=CSVLogger("logs"), log_every_n_steps=1,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, TRAINER
        )
        module = Classifier()
        PREPARE
        trainer.fit(module, data)
        trainer.logger.save()
        print(open(trainer.logger.log_dir + "/metrics.csv").read())
        SUFFIX
    """

    def run_with(self, trainer="max_steps=4", gpu="a10", **parts: str) -> str:
        parts = {
            "TRAINER": trainer, "CALLBACK": "", "PREPARE": "", "SUFFIX": "", "SEQUENCE": "128",
            "OPTIMIZER": "torch.optim.AdamW(self.parameters())", **parts,
        }
        program = self.PROGRAM
        for name, code in parts.items():
            program = program.replace(name, code)
        return emulated(program, gpu)

    def test_prediction_and_outcome_agree(self):
        said = self.run_with(
            'max_steps=4, precision="bf16-mixed", gradient_clip_val=1.0',
            CALLBACK='snapshot="first.pickle", steps=2',
            SUFFIX='print(memorymark.explain("first.pickle"))',
        )
        self.assertRegex(said, r"memorymark: the first 2 steps took \d+\.\d+ MiB, \d+\.\d+ MiB was predicted \([+-]0\.0\d %\)")
        self.assertIn("memorymark/predicted_allocated_gib", said)
        self.assertIn("2 optimizer steps", said)

    def test_optimizers(self):
        for optimizer in ("SGD(self.parameters(), lr=0.1, momentum=0.9)", "Adam(self.parameters(), foreach=False)"):
            with self.subTest(optimizer):
                said = self.run_with(OPTIMIZER=f"torch.optim.{optimizer}")
                self.assertRegex(said, r"was predicted \([+-]0\.0\d %\)")

    def test_accumulated_batches_are_one_step(self):
        said = self.run_with("max_steps=3, accumulate_grad_batches=2", CALLBACK="steps=2")  # four batches
        self.assertRegex(said, r"the first 2 steps took .* was predicted \([+-]0\.0\d %\)")

    def test_it_warns_on_the_card_that_is_here(self):
        filler = "filler = torch.empty(21 << 30, dtype=torch.uint8, device='cuda')"
        with self.assertRaisesRegex(AssertionError, "this will run out of memory: does not fit a10(?s:.)*OutOfMemoryError"):
            self.run_with(PREPARE=filler, SEQUENCE="512")

    def test_it_never_breaks_a_run(self):
        said = self.run_with(CALLBACK='snapshot="/nowhere/first.pickle"', OPTIMIZER="torch.optim.Adagrad(self.parameters())")
        self.assertIn("Adagrad is not modelled in Lightning", said)
        self.assertIn("could not be written", said)
        self.assertIn("memorymark: the first 3 steps took", said)


if __name__ == "__main__":
    unittest.main()
