"""The definitions of a workspace as immutable entities that know where they were written."""

from dobonomodo.model.calendar import Calendar, DateRules, Generate, Level, ListedPeriod
from dobonomodo.model.dataset import Dataset, DatasetTarget, JoinCondition, Lookup, TableTarget
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.definitions import KINDS, Definitions, load_definitions
from dobonomodo.model.document import Document, Places, load_documents
from dobonomodo.model.entity import Entity, Loaded, render_canonical
from dobonomodo.model.operation import OperationSpec, load_operations
from dobonomodo.model.period import Period, PeriodStatus, Schedule
from dobonomodo.model.project import Project
from dobonomodo.model.resolver import ANY_LEVEL, PathStrategy, Resolver, Rule, TableStrategy
from dobonomodo.model.schema import Column, DataType, Table, TemporalMode
from dobonomodo.model.workspace import Environment, SparkSettings, Workspace

__all__ = [
    "ANY_LEVEL",
    "KINDS",
    "Calendar",
    "Column",
    "DataSource",
    "DataType",
    "Dataset",
    "DatasetTarget",
    "DateRules",
    "Definitions",
    "Document",
    "Entity",
    "Environment",
    "Generate",
    "JoinCondition",
    "Level",
    "ListedPeriod",
    "Loaded",
    "Lookup",
    "OperationSpec",
    "PathStrategy",
    "Period",
    "PeriodStatus",
    "Places",
    "Project",
    "Resolver",
    "Rule",
    "Schedule",
    "SparkSettings",
    "StorageOptions",
    "Table",
    "TableStrategy",
    "TableTarget",
    "TemporalMode",
    "Workspace",
    "load_definitions",
    "load_documents",
    "load_operations",
    "render_canonical",
]
