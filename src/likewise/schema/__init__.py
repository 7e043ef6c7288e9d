"""What a recipe may say, without torch: a file per kind of stage, the parts they share, the recipe itself."""
