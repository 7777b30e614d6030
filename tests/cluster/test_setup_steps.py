"""Set-up: steps run once, resume after an interruption, in the right order, one set-up at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from setup.dag import Runner, SetupError, Step, Work, in_order, lock

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


class Workshop:
    """Steps that write a file each, and the order in which they ran."""

    def __init__(self, home: Path) -> None:
        self.home, self.ran, self.said = home, [], []

    def step(self, name: str, *needs: str, inputs: tuple[Path | str, ...] = (), lane: str = "cpu") -> Step:
        output = self.home / f"{name}.out"

        def run(work: Work) -> None:
            self.ran.append(name)
            (work.scratch / "made").write_text(name)
            work.put(work.scratch / "made", output)

        return Step(name, lane, run, inputs, (output,), needs)

    def run(self, *steps: Step) -> list[str]:
        self.ran = []
        by_name = {step.name: step for step in steps}
        Runner(self.home, self.said.append).run(in_order(by_name, by_name))
        return self.ran


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "tools")


def test_a_second_run_does_nothing(workshop: Workshop) -> None:
    step = workshop.step("a")
    assert workshop.run(step) == ["a"]
    assert workshop.run(step) == []


def test_a_step_runs_again_when_an_input_changes(workshop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("one")
    assert workshop.run(workshop.step("a", inputs=(file,))) == ["a"]
    file.write_text("two")
    assert workshop.run(workshop.step("a", inputs=(file,))) == ["a"]
    assert workshop.run(workshop.step("a", inputs=(file,))) == []


def test_a_file_added_to_an_input_folder_is_a_change(workshop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module x")
    assert workshop.run(workshop.step("a", inputs=(folder,))) == ["a"]
    (folder / "main.go").write_text("package main")
    assert workshop.run(workshop.step("a", inputs=(folder,))) == ["a"]


def test_a_step_runs_again_when_what_it_made_is_gone(workshop: Workshop) -> None:
    step = workshop.step("a")
    workshop.run(step)
    (workshop.home / "a.out").unlink()
    assert workshop.run(step) == ["a"]


def test_a_step_comes_after_what_it_needs(workshop: Workshop) -> None:
    steps = (
        workshop.step("image", "engine", "base"),
        workshop.step("engine", "uv"),
        workshop.step("base"),
        workshop.step("uv"),
    )
    ran = workshop.run(*steps)
    assert sorted(ran) == ["base", "engine", "image", "uv"]
    assert ran.index("uv") < ran.index("engine") < ran.index("image")
    assert ran.index("base") < ran.index("image")


def test_steps_that_need_each_other_are_refused(workshop: Workshop) -> None:
    with pytest.raises(SetupError, match="a → b → a"):
        workshop.run(workshop.step("a", "b"), workshop.step("b", "a"))


def test_a_download_runs_beside_a_build(workshop: Workshop) -> None:
    """Each of the two waits until the other runs: alone, neither would end."""
    together = threading.Barrier(2, timeout=20)

    def meet(_: Work) -> None:
        together.wait()

    workshop.run(Step("download", "network", meet, (), ()), Step("build", "cpu", meet, (), ()))


def test_two_builds_never_run_at_once(workshop: Workshop) -> None:
    busy = threading.Lock()

    def build(_: Work) -> None:
        assert busy.acquire(blocking=False), "two builds at once"
        time.sleep(0.05)
        busy.release()

    workshop.run(*(Step(f"build-{index}", "cpu", build, (), ()) for index in range(3)))


def test_a_failed_step_shows_its_last_lines_and_what_to_do_and_the_others_finish(workshop: Workshop) -> None:
    def fail(work: Work) -> None:
        work.command("sh", "-c", "echo no route to host; exit 7")

    broken = Step("broken", "cpu", fail, (), (), fix="check the network")
    with pytest.raises(SetupError, match="broken"):
        workshop.run(broken, workshop.step("after", "broken"), workshop.step("other"))
    assert workshop.ran == ["other"]
    told = "\n".join(workshop.said)
    assert "no route to host" in told
    assert "exit code 7" in told
    assert "check the network" in told
    assert "skip   after" in told
    assert workshop.run(workshop.step("other")) == [], "what was finished stays finished"


def test_an_interrupted_download_is_tried_again(workshop: Workshop, tmp_path: Path) -> None:
    """The command fails twice, as a connection that drops does, and then works."""
    script = f'echo x >> {tmp_path}/tries; [ "$(wc -l < {tmp_path}/tries)" -ge 3 ]'
    workshop.run(Step("get", "network", lambda work: work.command("sh", "-c", script, attempts=3), (), ()))
    assert (tmp_path / "tries").read_text().count("x") == 3


def test_half_of_a_step_leaves_nothing_in_place(workshop: Workshop) -> None:
    place = workshop.home / "engine"

    def half(work: Work) -> None:
        (work.scratch / "engine").mkdir()
        (work.scratch / "engine" / "part").write_text("half")
        raise SetupError("the disk went away")

    with pytest.raises(SetupError):
        workshop.run(Step("engine", "cpu", half, (), (place,)))
    assert not place.exists()
    assert not list((workshop.home / "tmp").iterdir())


def test_a_nearly_full_disk_is_found_before_anything_starts(workshop: Workshop) -> None:
    greedy = Step("huge", "cpu", lambda _: workshop.ran.append("huge"), (), (), gib=10**9)
    with pytest.raises(SetupError, match=r"needs about 1000000000\.0 GiB of disk"):
        workshop.run(greedy)
    assert workshop.ran == []


def test_a_second_set_up_waits_for_the_first(tmp_path: Path) -> None:
    said: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with lock(tmp_path, said.append):
            entered.set()

    with lock(tmp_path, said.append):
        thread = threading.Thread(target=second)
        thread.start()
        while not said:
            time.sleep(0.01)
        assert str(os.getpid()) in said[0]
        assert not entered.is_set()
    thread.join(timeout=20)
    assert entered.is_set()


INTERRUPTED = """
import sys
sys.path.insert(0, {scripts!r})
from pathlib import Path
from setup.dag import Runner, Step
home = Path({home!r})
step = Step("slow", "network", lambda work: work.command("sh", "-c", "echo $$ > {home}/child; exec sleep 600"), (), ())
try:
    Runner(home, print).run([step])
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_ends_the_running_command_too(tmp_path: Path) -> None:
    code = INTERRUPTED.format(scripts=str(SCRIPTS), home=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # As a terminal starts it: a job in the background ignores SIGINT, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    child = tmp_path / "child"
    while not (child.exists() and child.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    state = Path(f"/proc/{child.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
    assert not (tmp_path / "stamp" / "slow").exists()
