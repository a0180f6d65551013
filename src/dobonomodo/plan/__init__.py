"""From a project and what is known of its datasets to a plan, or to all of its problems. Knows no Spark and no disk."""

from dobonomodo.plan.dataset import Datasets, DatasetUse, KnownDataset, Location
from dobonomodo.plan.destination import Destination
from dobonomodo.plan.planner import Plan, Planned, plan_project
from dobonomodo.plan.resolution import Resolution
from dobonomodo.plan.step import Step

__all__ = [
    "DatasetUse",
    "Datasets",
    "Destination",
    "KnownDataset",
    "Location",
    "Plan",
    "Planned",
    "Resolution",
    "Step",
    "plan_project",
]
