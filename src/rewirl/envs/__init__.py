"""Environments: creating and checking them, their names, the task catalogue, rendering.

Learning and files are elsewhere.
"""
