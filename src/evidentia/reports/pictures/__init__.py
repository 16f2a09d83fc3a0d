"""What a report shows of the networks that a study's jobs train, by the names of the jobs."""

from evidentia.reports.pictures import events, graph, semisup
from evidentia.reports.pictures.registry import PICTURES, Group, NetworkPictures

__all__ = ["PICTURES", "Group", "NetworkPictures", "events", "graph", "semisup"]
