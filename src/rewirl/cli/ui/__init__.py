"""What commands share: parser, output, tables, and the displays before, during and after a run.

No command lives here.
"""
