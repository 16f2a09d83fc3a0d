"""Where jobs run: in this process, in a pool of processes, or on Ray."""

from evidentia.experiments.engines.base import ENGINES, Engine, make_engine
from evidentia.experiments.engines.in_process import InProcess
from evidentia.experiments.engines.on_ray import OnRay
from evidentia.experiments.engines.pool import ProcessPool

__all__ = ["ENGINES", "Engine", "InProcess", "OnRay", "ProcessPool", "make_engine"]
