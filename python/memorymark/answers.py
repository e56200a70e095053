"""The answers. Their fields are named as in the command line's JSON, and `json`
holds all of it. Memory is in bytes."""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type, TypeVar

T = TypeVar("T")


def _made(cls: Type[T], answer: Dict[str, Any], **more: Any) -> T:
    """The fields of a class that an answer has; later versions may have more."""
    known = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{**{k: v for k, v in answer.items() if k in known}, **more})


def gib(n: float) -> str:
    """An amount as the command line prints it."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{int(n)} B"


class Answer:
    """How answers show themselves: str() is for print, repr() is one line, and
    notebooks show a table or a picture."""

    def __repr__(self) -> str:
        first, _, more = str(self).partition("\n")
        return f"<{type(self).__name__}: {first}{' …' if more else ''}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(str(self))}</b></p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(r, 'td') for r in rows)}</table>"


@dataclass(frozen=True)
class Step:
    """The counters of PyTorch's allocator for one step."""

    peak_requested: int
    peak_allocated: int
    peak_reserved: int
    end_allocated: int


@dataclass(frozen=True)
class Breakdown:
    """Where the memory goes at the peak."""

    total: int
    parameters: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    activations: int = 0
    temporaries: int = 0
    workspaces: int = 0
    input: int = 0
    unknown: int = 0
    rounding: int = 0
    fragmentation: int = 0
    context: int = 0


@dataclass(frozen=True)
class OutOfMemory:
    """The request that fails."""

    requested: int
    allocated: int
    reserved: int
    limit: int
    step: int = 0  # 0 while the model is built
    phase: str = ""


@dataclass(frozen=True, repr=False)
class Prediction(Answer):
    """The memory of three steps of a workload."""

    fits: bool
    steps: List[Step]
    json: Dict[str, Any]
    verdict: str = ""  # fits, tight or does not fit; tight leaves less than margin
    margin: int = 0
    gpu: str = ""
    parameters: int = 0
    model_allocated: int = 0
    breakdown: Optional[Breakdown] = None
    out_of_memory: Optional[OutOfMemory] = None
    peak_phase: str = ""
    step_seconds: Optional[float] = None
    samples_per_second: Optional[float] = None
    tokens_per_second: Optional[float] = None
    gpu_total: int = 0
    limit: int = 0
    picture: str = ""  # SVG

    @classmethod
    def of(cls, answer: Dict[str, Any], picture: str = "") -> Prediction:
        breakdown, failure = answer.get("breakdown"), answer.get("out_of_memory")
        return _made(
            cls,
            answer,
            json=answer,
            picture=picture,
            steps=[_made(Step, s) for s in answer.get("steps") or []],
            breakdown=_made(Breakdown, breakdown) if breakdown else None,
            out_of_memory=_made(OutOfMemory, failure) if failure else None,
        )

    @property
    def peak_allocated(self) -> int:
        return max((s.peak_allocated for s in self.steps), default=0)

    @property
    def peak_reserved(self) -> int:
        return max((s.peak_reserved for s in self.steps), default=0)

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        if self.verdict == "tight":
            verdict = "fits tightly on"
        if self.out_of_memory:
            failed = self.out_of_memory
            return f"{verdict} {self.gpu}: {gib(failed.requested)} requested with {gib(failed.reserved)} reserved of {gib(self.limit)}"
        return f"{verdict} {self.gpu}: {gib(self.peak_allocated)} allocated, {gib(self.peak_reserved)} reserved of {gib(self.limit)}"

    def _repr_html_(self) -> str:
        parts = vars(self.breakdown) if self.breakdown else {}
        shown = {name: n for name, n in parts.items() if n and name != "total"}
        rows = [[name.replace("_", " "), gib(n)] for name, n in sorted(shown.items(), key=lambda part: -part[1])]
        return super()._repr_html_() + self.picture + (_table(["at the peak", ""], rows) if rows else "")


