"""The commands, a file each: arguments, and what is done with them.

What two commands share is in `ui/`.
"""
