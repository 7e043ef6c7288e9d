"""Each kind of stage: how it is read, started, planned and trained. There is one file per kind."""
