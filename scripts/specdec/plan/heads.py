"""Draft heads that sit on the target: EAGLE, EAGLE-3, Medusa, multi-token prediction (MTP). Each as a Model of its
own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specdec.plan.config import Config
from specdec.plan.models import Layers, Model, Weight
from specdec.plan.parse import parse

AUX_LAYERS = 3


def is_head(config: dict[str, Any]) -> bool:
    return kind(config) is not None


def kind(config: dict[str, Any]) -> str | None:
    """eagle3, eagle or medusa where config.json is a head's, else None."""
    names = " ".join(str(a) for a in config.get("architectures") or []).lower()
    model_type, speculators = (
        str(config.get("model_type") or "").lower(),
        str(config.get("speculators_model_type") or "").lower(),
    )
    if "eagle3" in names or "eagle3" in speculators or "draft_vocab_size" in config:
        return "eagle3"
    if "eagle" in names or model_type == "eagle" or speculators == "eagle":
        return "eagle"
    if "medusa" in names or model_type == "medusa" or "medusa_num_heads" in config:
        return "medusa"
    return None


def parse_head(name: str, config: dict[str, Any], *, source: str = "", published_bytes: int | None = None) -> Model:
    """A head as a Model. It shares the target's embedding, and its output head too except for EAGLE-3 and Medusa.

    EAGLE-3 parameters: 3 target_hidden x hidden for the three hidden states it reads, a layer whose attention input is
    twice as wide, and an output head over its own, smaller vocabulary.
    """
    which = kind(config)
    if which == "medusa":
        return medusa(name, config, source)
    flat = (
        dict(config.get("transformer_layer_config") or {}) | config if "transformer_layer_config" in config else config
    )
    flat = {"num_hidden_layers": 1, **{k: v for k, v in flat.items() if k != "layer_types"}}
    base = parse(name, flat, source=source)
    h, i, d = base.hidden, base.intermediate, base.head_dim
    if which != "eagle3":
        body = [w for w in base.weights if w.part not in ("embed", "head")]
        return replace(
            base, family="eagle", weights=(*body, Weight("other", 2 * h * h, "copy")), checkpoint_bytes=published_bytes
        )
    target_hidden = config.get("target_hidden_size") or h
    draft_vocab = config.get("draft_vocab_size") or base.vocab
    n = base.layers
    weights = [
        Weight("other", AUX_LAYERS * target_hidden * h, "copy"),
        Weight("attention", n * 2 * h * base.heads * d, "split", base.heads * d, 2 * h),
        Weight("attention", n * 2 * (2 * h) * base.kv_heads * d, "kv", base.kv_heads * d, 2 * h),
        Weight("attention", n * base.heads * d * h, "split", h, base.heads * d),
        Weight("mlp", n * 3 * h * i, "split", i, h),
        Weight("other", 4 * h, "copy"),
        Weight("head", draft_vocab * h, "split", draft_vocab, h),
    ]
    if owns_embedding(config):
        weights.append(Weight("embed", base.vocab * h, "split", base.vocab, h))
    return replace(base, family="eagle3", tied=False, weights=tuple(weights), checkpoint_bytes=published_bytes)


def owns_embedding(config: dict[str, Any]) -> bool:
    """A head whose hidden size differs from its target's cannot share the target's embedding."""
    target = config.get("target_hidden_size")
    return target is not None and target != config.get("hidden_size")


def with_embedding(head: Model) -> Model:
    """The same head with an embedding table of its own."""
    return replace(
        head, weights=(*head.weights, Weight("embed", head.vocab * head.hidden, "split", head.vocab, head.hidden))
    )


def medusa(name: str, config: dict[str, Any], source: str) -> Model:
    """Medusa heads: each `num_layers` residual blocks and an output head over the whole vocabulary. No attention, no
    KV cache."""
    c = Config.of(name, config)
    h, vocab = c.number("hidden_size"), c.number("vocab_size")
    heads, layers = (
        c.get("num_heads", "medusa_num_heads", default=5),
        c.get("num_layers", "medusa_num_layers", default=1),
    )
    return Model(
        name=name,
        family="medusa",
        architectures=tuple(c.architectures),
        hidden=h,
        intermediate=h,
        layers=heads,
        heads=1,
        head_dim=h,
        kv_heads=1,
        vocab=vocab,
        max_positions=0,
        tied=False,
        dtype=c.dtype,
        kv=(),
        source=source,
        config=config,
        weights=(
            Weight("mlp", heads * layers * h * h, "split", h, h),
            Weight("head", heads * vocab * h, "split", heads * vocab, h),
        ),
    )


def mtp(target: Model) -> Model | None:
    """The target's own multi-token prediction layers, None where its configuration has none.

    One layer of the target's last kind, and a projection from twice the hidden size; embedding and output head are
    shared.
    """
    if not target.mtp_layers:
        return None
    config = Config.of(target.name, target.config)
    n = target.mtp_layers
    text = {
        k: v
        for k, v in config.text.items()
        if k not in ("first_k_dense_replace", "mlp_only_layers", "full_attention_interval", "num_kv_shared_layers")
    }
    text |= {"num_hidden_layers": n, "first_k_dense_replace": 0}
    last = target.kv[0].kind == "mla"
    if last:
        text.pop("layer_types", None)
    else:
        text["layer_types"] = ["full_attention"] * n
    layer = parse(
        f"{target.name} (MTP)", {**text, "architectures": list(target.architectures), "model_type": config.family}
    )
    body = [w for w in layer.weights if w.part not in ("embed", "head", "vision")]
    joined = Weight("attention", n * 2 * target.hidden * target.hidden, "copy", target.hidden, 2 * target.hidden)
    return replace(layer, family="mtp", weights=(*body, joined), quantization=target.quantization, mtp_layers=0)


def usual(method: str, target: Model) -> Model | None:
    """The head that is usual for a target where none is named: one layer of its shape, a draft vocabulary of 32,000."""
    if method not in ("eagle", "eagle3", "medusa"):
        return None
    config = {
        "architectures": ["LlamaForCausalLMEagle3" if method == "eagle3" else "EagleLlamaForCausalLM"],
        "model_type": "eagle",
        "hidden_size": target.hidden,
        "intermediate_size": target.intermediate,
        "num_hidden_layers": 1,
        "num_attention_heads": target.heads,
        "num_key_value_heads": target.kv_heads,
        "head_dim": target.head_dim,
        "vocab_size": target.vocab,
        "max_position_embeddings": target.max_positions or 2048,
        "torch_dtype": "bfloat16",
    }
    if method == "medusa":
        config |= {"architectures": ["MedusaModel"], "model_type": "medusa", "num_heads": 5, "num_layers": 1}
    if method == "eagle3":
        config["draft_vocab_size"] = min(32000, target.vocab)
    return parse_head(f"{method} head of the usual shape", config)


def checkpoint_bytes(name: str, config: dict[str, Any]) -> int:
    from specdec.plan.weights import element_bytes

    head = parse_head(name, config)
    return head.parameters * element_bytes(head.dtype)


def kv_of(head: Model) -> tuple[Layers, ...]:
    return head.kv
