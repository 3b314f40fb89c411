"""Networks of sparse layers, their targets and Adam: the Python face of the core."""

from rewirl._core import Batch, Chance
from rewirl.nn.cores import available_cores
from rewirl.nn.network import Adam, Network, batch_of
from rewirl.nn.runtime import available_isas, isa, kernel_seconds, select_isa, set_threads, threads
from rewirl.nn.target import Target
from rewirl.nn.together import backward_each, forward_each, regress_each, update_each

__all__ = [
    "Adam",
    "Batch",
    "Chance",
    "Network",
    "Target",
    "available_cores",
    "available_isas",
    "backward_each",
    "batch_of",
    "forward_each",
    "isa",
    "kernel_seconds",
    "regress_each",
    "select_isa",
    "set_threads",
    "threads",
    "update_each",
]
