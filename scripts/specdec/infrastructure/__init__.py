"""What nodes look like to pods in an environment's GPU pools, and whether the chart's pods can run there."""
