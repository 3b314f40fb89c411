"""Environments: creating and checking them, their names, the task catalogue, rendering.

No learning and no files here.
"""
