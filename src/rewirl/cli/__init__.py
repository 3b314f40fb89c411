"""The command line: `rewirl train ds-td3 HalfCheetah-v5`.

`commands/` has one file per command, `ui/` shared code. No other package imports from here.
"""

from rewirl.cli.main import main

__all__ = ["main"]
