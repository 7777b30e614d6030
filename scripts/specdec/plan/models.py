"""A model as the planner needs it: groups of equal layers with their KV cache, and weights with how they are shared
out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["full", "window", "mla", "linear"]
Share = Literal["split", "kv", "copy"]
Part = Literal["embed", "head", "attention", "mlp", "expert", "other", "vision"]


@dataclass(frozen=True)
class Layers:
    """Equal layers as the KV cache sees them.

    kv_heads, key_dim, value_dim  of one layer; for MLA one head of the latent, which every rank holds whole
    window                        tokens that a window layer looks back, None for the others
    state_params                  numbers of state that a linear layer keeps for a sequence, whole model: (conv,
                                recurrent)
    extra_bytes                   of one token in one layer, whatever the cache's format (the keys of a sparse indexer)
    state_bytes                   bytes of one of the recurrent numbers; the others have the model's dtype
    """

    count: int
    kind: Kind
    kv_heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    window: int | None = None
    state_params: tuple[int, int] = (0, 0)
    state_bytes: int = 2
    extra_bytes: int = 0

    def kv_numbers(self, tp: int) -> int:
        """Cached numbers of one token in one layer on one rank. Heads are copied, never split below one."""
        if self.kind == "linear":
            return 0
        heads = 1 if self.kind == "mla" else max(1, self.kv_heads // tp)
        return heads * (self.key_dim + self.value_dim)

    def state_size(self, tp: int) -> int:
        """Bytes of state of one sequence in one linear layer on one rank."""
        conv, recurrent = self.state_params
        return (conv * 2 + recurrent * self.state_bytes) // tp


@dataclass(frozen=True)
class Weight:
    """Parameters of one sort. `share`: split over ranks, split by KV head at most, or a copy on each rank.

    rows, columns, pieces  shape of one matrix and how many there are, for formats with a scale a block; 0 where it is
                                a vector
    active                 share of the parameters that one token uses (experts); 1 for the rest
    """

    part: Part
    params: int
    share: Share = "split"
    rows: int = 0
    columns: int = 0
    active: float = 1.0


@dataclass(frozen=True, eq=False)
class Model:
    """What config.json says, in the planner's terms. Two models are equal only where they are the same object."""

    name: str
    family: str
    architectures: tuple[str, ...]
    hidden: int
    intermediate: int
    layers: int
    heads: int
    head_dim: int
    kv_heads: int
    vocab: int
    max_positions: int
    tied: bool
    dtype: str
    kv: tuple[Layers, ...]
    weights: tuple[Weight, ...]
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    mtp_layers: int = 0
    checkpoint_bytes: int | None = None
    quantization: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    mm_tokens: int = 0
    source: str = ""

    @property
    def parameters(self) -> int:
        """All parameters, the tied embedding once."""
        return sum(w.params for w in self.weights)

    @property
    def active_parameters(self) -> float:
        """Parameters that one token passes through: no embedding table, and of the experts those it is sent to."""
        return sum(w.params * w.active for w in self.weights if w.part not in ("embed", "vision")) + (
            self.vocab * self.hidden if self.tied else 0
        )
