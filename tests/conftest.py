"""Settings that all tests share."""

from hypothesis import settings

# The same examples every time, so that what failed fails again. `--hypothesis-profile=search` looks for new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.register_profile("sanitizers", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("fixed")
