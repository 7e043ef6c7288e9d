"""Test sets drawn from known populations, and how often intervals and tests are right about them."""
