"""Run by the engine's own Python: argument lists on stdin, what the engine makes of each on stdout, both JSON."""

import dataclasses
import json
import sys
from typing import Any

from vllm.config import SpeculativeConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

KEPT = [
    "model",
    "revision",
    "served_model_name",
    "tensor_parallel_size",
    "max_model_len",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "enforce_eager",
    "trust_remote_code",
    "speculative_config",
    "shutdown_timeout",
]


def parsed(argv: list[str]) -> dict[str, Any]:
    namespace = make_arg_parser(FlexibleArgumentParser()).parse_args(argv)
    arguments = AsyncEngineArgs.from_cli_args(namespace)
    return {**{name: getattr(arguments, name) for name in KEPT}, "port": namespace.port}


json.dump(
    {
        "fields": [field.name for field in dataclasses.fields(SpeculativeConfig)],
        "parsed": {name: parsed(argv) for name, argv in json.load(sys.stdin).items()},
    },
    sys.stdout,
)
