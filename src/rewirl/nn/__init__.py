"""Networks of sparse layers, their targets and Adam: the only door to the core.

Wiring rules are in `topology/`, losses and updates in `agents/`.
"""

from rewirl._core import Batch, RandomStream, extend, gather, standardise
from rewirl.nn.adam import Adam
from rewirl.nn.batch import batch_of
from rewirl.nn.batch_norm import BatchNorm
from rewirl.nn.batched import backward_each, forward_each, regress_each, update_each
from rewirl.nn.cores import available_cores
from rewirl.nn.network import Network
from rewirl.nn.recycling import dormant, recycle
from rewirl.nn.runtime import available_isas, compiler, isa, kernel_seconds, select_isa, set_threads, sources, threads
from rewirl.nn.target import Target

__all__ = [
    "Adam",
    "Batch",
    "BatchNorm",
    "Network",
    "RandomStream",
    "Target",
    "available_cores",
    "available_isas",
    "backward_each",
    "batch_of",
    "compiler",
    "dormant",
    "extend",
    "forward_each",
    "gather",
    "isa",
    "kernel_seconds",
    "recycle",
    "regress_each",
    "select_isa",
    "set_threads",
    "sources",
    "standardise",
    "threads",
    "update_each",
]
