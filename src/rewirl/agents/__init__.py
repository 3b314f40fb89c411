"""Agents: one readable update each, line by line as in their papers; their options; the catalogue of methods.

No environments, no files, and no kernels: networks come from `nn/`.
"""

from rewirl.agents.actor_critic import ActorCritic
from rewirl.agents.agent import Agent, Diverged
from rewirl.agents.box import ActionBox
from rewirl.agents.costs import Costs
from rewirl.agents.methods import METHODS, Method, costs, method, register_method
from rewirl.agents.options import Options, SACOptions, TD3Options, WiringOptions
from rewirl.agents.sac import SACAgent
from rewirl.agents.td3 import TD3Agent
from rewirl.agents.transitions import Transitions

__all__ = [
    "METHODS",
    "ActionBox",
    "ActorCritic",
    "Agent",
    "Costs",
    "Diverged",
    "Method",
    "Options",
    "SACAgent",
    "SACOptions",
    "TD3Agent",
    "TD3Options",
    "Transitions",
    "WiringOptions",
    "costs",
    "method",
    "register_method",
]
