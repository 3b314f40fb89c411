"""The commands, one file each: its arguments, and what it does.

What two commands share is in `ui/`.
"""
