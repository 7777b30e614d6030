"""Plan, check, deploy and measure speculative decoding with vLLM on Kubernetes."""

__version__ = "0.1.0"
