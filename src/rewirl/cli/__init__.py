"""Words that a person types: `rewirl train ds-td3 HalfCheetah-v5`."""

from rewirl.cli.main import main

__all__ = ["main"]
