"""Experts of a mixture: how many, how wide, and in which layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdec.plan.config import Config


@dataclass(frozen=True)
class Mixture:
    """Experts of a mixture: a token passes through `per_token` of them and through `shared` columns besides."""

    experts: int
    per_token: int
    intermediate: int
    shared: int


def whole(value: Any) -> int:
    """A number that some families give as a list, one for each modality or layer: its first."""
    return int(value[0] if isinstance(value, list) and value else value or 0)


def mixture(config: Config) -> Mixture | None:
    names = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    experts = whole(config.get(*names, "ffn_config.moe_num_experts"))
    if experts <= 1:
        return None
    intermediate = whole(
        config.get("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "expert_intermediate_size")
    ) or config.number("intermediate_size")
    per_token = whole(
        config.get(
            "num_experts_per_tok",
            "num_experts_per_token",
            "experts_per_token",
            "top_k_experts",
            "moe_topk",
            "moe_k",
            "moe_top_k",
            "num_selected_experts",
            "ffn_config.moe_top_k",
        )
    )
    if per_token <= 0:
        raise config.error("num_experts_per_tok", f"config.json of {config.name} has no num_experts_per_tok")
    shared = whole(
        config.get(
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "share_expert_dim",
            "shared_intermediate_size",
        )
    )
    count = whole(
        config.get("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts", default=0)
    )
    shared = (shared * max(1, count) if config.is_family("nemotron_h") else shared) or count * intermediate
    if config.is_family("llama4"):
        shared = intermediate
    return Mixture(experts, per_token, intermediate, shared)


def sparse_layers(config: Config, count: int) -> set[int]:
    """The layers that have experts."""
    kinds = config.get("mlp_layer_types")
    if isinstance(kinds, list):
        return {i for i, kind in enumerate(kinds) if kind == "sparse"}
    listed = config.get("moe_layers", "moe_layers_enum")
    if isinstance(listed, str):
        listed = [int(x) for x in listed.split(",") if x.strip()]
    if isinstance(listed, list) and listed:
        return set(listed)
    frequency = config.get("moe_layer_freq")
    if isinstance(frequency, list):
        return {i for i, yes in enumerate(frequency) if yes}
    if period := config.get("expert_layer_period"):
        return {i for i in range(count) if i % period == config.get("expert_layer_offset", default=0)}
    first = whole(config.get("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", default=0))
    last = whole(config.get("moe_layer_end_index", default=count - 1))
    step = whole(config.get("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval") or frequency or 1)
    dense = set(config.get("mlp_only_layers", default=[]))
    shift = 0 if frequency else 1
    return {i for i in range(first, min(last, count - 1) + 1) if (i + shift) % step == 0 and i not in dense}
