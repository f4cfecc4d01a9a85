"""What bench/btio/run.py measures, and what it says of the samples."""
