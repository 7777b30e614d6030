"""The chart as a release: packaged, with the digests of the images that it was released with."""
