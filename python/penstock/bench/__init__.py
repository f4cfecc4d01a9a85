"""Measuring: samples, sessions and sweeps, and the statistics that say what they show."""
