"""The image encoder of a multimodal model and its projector, and the tokens that an image takes."""

from __future__ import annotations

from typing import Any

from specdec.plan.config import Config
from specdec.plan.models import Weight


def first(value: Any) -> int | None:
    """A size that some families give as [height, width]."""
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def vision_weights(config: Config) -> list[Weight]:
    """Parameters of the encoder and of what projects its patches. Encoders of a class apart count by these too."""
    whole = config.whole
    nested = whole.get("thinker_config") or {}
    vision = whole.get("vision_config") or nested.get("vision_config")
    audio = audio_weights(whole.get("audio_config") or nested.get("audio_config"))
    if not isinstance(vision, dict):
        return audio
    # Qwen2-VL states the language model's width as hidden_size, and its own as embed_dim.
    h = first(vision.get("embed_dim") or vision.get("hidden_size"))
    layers = first(vision.get("num_hidden_layers") or vision.get("depth"))
    if not h or not layers:
        return audio
    return [Weight("vision", tower(config, vision, h, layers) + projector(config, vision, h), "split"), *audio]


def audio_weights(audio: Any) -> list[Weight]:
    """An encoder of Whisper's shape, as Qwen's omni models have it."""
    if not isinstance(audio, dict) or not (layers := first(audio.get("encoder_layers"))):
        return []
    d, inter = first(audio.get("d_model")) or 0, first(audio.get("encoder_ffn_dim")) or 0
    return [Weight("vision", layers * (4 * d * d + 2 * d * inter) + 3 * d * d, "split")]


def tower(config: Config, vision: dict[str, Any], h: int, layers: int) -> int:
    inter = first(vision.get("intermediate_size")) or int(h * (vision.get("mlp_ratio") or 4))
    kind = str(vision.get("model_type") or "")
    if kind.startswith("glm4v"):
        inter = first(vision.get("out_hidden_size")) or inter
    gated = 3 if str(vision.get("hidden_act", "")) == "silu" or kind == "pixtral" else 2
    patch = first(vision.get("patch_size")) or 14
    size = first(vision.get("image_size")) or 336
    # Encoders with rotary positions have no table of them.
    table = 0 if "spatial_merge_size" in vision or kind == "pixtral" else (size // patch) ** 2
    table = first(vision.get("num_position_embeddings") or vision.get("num_patches")) or table
    used = layers
    feature = config.whole.get("vision_feature_layer")
    if isinstance(feature, int) and feature < 0:
        used = layers + 1 + feature
    frames = vision.get("temporal_patch_size") or 1
    return used * (4 * h * h + gated * h * inter + 9 * h + inter) + 3 * frames * patch * patch * h + table * h


def projector(config: Config, vision: dict[str, Any], h: int) -> int:
    out, whole = config.number("hidden_size"), config.whole
    family, kind = str(whole.get("model_type", "")), str(vision.get("model_type") or "")
    target = first(vision.get("out_hidden_size")) or out
    merge = first(vision.get("spatial_merge_size"))
    if kind.startswith("glm4v") and merge:
        return target * target + 3 * target * (first(vision.get("intermediate_size")) or target) + h * target * merge**2
    if merge:
        wide = h * merge * merge
        target = target if "embed_dim" not in vision else out
        mergers = 1 + len(vision.get("deepstack_visual_indexes") or [])
        return mergers * (wide * wide + wide * target)
    if merge := first(whole.get("spatial_merge_size")):
        return h * merge * merge * h + h * out + out * out
    if factor := first(whole.get("downsample_factor")):
        middle = first(whole.get("projector_hidden_size")) or out
        return h * factor * factor * middle + middle * out
    if "downsample_ratio" in whole or family.startswith("internvl"):
        wide = int(h / (whole.get("downsample_ratio") or 0.5) ** 2)
        return wide * out + out * out
    return h * out + (out * out if family.startswith("llava") else 0)


def image_tokens(config: Config) -> int:
    """Tokens that one image takes in the language model, 0 for a text model. A coarse bound, for the profiling run."""
    vision = config.whole.get("vision_config")
    if not isinstance(vision, dict):
        return 0
    stated = config.whole.get("mm_tokens_per_image")
    if isinstance(stated, int):
        return stated
    patch, size = first(vision.get("patch_size")) or 14, first(vision.get("image_size")) or 336
    tiles = 5 if config.whole.get("image_grid_pinpoints") else 1
    return tiles * (size // patch) ** 2
