"""How much hypothesis tries: `quick` unless REWIND_PROPERTY=long says otherwise."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, max_examples=60, print_blob=True, derandomize=True
)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=2000,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("REWIND_PROPERTY", "quick"))
