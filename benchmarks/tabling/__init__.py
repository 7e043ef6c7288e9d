"""The tables of README and docs, one module per method; benchmarks/tables.py writes them."""
