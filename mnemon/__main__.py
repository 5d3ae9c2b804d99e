"""`python -m mnemon` is the command line."""

from .cli import main

main()
