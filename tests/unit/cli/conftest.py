"""Property tests have no deadline: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("specdec", deadline=None)
settings.load_profile("specdec")
