"""Where named corpora are published, and how their published files become the files of the catalogue."""
