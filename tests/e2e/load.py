"""Runs in a pod, standard library alone: clients that stream answers one after another, ask once and never again.

usage: load.py HOST PORT MODEL CLIENTS TOKENS STOP_FILE. Each client asks every prompt once and goes on until STOP_FILE
is there; an answer begun is always read to its end. Prints one JSON document: {"answers": [[client, prompt, tokens]],
"times": [[begun, first token, end]] of the answers, "broken": [text], "broken_begun": [begun]}; times in Unix seconds.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PROMPTS = (
    "A draft model proposes tokens and",
    "The scheduler decides which requests",
    "When a pod ends, its streams",
    "The acceptance rate of a pair is",
    "def decode(step):",
)


def ask(host: str, port: int, body: dict[str, Any]) -> tuple[int, float]:
    """Tokens that arrived for one streamed answer, by their ids, and when the first did. Raises where it is cut."""
    connection = http.client.HTTPConnection(host, port, timeout=120)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"HTTP {response.status}: {response.read(200).decode(errors='replace')}")
        tokens, first = 0, 0.0
        for line in response:
            data = line.decode().removeprefix("data:").strip()
            if data == "[DONE]":
                return tokens, first
            if data:
                chunk = json.loads(data)
                if "error" in chunk:
                    raise OSError(f"the stream broke off: {data}")
                tokens += sum(len(choice.get("token_ids") or []) for choice in chunk.get("choices", []))
                first = first or time.time()
        raise OSError(f"the stream ended without [DONE] after {tokens} tokens")
    finally:
        connection.close()


def main() -> None:
    host, port, model, clients, tokens, stop = sys.argv[1:]
    answers: list[tuple[int, int, int]] = []
    times: list[tuple[float, float, float]] = []
    broken: list[tuple[float, str]] = []

    def client(number: int) -> None:
        rounds = 0
        while rounds < len(PROMPTS) or not Path(stop).exists():
            index = (number + rounds) % len(PROMPTS)
            body = {"model": model, "prompt": PROMPTS[index], "max_tokens": int(tokens), "temperature": 0,
                    "ignore_eos": True, "return_token_ids": True, "stream": True}  # fmt: skip
            begun = time.time()
            try:
                count, first = ask(host, int(port), body)
                answers.append((number, index, count))
                times.append((begun, first, time.time()))
            except (OSError, http.client.HTTPException, ValueError) as error:
                broken.append((begun, f"client {number}, prompt {index}: {str(error) or type(error).__name__}"))
            rounds += 1

    with ThreadPoolExecutor(int(clients)) as pool:
        list(pool.map(client, range(int(clients))))
    told = {"answers": answers, "times": times, "broken": [text for _, text in broken]}
    print(json.dumps({**told, "broken_begun": [begun for begun, _ in broken]}))


if __name__ == "__main__":
    main()
