"""Why two texts got their score: phrases that match, what is left over, what each phrase carries."""
