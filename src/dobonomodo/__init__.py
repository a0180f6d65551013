"""A declarative computation engine for period calculations on Spark."""

__version__ = "0.1.0"
