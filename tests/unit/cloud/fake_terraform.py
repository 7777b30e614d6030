"""A `terraform` with a cloud of its own: what it makes is in files, so that a second resource would be seen.

The folder FAKE_CLOUD holds cloud.json (all that exists, and all that was ever made, in order), a state and a lock a
root, and script.json: {"fail": {"apply gke": TEXT}, "fail_at": ADDRESS, "pause": "apply gke", "seconds": S}. A paused
command touches `paused` and goes on when `go` appears. `interrupts` counts the signals that came.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["FAKE_CLOUD"])
ROOT = Path.cwd().name
WANTED = {
    "gke": {
        "module.cluster.google_compute_network.this[0]": ("google_compute_network", {"name": "inference-test"}),
        "module.cluster.google_container_cluster.this": (
            "google_container_cluster",
            {"name": "inference-test", "deletion_protection": True},
        ),
        'module.gpu_pool["l4"].google_container_node_pool.this': (
            "google_container_node_pool",
            {"name": "l4", "deletion_policy": "PREVENT"},
        ),
    },
    "platform": {
        "module.addons.helm_release.keda[0]": ("helm_release", {"name": "keda"}),
        "module.gpu_operator.helm_release.this[0]": ("helm_release", {"name": "gpu-operator"}),
    },
}
OUTPUT = {
    "cloud": "gke", "name": "inference-test", "location": "us-central1", "project": "my-project",
    "host": "https://inference-test.gke.goog", "ca_certificate": None, "gpu_stack": "gke-managed",
}  # fmt: skip
interrupted = 0


def read(name: str, default: Any) -> Any:
    file = FOLDER / name
    return json.loads(file.read_text()) if file.exists() else default


def write(name: str, value: Any) -> None:
    scratch = FOLDER / f"{name}.{os.getpid()}"
    scratch.write_text(json.dumps(value))
    scratch.replace(FOLDER / name)


def say(kind: str, message: str, level: str = "info", **more: Any) -> None:
    print(
        json.dumps({"@level": level, "@message": message, "@module": "terraform.ui", "type": kind, **more}), flush=True
    )


def resource(address: str) -> dict[str, Any]:
    return {"resource": {"addr": address, "resource_type": WANTED[ROOT][address][0]}}


def fail(summary: str, detail: str = "", address: str = "") -> None:
    found = {"severity": "error", "summary": summary, "detail": detail, "address": address}
    say("diagnostic", f"Error: {summary}", "error", diagnostic=found)
    sys.exit(1)


def pause(command: str) -> None:
    script = read("script.json", {})
    if script.get("pause") == f"{command} {ROOT}" and not (FOLDER / "go").exists():
        (FOLDER / "paused").write_text(str(os.getpid()))
        end = time.monotonic() + 600  # a test that failed leaves nobody behind for ever
        while not (FOLDER / "go").exists() and not interrupted and time.monotonic() < end:
            time.sleep(0.02)


def locked() -> Any:
    """The state's lock: a file that the kernel frees, or one that somebody left."""
    left = read(f"lock-{ROOT}.json", None)
    if left:
        info = "".join(f"  {key + ':':<11}{value}\n" for key, value in left.items())
        fail("Error acquiring the state lock", f"Error message: conditionNotMet\nLock Info:\n{info}")
    handle = (FOLDER / f"held-{ROOT}").open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        fail(
            "Error acquiring the state lock",
            "Error message: conditionNotMet\nLock Info:\n  ID:  1\n  Who: somebody@here\n",
        )
    return handle


def plan(destroy: bool, out: str) -> None:
    with locked():
        state = read(f"state-{ROOT}.json", {})
        creates = [] if destroy else [one for one in WANTED[ROOT] if one not in state]
        deletes = list(state) if destroy else []
        for address in creates:
            say("planned_change", f"{address}: Plan to create", change={**resource(address), "action": "create"})
        for address in deletes:
            say("planned_change", f"{address}: Plan to delete", change={**resource(address), "action": "delete"})
        counts = {"add": len(creates), "change": 0, "import": 0, "remove": len(deletes), "operation": "plan"}
        say("change_summary", f"Plan: {len(creates)} to add, 0 to change, {len(deletes)} to destroy.", changes=counts)
        pause("plan")
        Path(out).write_text(json.dumps({"creates": creates, "deletes": deletes, "state": sorted(state)}))


