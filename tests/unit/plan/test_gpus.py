"""Labels of nodes and names of products: a GPU of another memory is another GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec.plan.gpus import accelerator_type

from .engines import manifest


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-80gb"),
        ("nvidia-h100-mega-80gb", "h100-80gb"),
        ("h100", "h100-80gb"),
        ("nvidia-h200-141gb", "h200-141gb"),
        ("NVIDIA-B200", "b200"),
        ("nvidia-a100-80gb", "a100-80gb"),
        ("NVIDIA-A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA-L40S", "l40s"),
        ("nvidia-l4", "l4"),
        ("NVIDIA-A10G", "a10g"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx-pro-6000"),
        ("cpu", "cpu"),
        # Not these: 40 GB, 48 GB of another card, 94 GB, less bandwidth, another package.
        ("nvidia-tesla-a100", None),
        ("NVIDIA-A100-SXM4-40GB", None),
        ("NVIDIA-L40", None),
        ("NVIDIA-H100-NVL", None),
        ("NVIDIA-H100-PCIe", None),
        ("NVIDIA-GH200-480GB", None),
        ("NVIDIA-GB200", None),
        ("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", None),
        ("nvidia-tesla-t4", None),
        ("", None),
        (None, None),
    ],
)
def test_what_a_label_means(stated: str | None, kind: str | None) -> None:
    assert accelerator_type(stated) == kind


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("nvidia-tesla-a100", "unknown accelerator"),
        ("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "a slice of a GPU"),
        ("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", "a slice of a GPU"),
    ],
)
def test_a_gpu_that_nobody_measured_is_not_planned_as_another(run: Any, tmp_path: Path, label: str, words: str) -> None:
    code, _, err = run("plan", labelled(tmp_path, label, "nvidia.com/gpu"), "--format", "json")
    error = json.loads(err)["error"]
    assert (code, error["code"]) == (2, "unknown-accelerator")
    assert words in error["message"]
    assert "80gb" in error["fix"]


def test_a_pod_that_asks_for_a_slice_is_not_planned_on_the_whole(run: Any, tmp_path: Path) -> None:
    code, _, err = run("plan", labelled(tmp_path, "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-3g.40gb"))
    assert code == 2
    assert "nvidia.com/mig-3g.40gb is a slice" in err
    assert run("validate", labelled(tmp_path, "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", "nvidia.com/gpu"))[0] in (0, 1)


def labelled(folder: Path, label: str, resource: str) -> str:
    file = Path(manifest(folder, "Qwen/Qwen3-8B", "--max-model-len=4096"))
    document = yaml.safe_load(file.read_text())
    template = document["spec"]["template"]
    del template["metadata"]
    template["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": label}
    template["spec"]["containers"][0]["resources"]["limits"] = {resource: "1"}
    file.write_text(yaml.safe_dump(document))
    return str(file)
