"""Shared code of commands: parser, output, tables, and the displays before, during and after a run.

Commands are in `commands/`.
"""