def apply(file: str) -> None:
    script = read("script.json", {})
    with locked():
        chosen = json.loads(Path(file).read_text())
        state = read(f"state-{ROOT}.json", {})
        if sorted(state) != chosen["state"]:
            fail("Saved plan is stale", "The given plan file can no longer be applied because the state was changed.")
        for address in chosen["creates"]:
            say("apply_start", f"{address}: Creating...", hook={**resource(address), "action": "create"})
            if script.get("fail_at") == address:
                fail(script["error"], script.get("detail", ""), address)
            time.sleep(script.get("seconds", 0))
            cloud = read("cloud.json", {"made": [], "there": []})
            write("cloud.json", {"made": [*cloud["made"], address], "there": [*cloud["there"], address]})
            state[address] = WANTED[ROOT][address][1]
            write(f"state-{ROOT}.json", state)
            say("apply_complete", f"{address}: Creation complete after 0s [id=x]", hook=resource(address))
            pause("apply")
            if interrupted:
                fail("execution halted")
        for address in reversed(chosen["deletes"]):
            say("apply_start", f"{address}: Destroying... [id=x]", hook={**resource(address), "action": "delete"})
            if script.get("fail_at") == address:
                fail(script["error"], script.get("detail", ""), address)
            cloud = read("cloud.json", {"made": [], "there": []})
            write("cloud.json", {**cloud, "there": [one for one in cloud["there"] if one != address]})
            del state[address]
            write(f"state-{ROOT}.json", state)
            say("apply_complete", f"{address}: Destruction complete after 0s", hook=resource(address))
            pause("destroy")
        counts = {"add": len(chosen["creates"]), "change": 0, "remove": len(chosen["deletes"]), "operation": "apply"}
        say("change_summary", "Apply complete!", changes=counts)


def show(file: str | None) -> None:
    state = read(f"state-{ROOT}.json", {})
    if file:
        chosen = json.loads(Path(file).read_text())
        changes = [
            {"address": address, "type": WANTED[ROOT][address][0], "mode": "managed",
             "change": {"actions": [action], "before": None, "after": None}}
            for action, key in (("create", "creates"), ("delete", "deletes")) for address in chosen[key]
        ]  # fmt: skip
        changes += read("script.json", {}).get("changes", [])
        outputs = read("script.json", {}).get("outputs", {})
        document = {"format_version": "1.2", "resource_changes": changes, "variables": {}, "output_changes": outputs}
        print(json.dumps(document))
        return
    held = [
        {"address": address, "mode": "managed", "type": WANTED[ROOT][address][0], "values": values}
        for address, values in state.items()
    ]
    print(json.dumps({"format_version": "1.0", "values": {"root_module": {"resources": held}}}))


def init(backend: str) -> None:
    noted = Path(".terraform/terraform.tfstate")
    noted.parent.mkdir(exist_ok=True)
    text = Path(backend).read_text()
    pause("init")
    noted.write_text(json.dumps({"backend": {"type": "gcs", "config": {"text": text}}}))
    print("Terraform has been successfully initialized!")


def unlock(identifier: str) -> None:
    left = read(f"lock-{ROOT}.json", None)
    if not left or left["ID"] != identifier:
        print(f'Error: Failed to unlock state: lock id "{identifier}" does not match existing lock', file=sys.stderr)
        sys.exit(1)
    (FOLDER / f"lock-{ROOT}.json").unlink()


def main(arguments: list[str]) -> None:
    command = arguments[0]
    options = dict(word.lstrip("-").partition("=")[::2] for word in arguments[1:] if word.startswith("-"))
    plain = [word for word in arguments[1:] if not word.startswith("-")]
    with (FOLDER / "journal").open("a") as journal:
        journal.write(f"{ROOT} {' '.join(arguments)}\n")
    if text := read("script.json", {}).get("fail", {}).get(f"{command} {ROOT}"):
        if command == "init":
            print(text, file=sys.stderr)
            sys.exit(1)
        summary, _, detail = text.partition("\n")
        fail(summary, detail)
    if command == "version":
        print(json.dumps({"terraform_version": read("script.json", {}).get("version", "1.11.4")}))
    elif command == "init":
        init(options["backend-config"])
    elif command == "plan":
        plan("destroy" in options, options["out"])
    elif command == "apply":
        apply(plain[0])
    elif command == "show":
        show(plain[0] if plain else None)
    elif command == "output":
        made = "module.cluster.google_container_cluster.this" in read(f"state-{ROOT}.json", {})
        print(json.dumps({"platform": {"value": OUTPUT}} if made else {}))
    elif command == "force-unlock":
        unlock(plain[0])
    elif command == "state":
        write(f"state-{ROOT}.json", {k: v for k, v in read(f"state-{ROOT}.json", {}).items() if k not in plain[1:]})
    else:
        sys.exit(f"fake terraform: {command}")


def count(_signal: int, _frame: object) -> None:
    global interrupted
    interrupted += 1
    (FOLDER / "interrupts").write_text(str(interrupted))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, count)
    main(sys.argv[1:])
