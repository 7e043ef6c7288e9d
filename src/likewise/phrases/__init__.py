"""Words and phrases of texts, the phrasers that find them, and the aligner that links them."""
