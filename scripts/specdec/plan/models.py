"""A model as the planner needs it: groups of equal layers with their KV cache, and weights with how they are shared out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from specdec.plan.config import Config

Kind = Literal["full", "window", "mla", "linear"]
Share = Literal["split", "kv", "copy"]
Part = Literal["embed", "head", "attention", "mlp", "expert", "other", "vision"]


@dataclass(frozen=True)
class Layers:
    """Equal layers as the KV cache sees them.

    kv_heads, key_dim, value_dim  of one layer; for MLA one head of the latent, which every rank holds whole
    window                        tokens that a window layer looks back, None for the others
    state_params                  numbers of state that a linear layer keeps for a sequence, whole model: (conv, recurrent)
    """

    count: int
    kind: Kind
    kv_heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    window: int | None = None
    state_params: tuple[int, int] = (0, 0)

    def kv_numbers(self, tp: int) -> int:
        """Cached numbers of one token in one layer on one rank. Heads are copied, never split below one."""
        if self.kind == "linear":
            return 0
        heads = 1 if self.kind == "mla" else max(1, self.kv_heads // tp)
        return heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True)
class Weight:
    """Parameters of one sort. `share`: split over ranks, split by KV head at most, or a copy on each rank.

    rows, columns, pieces  shape of one matrix and how many there are, for formats with a scale a block; 0 where it is a vector
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


