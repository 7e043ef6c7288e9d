"""The keys of a recipe, without torch: a file per kind of stage, the shared parts, and the recipe itself."""
