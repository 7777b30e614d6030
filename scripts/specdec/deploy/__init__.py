"""Deploy an environment, prove that it serves and speculates, measure it, and take it away again."""
