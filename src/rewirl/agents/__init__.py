"""TD3 and SAC: one readable update each, on the sparse engine."""

from rewirl.agents.actor_critic import ActorCritic, Diverged
from rewirl.agents.box import ActionBox
from rewirl.agents.costs import Costs, costs
from rewirl.agents.methods import METHODS, Method, method
from rewirl.agents.options import Options, SACOptions, TD3Options, WiringOptions
from rewirl.agents.sac import SACAgent
from rewirl.agents.td3 import TD3Agent
from rewirl.agents.transitions import Transitions

__all__ = [
    "METHODS",
    "ActionBox",
    "ActorCritic",
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
]
