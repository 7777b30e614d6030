"""The planner: memory, speed, K and cost of a target with its draft, before a GPU is bought."""
