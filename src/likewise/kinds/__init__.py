"""How each kind of stage is read, started, planned and trained: one file per kind, shared parts beside."""
