"""What should happen, decided by pure functions: no clock, no file, no database."""
