"""Explain the score of two texts: phrases that match, phrases that do not, and what each contributes to
the score.
"""
