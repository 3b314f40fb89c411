"""Tuning: the search for a method's λ, η and e on a task, by Optuna.

The runs of its trials are done by the workers of `sweep/`.
"""
