"""The command line: `rewirl train ds-td3 HalfCheetah-v5`.

`commands/` has one file per command, `ui/` what they share. Nothing outside imports from here.
"""

from rewirl.cli.main import main

__all__ = ["main"]
