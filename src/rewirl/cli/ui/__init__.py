"""What commands share: parser, output, tables, and what a person sees before, during and after a run.

No command lives here.
"""
