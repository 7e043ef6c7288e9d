"""Words, phrases and who makes them: the spans that an aligner pairs."""
