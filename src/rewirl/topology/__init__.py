"""Which links exist: initial wiring, and the rules that drop and grow.

Knows no networks and no reinforcement learning.
"""

from rewirl.topology.gradients import DenseGradient
from rewirl.topology.initial import DEFAULT_SPARSITY, erdos_renyi, layer_counts, link_counts, wire
from rewirl.topology.links import Links
from rewirl.topology.new_links import estimated_moments, moved_births
from rewirl.topology.rules import RULES, SET, Change, Dense, DropAndGrow, RigL, Rule, Static, as_rule

__all__ = [
    "DEFAULT_SPARSITY",
    "RULES",
    "SET",
    "Change",
    "Dense",
    "DenseGradient",
    "DropAndGrow",
    "Links",
    "RigL",
    "Rule",
    "Static",
    "as_rule",
    "erdos_renyi",
    "estimated_moments",
    "layer_counts",
    "link_counts",
    "moved_births",
    "wire",
]
