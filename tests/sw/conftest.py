"""Settings of the property tests: no deadline, because test machines are shared; failures print how to repeat them."""

from hypothesis import settings

settings.register_profile("shared", deadline=None, print_blob=True)
settings.load_profile("shared")
