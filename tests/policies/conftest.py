"""Policies to try things on."""

from random_policies import make_layer as make_layer
from random_policies import make_policy as make_policy