def parse(name: str, whole: dict[str, Any], *, checkpoint_bytes: int | None = None, source: str = "") -> Model:
    """A Model from a config.json. Raises SpecdecError on a missing or contradictory field."""
    config = Config.of(name, whole)
    hidden, layers = config.number("hidden_size"), config.number("num_hidden_layers")
    heads, vocab = config.number("num_attention_heads"), config.number("vocab_size")
    kv_heads = config.get("num_key_value_heads", default=heads)
    head_dim = config.get("head_dim")
    if head_dim is None:
        if hidden % heads:
            raise config.error(
                "head_dim",
                f"hidden_size {hidden} is not a multiple of num_attention_heads {heads}, and head_dim is missing",
            )
        head_dim = hidden // heads
    if kv_heads > heads or heads % kv_heads:
        raise config.error("num_key_value_heads", f"{heads} attention heads cannot share {kv_heads} key-value heads")
    moe = mixture(config)
    tied = config.flag("tie_word_embeddings")
    shape = Shape(
        hidden,
        layers,
        heads,
        kv_heads,
        head_dim,
        config.get("intermediate_size", default=moe.intermediate if moe else None),
    )
    kinds = layer_kinds(config, layers)
    weights = [
        Weight("embed", vocab * hidden, "split", vocab, hidden),
        *([] if tied else [Weight("head", vocab * hidden, "split", vocab, hidden)]),
        *attention_weights(config, shape, kinds),
        *mlp_weights(config, shape, moe),
        Weight(
            "other",
            (4 if config.family.startswith(("gemma2", "gemma3", "gemma4")) else 2) * layers * hidden + hidden,
            "copy",
        ),
        *vision_weights(config),
    ]
    return Model(
        name=name, family=config.family, architectures=tuple(config.architectures), hidden=hidden,
        intermediate=shape.intermediate or 0, layers=layers, heads=heads, head_dim=head_dim, kv_heads=kv_heads, vocab=vocab,
        max_positions=config.get("max_position_embeddings", "model_max_length", default=0), tied=tied, dtype=config.dtype,
        kv=tuple(kv_layers(config, shape, kinds)), weights=tuple(weights),
        experts=moe.experts if moe else 0, experts_per_token=moe.per_token if moe else 0,
        expert_intermediate=moe.intermediate if moe else 0,
        mtp_layers=config.get("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0),
        checkpoint_bytes=checkpoint_bytes, quantization=config.get("quantization_config", "compression_config", default={}) or {},
        config=whole, mm_tokens=image_tokens(config), source=source,
    )  # fmt: skip


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int | None


@dataclass(frozen=True)
class Mixture:
    """Experts of a mixture: `sparse` layers have `experts` of them and pass a token through `per_token`."""

    sparse: int
    experts: int
    per_token: int
    intermediate: int
    shared: int


def mixture(config: Config) -> Mixture | None:
    experts = config.get("num_local_experts", "num_experts", "n_routed_experts")
    if not experts or experts == 1:
        return None
    layers = config.number("num_hidden_layers")
    intermediate = config.number("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    dense = config.get("first_k_dense_replace", default=0)
    step = config.get("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", default=1)
    sparse = (layers - dense) // (step if isinstance(step, int) and step > 0 else 1)
    sparse -= len(config.get("mlp_only_layers", default=[]))
    if isinstance(step, list):
        sparse = sum(bool(x) for x in step)
    shared = config.get("shared_expert_intermediate_size", default=0)
    shared = shared or config.get("n_shared_experts", default=0) * intermediate
    if config.family.startswith("llama4"):
        shared = intermediate
    return Mixture(
        sparse,
        experts,
        config.number("num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk"),
        intermediate,
        shared,
    )


def layer_kinds(config: Config, layers: int) -> list[Kind]:
    """What each layer's attention is, in order."""
    if config.get("kv_lora_rank") and not config.get("layer_types"):
        return ["mla"] * layers
    types = config.get("layer_types")
    if isinstance(types, list) and types:
        if len(types) != layers:
            raise config.error("layer_types", f"{len(types)} layer types for {layers} layers")
        known: dict[str, Kind] = {
            "full_attention": "full", "attention": "full", "sliding_attention": "window", "chunked_attention": "window",
            "linear_attention": "linear", "mamba": "linear",
        }  # fmt: skip
        unknown = sorted({str(t) for t in types} - known.keys())
        if unknown:
            raise config.error("layer_types", f"the planner does not know the layer type {unknown[0]!r}")
        return [known[t] for t in types]
    interval = config.get("full_attention_interval")
    if interval:
        return ["full" if (i + 1) % interval == 0 else "linear" for i in range(layers)]
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False or config.family.startswith("qwen"):
        return ["full"] * layers
    pattern = config.get("sliding_window_pattern", "_sliding_window_pattern")
    if pattern:
        return ["full" if (i + 1) % pattern == 0 else "window" for i in range(layers)]
    return ["window"] * layers


def kv_layers(config: Config, shape: Shape, kinds: list[Kind]) -> list[Layers]:
    shared = config.get("num_kv_shared_layers", default=0)
    counts = Counter(kinds[: len(kinds) - shared] if shared else kinds)
    groups: list[Layers] = []
    for kind, count in counts.items():
        if kind == "mla":
            latent = config.number("kv_lora_rank") + config.number("qk_rope_head_dim")
            groups.append(Layers(count, kind, 1, latent, 0))
        elif kind == "linear":
            groups.append(Layers(count, kind, state_params=linear_state(config)))
        else:
            full = kind == "full"
            heads = config.get("num_global_key_value_heads", default=shape.kv_heads) if full else shape.kv_heads
            dim = config.get("global_head_dim", default=shape.head_dim) if full else shape.head_dim
            value_dim = config.get("v_head_dim", default=dim)
            window = None if full else config.number("sliding_window", "attention_chunk_size")
            groups.append(Layers(count, kind, heads, dim, value_dim, window))
    return groups


def linear_state(config: Config) -> tuple[int, int]:
    """Numbers of (convolution, recurrent) state of one linear-attention layer for one sequence."""
    key_dim = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    value_heads, value_dim = config.number("linear_num_value_heads"), config.number("linear_value_head_dim")
    kernel = config.get("linear_conv_kernel_dim", default=4)
    return (2 * key_dim + value_heads * value_dim) * (kernel - 1), value_heads * value_dim * config.number(
        "linear_key_head_dim"
    )


def attention_weights(config: Config, shape: Shape, kinds: list[Kind]) -> list[Weight]:
    h, n, d = shape.hidden, shape.heads, shape.head_dim
    out: list[Weight] = []
    bias = 1 if config.flag("attention_bias") or config.family in ("qwen2", "qwen2_moe") else 0
    for kind, count in Counter(kinds).items():
        if kind == "mla":
            out += mla_weights(config, h, n, count)
            continue
        if kind == "linear":
            out += linear_weights(config, h, count)
            continue
        full = kind == "full"
        kv = config.get("num_global_key_value_heads", default=shape.kv_heads) if full else shape.kv_heads
        dim = config.get("global_head_dim", default=d) if full else d
        gate = 2 if config.flag("attn_output_gate") or config.family == "qwen3_next" else 1
        kv_matrices = 1 if full and config.flag("attention_k_eq_v") else 2
        out += [
            Weight("attention", count * h * n * dim * gate, "split", n * dim * gate, h),
            Weight("attention", count * kv_matrices * h * kv * dim, "kv", kv * dim, h),
            Weight("attention", count * n * dim * h, "split", h, n * dim),
        ]
        if bias:
            out.append(Weight("other", count * (n * dim + 2 * kv * dim), "split"))
        if config.family.startswith(("qwen3", "gemma3", "gemma4")):
            out.append(Weight("other", count * 2 * dim, "copy"))
    return out


def mla_weights(config: Config, h: int, n: int, count: int) -> list[Weight]:
    """Multi-head latent attention: the down-projections are on every rank whole, the rest is split by head."""
    q_rank, kv_rank = config.get("q_lora_rank"), config.number("kv_lora_rank")
    rope, nope, v = config.number("qk_rope_head_dim"), config.number("qk_nope_head_dim"), config.number("v_head_dim")
    down = h * (kv_rank + rope) + (h * q_rank if q_rank else 0)
    return [
        Weight("attention", count * down, "copy", kv_rank + rope + (q_rank or 0), h),
        Weight("attention", count * (q_rank or h) * n * (nope + rope), "split", n * (nope + rope), q_rank or h),
        Weight("attention", count * kv_rank * n * (nope + v), "split", n * (nope + v), kv_rank),
        Weight("attention", count * n * v * h, "split", h, n * v),
        Weight("other", count * (kv_rank + (q_rank or 0)), "copy"),
    ]


def linear_weights(config: Config, h: int, count: int) -> list[Weight]:
    """Gated delta net (Qwen3-Next, Qwen3.5): query, key, value, gate, two scalars a head, a short convolution, output."""
    key = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    value_heads = config.number("linear_num_value_heads")
    value = value_heads * config.number("linear_value_head_dim")
    kernel = config.get("linear_conv_kernel_dim", default=4)
    return [
        Weight("attention", count * h * (2 * key + 2 * value), "split", 2 * key + 2 * value, h),
        Weight("other", count * (h * 2 * value_heads + (2 * key + value) * kernel + 2 * value_heads), "split"),
        Weight("attention", count * value * h, "split", h, value),
    ]


def mlp_weights(config: Config, shape: Shape, moe: Mixture | None) -> list[Weight]:
    h = shape.hidden
    dense = shape.layers - (moe.sparse if moe else 0)
    out: list[Weight] = []
    # A plain two-matrix MLP is rare today; these families have it.
    matrices = 2 if config.family in ("nemotron", "starcoder2", "gpt_bigcode", "falcon", "phi") else 3
    also_dense = moe is not None and config.flag("enable_moe_block")
    if dense or also_dense:
        i = config.get("intermediate_size_mlp", "intermediate_size")
        if not isinstance(i, int) or i <= 0:
            raise config.error("intermediate_size", f"config.json of {config.name} has no usable intermediate_size")
        out.append(Weight("mlp", (shape.layers if also_dense else dense) * matrices * h * i, "split", i, h))
    if moe:
        out.append(
            Weight(
                "expert",
                moe.sparse * moe.experts * 3 * h * moe.intermediate,
                "split",
                moe.intermediate,
                h,
                moe.per_token / moe.experts,
            )
        )
        out.append(Weight("other", moe.sparse * h * moe.experts, "copy"))
        if moe.shared:
            out.append(Weight("mlp", moe.sparse * 3 * h * moe.shared, "split", moe.shared, h))
        if config.family == "gpt_oss":
            out.append(Weight("other", moe.sparse * moe.experts * (2 * moe.intermediate + h), "split"))
    return out


def vision_weights(config: Config) -> list[Weight]:
    """The image encoder and its projector. Encoders with a class of their own count by their published shape."""
    vision = config.whole.get("vision_config")
    if not isinstance(vision, dict):
        return []
    h = vision.get("hidden_size") or vision.get("embed_dim")
    layers = vision.get("num_hidden_layers") or vision.get("depth")
    if not isinstance(h, int) or not isinstance(layers, int):
        return []
    inter = vision.get("intermediate_size") or 4 * h
    out_hidden = config.number("hidden_size")
    gated = 3 if str(vision.get("hidden_act", "")) == "silu" else 2
    patch = vision.get("patch_size", 14)
    tokens = (vision.get("image_size", 336) // patch) ** 2 if isinstance(patch, int) else 0
    used = layers
    if isinstance(feature := config.whole.get("vision_feature_layer"), int) and feature < 0:
        used = layers + 1 + feature
    tower = used * (4 * h * h + gated * h * inter + 9 * h + inter) + 3 * patch * patch * h + tokens * h
    if str(config.whole.get("model_type", "")).startswith("llava"):
        projector = h * out_hidden + out_hidden * out_hidden
    elif merge := vision.get("spatial_merge_size"):
        wide = h * merge * merge
        projector = wide * wide + wide * vision.get("out_hidden_size", out_hidden)
    else:
        projector = h * out_hidden
    return [Weight("vision", tower + projector, "split")]


def image_tokens(config: Config) -> int:
    """Tokens that one image takes in the language model, 0 for a text model. A coarse bound, for the profiling run."""
    if not isinstance(config.whole.get("vision_config"), dict):
        return 0
    vision = config.whole["vision_config"]
    stated = config.whole.get("mm_tokens_per_image")
    if isinstance(stated, int):
        return stated
    patch, size = vision.get("patch_size", 14), vision.get("image_size", 336)
    tiles = 5 if config.whole.get("image_grid_pinpoints") else 1
    return tiles * (size // patch) ** 2 if isinstance(patch, int) and isinstance(size, int) else 0
