"""From a config.json to a Model."""

from __future__ import annotations

from typing import Any

from specdec.plan.config import Config
from specdec.plan.layers import Shape, kv_layers, layer_kinds, mixture
from specdec.plan.models import Model, Weight
from specdec.plan.parts import attention_weights, image_tokens, mlp_weights, vision_weights


def parse(name: str, whole: dict[str, Any], *, checkpoint_bytes: int | None = None, source: str = "") -> Model:
    """A Model from a config.json. Raises SpecdecError on a missing or contradictory field."""
    config = Config.of(name, whole)
    hidden, layers = config.number("hidden_size"), config.number("num_hidden_layers")
    heads, vocab = config.number("num_attention_heads"), config.number("vocab_size")
    given = config.get("num_key_value_heads") is not None
    kv_heads = config.number("num_key_value_heads") if given else heads
    if config.get("head_dim") is not None:
        head_dim = config.number("head_dim")
    else:
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
        name=name,
        family=config.family,
        architectures=tuple(config.architectures),
        hidden=hidden,
        intermediate=shape.intermediate or 0,
        layers=layers,
        heads=heads,
        head_dim=head_dim,
        kv_heads=kv_heads,
        vocab=vocab,
        max_positions=config.get("max_position_embeddings", "model_max_length", default=0),
        tied=tied,
        dtype=config.dtype,
        kv=tuple(kv_layers(config, shape, kinds)),
        weights=tuple(weights),
        experts=moe.experts if moe else 0,
        experts_per_token=moe.per_token if moe else 0,
        expert_intermediate=moe.intermediate if moe else 0,
        mtp_layers=config.get("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0),
        checkpoint_bytes=checkpoint_bytes,
        quantization=config.get("quantization_config", "compression_config", default={}) or {},
        config=whole,
        mm_tokens=image_tokens(config),
        source=source,
    )
