"""Reads recipes as JSON, and fails on what Python, transformers or, where it is
installed, Accelerate would not take."""

import ast
import inspect
import json
import sys
import tempfile

from transformers import TrainingArguments

try:
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
except ImportError:
    launch_command_parser = None

known = set(inspect.signature(TrainingArguments.__init__).parameters)
for case in json.load(sys.stdin):
    recipe, gpus = case["recipe"], case["gpus"]
    for part in ("model", "pytorch", "training_arguments"):
        ast.parse(recipe.get(part, ""))
    if recipe["training_arguments"]:  # Trainer has the optimizer
        call = ast.parse(recipe["training_arguments"]).body[0].value
        unknown = {k.arg for k in call.keywords} - known
        assert not unknown, f"TrainingArguments has no {unknown}"
    if launch_command_parser and recipe.get("accelerate"):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(recipe["accelerate"])
            f.flush()
            args, _, _ = _validate_launch_command(launch_command_parser().parse_args(["--config_file", f.name, "train.py"]))
        assert args.num_processes == gpus, f"{args.num_processes} processes for {gpus} GPUs"
        assert args.use_fsdp == ("fsdp_version" in recipe["accelerate"]), recipe["accelerate"]
print("ok" if launch_command_parser else "ok, without accelerate")