@dataclass(frozen=True)
class Result:
    """One batch size that was tried."""

    batch_size: int
    success: bool
    memory_bytes: Optional[int] = None  # None if a real run failed, which does not say what it needs
    reserved_bytes: Optional[int] = None
    samples_per_second: Optional[float] = None
    tokens_per_second: Optional[float] = None
    verdict: str = ""  # fits, tight or does not fit


@dataclass(frozen=True, repr=False)
class Analysis(Answer):
    """The largest batch that trains, and the one worth using."""

    optimal_batch_size: int
    recommended_batch_size: int
    results: List[Result]
    json: Dict[str, Any]
    model_name: str = ""
    engine: str = ""
    gpu_name: str = ""
    gpu_total_bytes: int = 0
    optimal_memory_bytes: int = 0
    current_batch_size: int = 0
    current_memory_bytes: int = 0
    waste_percent: float = 0
    current_waste_percent: float = 0
    speedup: Optional[float] = None
    cost_savings_annual: Optional[float] = None

    @classmethod
    def of(cls, answer: Dict[str, Any]) -> Analysis:
        return _made(
            cls,
            {"optimal_batch_size": 0, "recommended_batch_size": 0, **answer},
            json=answer,
            results=[_made(Result, r) for r in answer.get("results") or []],
        )

    def __str__(self) -> str:
        if not self.optimal_batch_size:
            return f"no batch of {self.model_name} trains on {self.gpu_name} ({self.engine})"
        return (
            f"batch {self.optimal_batch_size} of {self.model_name} trains on {self.gpu_name}, "
            f"batch {self.recommended_batch_size or self.optimal_batch_size} is recommended ({self.engine})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:right'>{r.batch_size}</td><td style='text-align:right'>{'' if r.memory_bytes is None else gib(r.memory_bytes)}</td>"
            f"<td><div style='background:{'#00a35a' if r.success else '#d33'};height:10px;"
            f"width:{min(100.0, 100.0 * (r.memory_bytes or 0) / max(self.gpu_total_bytes, 1)):.0f}px'></div></td>"
            f"<td>{'tight' if r.verdict == 'tight' else '' if r.success else 'out of memory'}</td></tr>"
            for r in self.results
        )
        head = "<tr><th>batch</th><th>allocated</th><th>of the card</th><th></th></tr>"
        return f"<p><b>{html.escape(str(self))}</b></p><table>{head}{rows}</table>"


@dataclass(frozen=True, repr=False)
class Option(Answer):
    """A way to train that fits: `changes` say what is changed, in words, and
    `patch` has the keys of the workload that do it."""

    changes: List[str]
    patch: Dict[str, Any]
    json: Dict[str, Any]
    gpu: str = ""
    gpus: int = 1
    setup: str = ""
    batch: int = 0
    accumulate: int = 1
    days: Optional[float] = None
    command: str = ""
    recipe: Dict[str, str] = field(default_factory=dict)
    trains: str = ""
    verdict: str = ""  # fits or tight
    dollars: Optional[float] = None
    workload: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Dict[str, Any]) -> Option:
        labels, patch = _changes(answer.get("changes") or [])
        return _made(cls, {**answer, "changes": labels, "patch": patch}, json=answer)

    def __str__(self) -> str:
        batch = f", batch {self.batch} × {self.accumulate}" if self.batch else ""
        return f"{self._where()}{self._how()}{batch}{self._effort(': ')}"

    def _repr_html_(self) -> str:
        code = "".join(f"<pre>{html.escape(text)}</pre>" for text in self.recipe.values() if text)
        return super()._repr_html_() + code

    def _how(self) -> str:
        return (self.setup or " + ".join(self.changes) or "as it is") + self._tight()

    def _tight(self) -> str:
        return " (tight)" if self.verdict == "tight" else ""

    def _where(self) -> str:
        return f"{self.gpus} × {self.gpu}, " if self.gpu else ""

    def _effort(self, before: str) -> str:
        known = [] if self.days is None else [f"{self.days:.3g} days"]
        known += [] if self.dollars is None else [f"${self.dollars:,.2f}"]
        return before + ", ".join(known) if known else ""


