"""Clients that stream answers one after another, ask once and never again, and count every token that came."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from specdec.deploy.endpoint import Endpoint
from specdec.errors import SpecdecError

PROMPTS = (
    "A draft model proposes tokens and",
    "The scheduler decides which requests",
    "When a pod ends, its streams",
    "The acceptance rate of a pair is",
    "def decode(step):",
)
MAX_TOKENS = 96


@dataclass
class Tally:
    """Tokens of each answer by (client, prompt), and the answers that broke."""

    answers: list[tuple[int, int, int]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def ask(endpoint: Endpoint, model: str, prompt: str) -> int:
    """Tokens that arrived for one streamed answer, by their ids. Raises where the stream is cut."""
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    tokens = 0
    for chunk in endpoint.stream("/v1/completions", body, timeout=120):
        for choice in chunk.data.get("choices", []):
            tokens += len(choice.get("token_ids") or [])
    return tokens


def client(number: int, endpoint: Endpoint, model: str, stop: threading.Event, tally: Tally) -> None:
    """Ask for every prompt once, then go on until told to stop; an answer begun is always read to its end."""
    rounds = 0
    while rounds < len(PROMPTS) or not stop.is_set():
        index = (number + rounds) % len(PROMPTS)
        try:
            tally.answers.append((number, index, ask(endpoint, model, PROMPTS[index])))
        except SpecdecError as error:
            tally.broken.append(f"client {number}, prompt {index}: {error}")
        rounds += 1


class Load:
    """Four clients in the background: `with Load(...) as load: ...`, then `load.tally`."""

    def __init__(self, endpoint: Endpoint, model: str, clients: int = 4) -> None:
        self.endpoint, self.model, self.clients = endpoint, model, clients
        self.tally, self.stop = Tally(), threading.Event()
        self.pool = ThreadPoolExecutor(clients)

    def __enter__(self) -> Load:
        self.futures = [
            self.pool.submit(client, number, self.endpoint, self.model, self.stop, self.tally)
            for number in range(self.clients)
        ]
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop.set()
        for future in self.futures:
            future.result(timeout=300)
        self.pool.shutdown()
