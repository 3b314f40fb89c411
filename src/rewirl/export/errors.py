"""The error of an export that is refused."""

from rewirl.errors import Refused


class ExportError(Refused, ValueError):
    """An impossible export; the message says what is wrong and what would be right."""
