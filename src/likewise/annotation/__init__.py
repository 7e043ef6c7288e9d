"""The round trip of annotation: choose the pairs to rate next, and read the ratings that people gave."""
