"""Why an export is refused."""

from rewirl.errors import Refused


class ExportError(Refused, ValueError):
    """An export that cannot be; the message says what was wrong and what would be right."""
