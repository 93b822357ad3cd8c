"""`python -m engram` is `engram`."""

from engram.cli.main import main

main()
