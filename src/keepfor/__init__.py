"""Makes what an AI agent remembers expire on a clock."""

__version__ = "0.1.0"
