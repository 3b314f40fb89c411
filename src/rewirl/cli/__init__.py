"""The command line: `rewirl train ds-td3 HalfCheetah-v5`.

`commands/` has a file for each command, `ui/` what they share. Nothing else imports from here.
"""

from rewirl.cli.main import main

__all__ = ["main"]
