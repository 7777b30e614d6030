"""Where models lie: buckets, boot disks, images, raw NVMe, and the Job that fetches once; mirrors and extra parts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import CHART, DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, Rendering, lookup, merged, pair
from .test_pods import volume

OFFLINE = {"huggingFace": {"offline": True}}
BUCKET = {"cloud": "gke", "modelCache": {"type": "gcsFuse", "gcsFuse": {"bucket": "models"}}}
DISK = {"cloud": "gke", "modelCache": {"type": "bootDisk", "bootDisk": {"diskImage": "models-1"}}, **OFFLINE}
IMAGE = {"modelCache": {"type": "image", "image": {"reference": "example.com/models:1"}}, **OFFLINE}
SHARED = {"type": "pvc", "pvc": {"accessMode": "ReadWriteMany"}, "prefetch": {"mode": "job"}}
NEW = ("--kube-version", "1.33.0")


def mount(container: dict[str, Any], name: str = "models") -> dict[str, Any]:
    (found,) = [each for each in container["volumeMounts"] if each["name"] == name]
    return found


def the_job(rendering: Rendering) -> dict[str, Any]:
    (found,) = rendering.all("Job")
    return found


def test_a_bucket_is_mounted_by_gke_s_sidecar_as_the_pod_s_user(render):
    rendering = render(pair(**BUCKET))
    bucket = volume(rendering.pod(), "models")["csi"]
    assert bucket["driver"] == "gcsfuse.csi.storage.gke.io"
    assert bucket["volumeAttributes"]["bucketName"] == "models"
    options = bucket["volumeAttributes"]["mountOptions"].split(",")
    assert {"implicit-dirs", "file-cache:enable-parallel-downloads:true", "uid=2000", "gid=2000"} <= set(options)
    annotations = rendering.workload()["spec"]["template"]["metadata"]["annotations"]
    assert annotations["gke-gcsfuse/volumes"] == "true"
    assert annotations["gke-gcsfuse/ephemeral-storage-limit"] == "10Gi"
    assert volume(rendering.pod(), "gke-gcsfuse-cache")["emptyDir"] == {"sizeLimit": "200Gi"}


def test_only_who_fetches_may_write_to_the_bucket(render):
    in_the_pod = render(pair(**BUCKET))
    assert volume(in_the_pod.pod(), "models")["csi"]["readOnly"] is False
    by_a_job = render(merged(pair(**BUCKET), {"modelCache": {"prefetch": {"mode": "job"}}}))
    assert volume(by_a_job.pod(), "models")["csi"]["readOnly"] is True
    assert volume(the_job(by_a_job)["spec"]["template"]["spec"], "models")["csi"]["readOnly"] is False
    offline = render(merged(pair(**BUCKET), OFFLINE))
    assert volume(offline.pod(), "models")["csi"]["readOnly"] is True


def test_a_bucket_s_tuning_follows_the_values(render):
    rendering = render("gcs-fuse")
    attributes = volume(rendering.pod(), "models")["csi"]["volumeAttributes"]
    assert attributes["mountOptions"].endswith("uid=2000,gid=2000,only-dir:llama")
    assert attributes["gcsfuseMetadataPrefetchOnMount"] == "false"
    assert volume(rendering.pod(), "gke-gcsfuse-cache")["emptyDir"] == {"medium": "Memory", "sizeLimit": "40Gi"}
    for template in (rendering.workload()["spec"]["template"], the_job(rendering)["spec"]["template"]):
        annotations = template["metadata"]["annotations"]
        assert annotations["gke-gcsfuse/cpu-limit"] == "4"
        assert annotations["gke-gcsfuse/memory-limit"] == "8Gi"


def test_a_job_fetches_once_and_the_engines_wait_without_the_token(render):
    rendering = render(pair(modelCache=SHARED, engine={"replicas": 3}, huggingFace={"tokenSecret": {"name": "hf"}}))
    job = the_job(rendering)["spec"]["template"]["spec"]
    (fetching,) = job["containers"]
    models = [TARGET, TARGET_REVISION, DRAFT, DRAFT_REVISION]
    assert fetching["args"] == models
    assert [each for each in fetching["env"] if each["name"] == "HF_TOKEN"]
    assert not mount(fetching).get("readOnly")
    (waiting,) = rendering.pod()["initContainers"]
    assert waiting["name"] == "await-models"
    assert waiting["args"] == models
    assert mount(waiting)["readOnly"] is True
    claims = [volume(spec, "models")["persistentVolumeClaim"] for spec in (job, rendering.pod())]
    assert claims[0] == claims[1]
    assert rendering.one("PersistentVolumeClaim", claims[0]["claimName"])
    for container in (waiting, rendering.container()):
        assert "HF_TOKEN" not in [each["name"] for each in container["env"]]


def test_other_models_are_another_job(render):
    def name(**over: Any) -> str:
        return the_job(render(pair(modelCache=SHARED, **over)))["metadata"]["name"]

    first = name()
    assert first == name()
    assert first != name(engine={"model": {"revision": "c" * 40}})
    assert first != name(engine={"version": "0.31.0"})
    assert first.startswith("speculative-prefetch-")


def test_a_job_s_name_fits_into_a_label(render):
    name = "n" * 40
    job = the_job(render(pair(modelCache=SHARED, engines={name: {}})))
    assert len(job["metadata"]["name"]) <= 63


def test_a_baseline_shares_the_job(render):
    rendering = render(pair(modelCache=SHARED, baseline={"enabled": True}))
    assert the_job(rendering)
    (waiting,) = rendering.pod("speculative-baseline")["initContainers"]
    assert waiting["args"] == [TARGET, TARGET_REVISION]


def test_waiting_ends_when_the_last_model_is_complete(tmp_path: Path):
    def complete(repository: str, commit: str) -> None:
        snapshot = tmp_path / f"models--{repository.replace('/', '--')}" / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / ".complete").touch()

    script = (CHART / "files" / "await.py").read_text().replace("time.sleep(5)", "time.sleep(0.05)")
    complete("a/b", "1" * 40)
    command = [sys.executable, "-c", script, "a/b", "1" * 40, "c/d", "2" * 40]
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        complete("c/d", "2" * 40)
        said, _ = waiting.communicate(timeout=20)
    assert waiting.returncode == 0
    # Once for a while, not in every round.
    assert said.count("waiting for c/d") == 1
    assert "waiting for a/b" not in said


def test_a_boot_disk_is_mounted_where_gke_puts_it(render):
    rendering = render(pair(**DISK))
    assert volume(rendering.pod(), "models")["hostPath"] == {
        "path": "/mnt/disks/gke-secondary-disks/gke-models-1-disk",
        "type": "Directory",
    }
    assert mount(rendering.container())["readOnly"] is True
    assert "initContainers" not in rendering.pod()


def test_an_image_is_a_volume_and_comes_from_the_mirror_too(render):
    rendering = render(pair(**IMAGE, **{"global": {"imageRegistry": "mirror.internal"}}), *NEW)
    assert volume(rendering.pod(), "models")["image"] == {
        "reference": "mirror.internal/example.com/models:1",
        "pullPolicy": "IfNotPresent",
    }
    assert mount(rendering.container())["readOnly"] is True


def test_an_image_on_a_boot_disk_draws_pods_to_the_nodes_that_have_it(render):
    selector = render("image-volume", *NEW).pod()["nodeSelector"]
    label = "cloud.google.com.node-restriction.kubernetes.io/gke-secondary-boot-disk-models-2026-11"
    assert selector[label] == "CONTAINER_IMAGE_CACHE.example-project"
    assert selector["node.kubernetes.io/instance-type"] == "a3-highgpu-8g"


def test_pods_wait_for_the_directory_that_the_daemon_set_makes(render):
    rendering = render("nvme")
    models = volume(rendering.pod(), "models")["hostPath"]
    assert models == {"path": "/mnt/k8s-disks/0/models", "type": "Directory"}
    (daemon,) = rendering.all("DaemonSet")
    spec = daemon["spec"]["template"]["spec"]
    (prepare,) = spec["initContainers"]
    assert prepare["args"][1:] == [
        "prepare-nvme",
        "/mnt/k8s-disks/0",
        models["path"],
        "2000:2000",
        "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*",
    ]
    assert spec["nodeSelector"] == rendering.pod()["nodeSelector"]
    assert spec["tolerations"] == rendering.pod()["tolerations"]


class Node:
    """A node made of stand-ins for its programs, which write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        self.calls.touch()
        (folder / "bin").mkdir()
        for name in ("mkfs.ext4", "mount", "chown"):
            self.program(name, f'echo "{name} $*" >> {self.calls}')
        # Arrays of an earlier start are looked for first; --assemble makes nothing.
        self.program("mdadm", f'[ "$1" = --assemble ] || echo "mdadm $*" >> {self.calls}')
        self.program("df", "echo df")
        self.program("mountpoint", "exit 1")
        self.program("blkid", "exit 2")
        # Block devices cannot be made without rights: plain files stand for them.
        self.script = (CHART / "files" / "prepare-nvme.sh").read_text().replace('[ -b "$name" ]', '[ -f "$name" ]')

    def program(self, name: str, body: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def disks(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def run(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        point = self.folder / "mnt"
        arguments = ["prepare-nvme", str(point), str(point / "models"), "2000:2000", str(self.folder / "nvme*")]
        command = ["sh", "-c", self.script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().replace(f"{self.folder}/", "").splitlines()


OPTIONS = "-q -L vllm-models -E lazy_itable_init=1,lazy_journal_init=1"


def test_empty_disks_become_one_file_system(tmp_path: Path):
    node = Node(tmp_path)
    node.disks("nvme0", "nvme1")
    assert node.run().returncode == 0
    assert node.called == [
        "mdadm --create /dev/md/vllm-models --run --level=0 --raid-devices=2 nvme0 nvme1",
        f"mkfs.ext4 {OPTIONS} /dev/md/vllm-models",
        "mount -o noatime,discard /dev/md/vllm-models mnt",
        "chown 2000:2000 mnt/models",
    ]


def test_a_single_disk_needs_no_array(tmp_path: Path):
    node = Node(tmp_path)
    node.disks("nvme0")
    assert node.run().returncode == 0
    assert node.called[0] == f"mkfs.ext4 {OPTIONS} nvme0"


def test_a_disk_with_anything_on_it_is_left_alone(tmp_path: Path):
    node = Node(tmp_path)
    node.disks("nvme0", "nvme1")
    node.program("blkid", 'case "$*" in *nvme0) exit 0 ;; *) exit 2 ;; esac')
    done = node.run()
    assert "nvme0 has something on it and is left alone" in done.stdout
    assert node.called[0] == f"mkfs.ext4 {OPTIONS} nvme1"


def test_without_an_empty_disk_nothing_is_made_and_it_says_why(tmp_path: Path):
    node = Node(tmp_path)
    done = node.run()
    assert done.returncode == 1
    assert "no empty NVMe disk on this node" in done.stderr
    assert node.called == []


def test_the_file_system_of_an_earlier_start_is_mounted_again(tmp_path: Path):
    node = Node(tmp_path)
    node.disks("nvme0")
    # Its label is found once its array is put together.
    node.program("mdadm", f'[ "$*" = "--assemble --scan" ] && touch {tmp_path / "assembled"}')
    found = f"[ -e {tmp_path / 'assembled'} ] && echo /dev/md127"
    node.program("blkid", f'case "$*" in "-L vllm-models") {found} ;; *) exit 0 ;; esac')
    assert node.run().returncode == 0
    assert node.called == ["mount -o noatime,discard /dev/md127 mnt", "chown 2000:2000 mnt/models"]


def test_what_is_mounted_already_is_handed_over_alone(tmp_path: Path):
    node = Node(tmp_path)
    node.disks("nvme0")
    node.program("mountpoint", "exit 0")
    assert node.run().returncode == 0
    assert node.called == ["chown 2000:2000 mnt/models"]


def test_images_and_models_come_from_mirrors_that_are_trusted(render):
    rendering = render("air-gapped")
    for spec in (rendering.pod(), rendering.pod("speculative-router")):
        assert spec["imagePullSecrets"] == [{"name": "mirror-login"}]
        images = [each["image"] for each in spec["containers"] + spec.get("initContainers", [])]
        assert [image for image in images if not image.startswith("registry.example.internal/mirror/")] == []
    prefetch = rendering.pod()["initContainers"][-1]
    env = {each["name"]: each.get("value") for each in prefetch["env"]}
    assert env["HF_ENDPOINT"] == "https://hub.example.internal"
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        assert str(Path(env[variable]).parent) == mount(prefetch, "ca")["mountPath"]
    assert volume(rendering.pod(), "ca")["configMap"] == {
        "name": "trusted-authorities",
        "items": [{"key": "bundle.pem", "path": "ca.crt"}],
    }


@pytest.mark.parametrize("scenario", ["inference-pool", "nvme", "kserve", "gcs-fuse", "ingress"])
def test_no_image_passes_by_the_mirror(render, scenario):
    text = render(scenario, "--set", "global.imageRegistry=mirror.internal").text
    images = re.findall(r"^ *-? *image: (.+)$", text, re.MULTILINE)
    assert images
    assert [image for image in images if not image.strip('"').startswith("mirror.internal/")] == []


def test_an_engine_that_fetches_itself_knows_the_mirror(render):
    mirror = {"global": {"modelMirror": "https://hub.internal", "caBundle": {"configMap": "ca"}}}
    itself = render(pair(modelCache={"prefetch": {"enabled": False}}, **mirror))
    assert itself.env()["HF_ENDPOINT"] == "https://hub.internal"
    assert itself.env()["SSL_CERT_FILE"] == "/etc/vllm-speculative/ca/ca.crt"
    assert "HF_ENDPOINT" not in render(pair(**mirror)).env()


def test_extra_parts_reach_every_engine_s_pod(render):
    rendering = render("air-gapped")
    pod = rendering.pod()
    assert [each["name"] for each in pod["initContainers"]] == ["check-mirror", "prefetch"]
    assert [each["name"] for each in pod["containers"]] == ["engine", "tracing"]
    assert mount(rendering.container(), "templates")["mountPath"] == "/etc/chat-templates"
    assert volume(pod, "templates")["configMap"] == {"name": "chat-templates"}
    assert rendering.one("ConfigMap", "chat-templates")["data"] == {"release": "speculative"}


def test_extra_objects_may_be_text_that_is_a_template(render):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-more\n"
    assert render(lookup(extraObjects=[text])).one("ConfigMap", "speculative-more")


BAD: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, str, str], dict[str, Any]]] = {
    "a bucket without a name": (
        pair(cloud="gke", modelCache={"type": "gcsFuse"}),
        (),
        ("SD462", "modelCache.gcsFuse.bucket", "is empty"),
        pair(**BUCKET),
    ),
    "a bucket of google's on eks": (
        merged(pair(**BUCKET), {"cloud": "eks"}),
        (),
        ("SD463", "modelCache.type", "cloud is eks"),
        pair(**BUCKET),
    ),
    "a boot disk that should be written": (
        merged(pair(**DISK), {"huggingFace": {"offline": False}}),
        (),
        ("SD464", "huggingFace.offline", "cannot be written"),
        pair(**DISK),
    ),
    "an image that should be written": (
        merged(pair(**IMAGE), {"huggingFace": {"offline": False}}),
        NEW,
        ("SD464", "huggingFace.offline", "cannot be written"),
        pair(**IMAGE),
    ),
    "an image on an old cluster": (
        pair(**IMAGE),
        ("--kube-version", "1.32.4"),
        ("SD465", "modelCache.type", "Kubernetes v1.32.4"),
        pair(**IMAGE),
    ),
    "a job for caches that pods do not share": (
        pair(modelCache={"prefetch": {"mode": "job"}}),
        (),
        ("SD466", "modelCache.prefetch.mode", "would look into others"),
        pair(modelCache=SHARED),
    ),
    "a job for a branch": (
        pair(
            modelCache=SHARED,
            engine={"model": {"revision": "main"}},
            huggingFace={"allowMutableRevision": True},
        ),
        (),
        ("SD467", "modelCache.prefetch.mode", '"main"'),
        pair(modelCache=SHARED),
    ),
    "disks mounted where no model goes": (
        pair(modelCache={"type": "hostPath", "hostPath": {"path": "/data/models", "prepare": {"enabled": True}}}),
        (),
        ("SD468", "modelCache.hostPath.path", "does not lie in /mnt/disks/nvme0"),
        pair(modelCache={"type": "hostPath", "hostPath": {"prepare": {"enabled": True}}}),
    ),
    "disks that nothing uses": (
        pair(modelCache={"hostPath": {"prepare": {"enabled": True}}}),
        (),
        ("SD469", "modelCache.hostPath.prepare.enabled", "nothing would use"),
        pair(modelCache={"type": "hostPath", "hostPath": {"prepare": {"enabled": True}}}),
    ),
    "a volume that is there already": (
        pair(extraVolumes=[{"name": "shm", "emptyDir": {}}]),
        (),
        ("SD470", "extraVolumes[0].name", "one called shm"),
        pair(extraVolumes=[{"name": "more", "emptyDir": {}}]),
    ),
    "a preloaded image of no project": (
        merged(pair(cloud="gke", **IMAGE), {"modelCache": {"image": {"preloaded": {"diskImage": "d"}}}}),
        NEW,
        ("SD471", "modelCache.image.preloaded.project", "this is empty"),
        merged(
            pair(cloud="gke", **IMAGE), {"modelCache": {"image": {"preloaded": {"diskImage": "d", "project": "p"}}}}
        ),
    ),
}


@pytest.mark.parametrize("story", BAD)
def test_a_cache_without_the_models_is_refused(refused, render, story):
    values, options, (code, path, part), good = BAD[story]
    message = refused(values, *options)
    assert f"{code}: {path}" in message
    assert part in message
    render(good, *NEW)
