"""Tuning: the search for a method's λ, η and e on a task, by Optuna.

The workers of `sweep/` train the runs of its trials.
"""
