"""Douglas: soft bins trained by a GEMINI."""
