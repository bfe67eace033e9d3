"""Brute force from the definitions of the papers, slow and plain: what the engine agrees with."""
