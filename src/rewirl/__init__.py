"""Deep RL agents that rewire themselves while they learn."""
