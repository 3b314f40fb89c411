"""What deploying says when it is given, or asked for, something that cannot be."""

from rewirl.errors import Refused


class ExportError(Refused, ValueError):
    """An export that cannot be; the message says what was wrong and what would be right."""


class PolicyFileError(Refused, ValueError):
    """A file that is not what it should be; the message names it and says what is wrong."""