def _changes(given: Sequence[Dict[str, Any]]) -> Tuple[List[str], Dict[str, Any]]:
    """The labels of changes and the keys that they set, all together."""
    patch: Dict[str, Any] = {}
    for change in given:
        patch.update(change["patch"])
    return [change["label"] for change in given], patch


def _options(options: Iterable[Option]) -> str:
    rows = [[f"{o.gpus} × {o.gpu}", o._how(), f"{o.batch} × {o.accumulate}", o._effort("")] for o in options]
    return _table(["cards", "how", "batch", ""], rows) if rows else ""


def _option(answer: Optional[Dict[str, Any]]) -> Optional[Option]:
    return Option.of(answer) if answer else None


@dataclass(frozen=True, repr=False)
class Plan(Answer):
    """What to train a model on, and how."""

    model: str
    options: List[Option]
    json: Dict[str, Any]
    cheapest: Optional[Option] = None
    cheapest_of_all_weights: Optional[Option] = None
    fastest: Optional[Option] = None
    simplest: Optional[Option] = None
    misfits: List[Dict[str, Any]] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @classmethod
    def of(cls, answer: Dict[str, Any]) -> Plan:
        picks = ("cheapest", "cheapest_of_all_weights", "fastest", "simplest")
        return _made(
            cls,
            answer,
            json=answer,
            options=[Option.of(o) for o in answer.get("options") or []],
            **{name: _option(answer.get(name)) for name in picks},
        )

    def __str__(self) -> str:
        if not self.options:
            return f"no way to train {self.model} was found"
        picks = {"cheapest": self.cheapest, "fastest": self.fastest, "simplest": self.simplest}
        return "\n".join(f"{name}: {option}" for name, option in picks.items() if option)

    def _repr_html_(self) -> str:
        lines = "<br>".join(html.escape(line) for line in str(self).splitlines())
        return f"<p><b>{html.escape(self.model)}</b></p><p>{lines}</p>{_options(self.options)}"


@dataclass(frozen=True, repr=False)
class Fit(Answer):
    """What to change so that a workload fits a card. `fits` says whether it does as
    it is; the options are those that fit."""

    model: str
    gpu: str
    options: List[Option]
    json: Dict[str, Any]
    fits: bool = False
    verdict: str = ""  # as it is: fits, tight or does not fit
    needs_bytes: int = 0
    limit_bytes: int = 0
    reason: str = ""

    @classmethod
    def of(cls, answer: Dict[str, Any]) -> Fit:
        # How long a run takes is not asked here.
        options = [dataclasses.replace(Option.of(o), days=None, dollars=None) for o in answer.get("options") or []]
        return _made(cls, answer, json=answer, options=options)

    def __str__(self) -> str:
        if self.fits:
            tight = ", with less than a margin to spare" if self.verdict == "tight" else ""
            return f"{self.model} fits {self.gpu} as it is{tight}"
        if not self.options:
            return f"{self.model} does not fit {self.gpu}, and no change makes it fit"
        return f"{self.model} does not fit {self.gpu} as it is; it does with " + ", or with ".join(" + ".join(o.changes) + o._tight() for o in self.options)

    def _repr_html_(self) -> str:
        rows = []
        for o in self.options:
            reserved, speed = o.json["memory"]["reserved_bytes"], o.json["speed"]
            per_second = speed.get("tokens_per_second") or speed.get("samples_per_second") or 0
            rows.append([" + ".join(o.changes) + o._tight(), f"{o.batch} × {o.accumulate}", gib(reserved), gib(self.limit_bytes - reserved), f"{per_second:,.0f}"])
        unit = "tokens/s" if any(o.json["speed"].get("tokens_per_second") for o in self.options) else "samples/s"
        return super()._repr_html_() + (_table(["changes", "batch", "memory", "left", unit], rows) if rows else "")


@dataclass(frozen=True, repr=False)
class Explanation(Answer):
    """What a snapshot shows: peaks, live memory, why memory ran out."""

    json: Dict[str, Any]
    text: str
    picture: str = ""  # SVG

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"{self.picture}<pre>{html.escape(self.text)}</pre>"
