"""From a config.json to a Model."""

from __future__ import annotations

from typing import Any

from specdec.plan.config import Config
from specdec.plan.families import LEARNED_POSITIONS
from specdec.plan.layers import Layer, kv_layers, layers_of
from specdec.plan.mixture import mixture
from specdec.plan.models import Model, Weight
from specdec.plan.parts import attention_weights, input_weights, mlp_weights, norm_weights
from specdec.plan.vision import image_tokens, vision_weights


def parse(name: str, whole: dict[str, Any], *, checkpoint_bytes: int | None = None, source: str = "") -> Model:
    """A Model from a config.json. Raises SpecdecError on a missing or contradictory field."""
    config = Config.of(name, whole)
    hidden, vocab = config.number("hidden_size"), config.number("vocab_size")
    moe = mixture(config)
    layers = layers_of(config, moe)
    shape = next((layer.shape for layer in layers if layer.shape), None)
    latent = any("mla" in layer.mixers for layer in layers)
    heads = shape.heads if shape else 1
    positions = config.number("max_position_embeddings") if config.get("max_position_embeddings") else 0
    quantization = config.get("quantization_config", "compression_config", default={}) or {}
    if not isinstance(quantization, dict):
        raise config.error("quantization_config", f"quantization_config is {quantization!r}: an object is needed")
    weights = [
        Weight("embed", vocab * hidden, "split", vocab, hidden),
        *([] if config.tied else [Weight("head", vocab * hidden, "split", vocab, hidden)]),
        *attention_weights(config, layers),
        *mlp_weights(config, layers, moe),
        norm_weights(config, layers),
        *input_weights(config, layers),
        *vision_weights(config),
    ]
    if config.family in LEARNED_POSITIONS:
        weights.append(Weight("other", positions * hidden, "copy"))
    return Model(
        name=name,
        family=config.family,
        architectures=tuple(config.architectures),
        hidden=hidden,
        intermediate=widest(layers, moe.intermediate if moe else 0),
        layers=len(layers),
        heads=heads,
        head_dim=config.get("head_dim", default=hidden // heads) if latent or not shape else shape.key_dim,
        kv_heads=(heads if latent else shape.kv_heads) if shape else 1,
        vocab=vocab,
        max_positions=positions,
        tied=config.tied,
        dtype=config.dtype,
        kv=tuple(kv_layers(config, layers)),
        weights=tuple(weights),
        experts=moe.experts if moe else 0,
        experts_per_token=moe.per_token if moe else 0,
        expert_intermediate=moe.intermediate if moe else 0,
        mtp_layers=config.get("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0),
        checkpoint_bytes=checkpoint_bytes,
        quantization=quantization,
        config=whole,
        mm_tokens=image_tokens(config),
        source=source,
    )


def widest(layers: list[Layer], experts: int) -> int:
    """Columns of the widest MLP; a mixture without dense layers has its experts'."""
    return max((layer.intermediate for layer in layers), default=0) or experts
