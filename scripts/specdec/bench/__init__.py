"""The benchmark of a deployed release: every engine that serves one target, under the same load, in turn."""
