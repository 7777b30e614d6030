"""Asks an endpoint for its models and a completion. Arguments: base URL, model, seconds until it gives up."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

base, model, patience = sys.argv[1], sys.argv[2], float(sys.argv[3])
deadline = time.monotonic() + patience
key = os.environ.get("VLLM_API_KEY")
headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def ask(path, body=None):
    """The answer to one request as JSON; tried again while the endpoint is not there yet."""
    while True:
        request = urllib.request.Request(
            base + path,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{base}{path}: {error}") from error
            time.sleep(2)


answer = ask("/v1/completions", {"model": model, "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0})
usage = answer["usage"]
if usage["completion_tokens"] < 1:
    raise SystemExit(f"no tokens: {answer}")
print(f"{model} answered {answer['choices'][0]['text']!r}: {usage}")
