"""Hostile inputs through the command line: a file for each kind of input; `hunting.py` runs them."""
