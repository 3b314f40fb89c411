"""Agents: one readable update each, line by line as in their papers; their options; the catalogue of methods.

No environments, no files, and no kernels: networks come from `nn/`.
"""

from rewirl.agents.actions import ActionBox, Actions, Choices
from rewirl.agents.actor_critic import ActorCritic
from rewirl.agents.agent import Agent, Diverged
from rewirl.agents.costs import Costs
from rewirl.agents.crossq import CrossQAgent
from rewirl.agents.dqn import DQNAgent
from rewirl.agents.methods import METHODS, Method, costs, method, register_method
from rewirl.agents.options import CrossQOptions, DQNOptions, Options, SACOptions, TD3Options, WiringOptions
from rewirl.agents.sac import SACAgent
from rewirl.agents.td3 import TD3Agent
from rewirl.agents.transitions import Transitions
from rewirl.agents.wired import WiredAgent

__all__ = [
    "METHODS",
    "ActionBox",
    "Actions",
    "ActorCritic",
    "Agent",
    "Choices",
    "Costs",
    "CrossQAgent",
    "CrossQOptions",
    "DQNAgent",
    "DQNOptions",
    "Diverged",
    "Method",
    "Options",
    "SACAgent",
    "SACOptions",
    "TD3Agent",
    "TD3Options",
    "Transitions",
    "WiredAgent",
    "WiringOptions",
    "costs",
    "method",
    "register_method",
]
