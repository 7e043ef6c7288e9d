"""The parts of benchmarks/shipped.py: what is measured of a model that comes with Likewise, and how."""
