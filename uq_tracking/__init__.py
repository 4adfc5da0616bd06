"""Judge predictive uncertainty where you already compare your models."""

__version__ = "0.1.0"
