"""Runs in a pod, standard library alone: clients that stream answers one after another, ask once and never again.

usage: load.py HOST PORT MODEL CLIENTS TOKENS STOP_FILE. Each client asks every prompt once and goes on until STOP_FILE
is there; an answer begun is always read to its end. Prints one JSON document: {"answers": [[client, prompt, tokens]],
"broken": [text]}.
"""

from __future__ import annotations

import http.client
import json
import sys
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


def ask(host: str, port: int, body: dict[str, Any]) -> int:
    """Tokens that arrived for one streamed answer, counted by their ids. Raises where the stream is cut."""
    connection = http.client.HTTPConnection(host, port, timeout=120)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"HTTP {response.status}: {response.read(200).decode(errors='replace')}")
        tokens = 0
        for line in response:
            data = line.decode().removeprefix("data:").strip()
            if data == "[DONE]":
                return tokens
            if data:
                chunk = json.loads(data)
                if "error" in chunk:
                    raise OSError(f"the stream broke off: {data}")
                tokens += sum(len(choice.get("token_ids") or []) for choice in chunk.get("choices", []))
        raise OSError(f"the stream ended without [DONE] after {tokens} tokens")
    finally:
        connection.close()


def main() -> None:
    host, port, model, clients, tokens, stop = sys.argv[1:]
    answers: list[tuple[int, int, int]] = []
    broken: list[str] = []

    def client(number: int) -> None:
        rounds = 0
        while rounds < len(PROMPTS) or not Path(stop).exists():
            index = (number + rounds) % len(PROMPTS)
            body = {"model": model, "prompt": PROMPTS[index], "max_tokens": int(tokens), "temperature": 0,
                    "ignore_eos": True, "return_token_ids": True, "stream": True}  # fmt: skip
            try:
                answers.append((number, index, ask(host, int(port), body)))
            except (OSError, http.client.HTTPException, ValueError) as error:
                broken.append(f"client {number}, prompt {index}: {error or type(error).__name__}")
            rounds += 1

    with ThreadPoolExecutor(int(clients)) as pool:
        list(pool.map(client, range(int(clients))))
    print(json.dumps({"answers": answers, "broken": broken}))


if __name__ == "__main__":
    main()
