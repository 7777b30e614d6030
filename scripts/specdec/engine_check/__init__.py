"""Do chart and engine agree? The real parser and SpeculativeConfig of a version are asked what the chart was asked.

`python -m specdec.engine_check VERSION PYTHON` asks the environment of that python; `--build FOLDER` in the place of
PYTHON makes one first (about 6 GB). Exit 1 when they differ in anything, 2 when they could not be compared.
"""
