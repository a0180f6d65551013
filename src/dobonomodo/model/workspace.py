"""The workspace: where state and drafts are kept, how Spark is reached, and what differs between installations."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, Loaded
from dobonomodo.model.locale import LocaleName
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.template import check_folder, is_address
from dobonomodo.model.value import Filled, Id, Number, Setting, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue, UnknownReference

DEFAULT_STORE = "sqlite:///.dobo/store.db"
DEFAULT_SANDBOX = ".dobo/sandbox"
_STORE_PASSWORD = "pass it in PGPASSWORD or in the file ~/.pgpass"
_STORE_KEYS = (
    "pass keys where the tools of the object store look for them: in the environment, in a profile, or by a role"
)
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable with the token of a Spark Connect client."""
_SERVER_TOKEN = f"pass it in {TOKEN_VARIABLE}"
_REFERENCE = "write `env://NAME` or `file://path` instead"


class SparkSettings(Entity):
    """How Spark is reached and set up."""

    refuses_secrets: ClassVar[bool] = True

    master: Filled | None = Field(default=None, description="Where Spark runs: local[*], spark://..., yarn.")
    remote: Filled | None = Field(default=None, description="A Spark Connect server instead: sc://host:15002.")
    conf: dict[str, Setting] = Field(
        default_factory=dict,
        description="Settings of the Spark session; a secret as `env://NAME` or `file://path`.",
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """One way to reach Spark, and no secrets."""
        if places.get("master") is not None and places.get("remote") is not None:
            yield InvalidValue(
                key="remote", expected="no `master` with it", found="both", span=places.key_span("remote")
            )
        yield from find_secrets(places.without("conf"), "spark", advice=_SERVER_TOKEN)
        if (conf := places.at("conf")) is not None:
            yield from find_secrets(conf, "conf", references=True, advice=_REFERENCE)


def _check_places(places: Places, key: str) -> Iterable[Problem]:
    secrets = list(find_secrets(places.without("scratch"), key, advice=_STORE_PASSWORD))
    if (scratch := places.at("scratch")) is not None:
        secrets += find_secrets(scratch, "scratch", advice=_STORE_KEYS)
    yield from secrets
    if secrets:
        return
    if places.text("sandbox") is not None:
        yield from check_folder(places.passage("sandbox"), "sandbox")
    # An address is checked by those who know object stores.
    if (folder := places.text("scratch")) is not None and not is_address(folder):
        yield from check_folder(places.passage("scratch"), "scratch")


class ApprovalSettings(Entity):
    """How many other people must have signed before something is done."""

    activate: Number = Field(default=0, description="To activate a version of a project.")
    override: Number = Field(default=0, description="To run a closed period.")
    lock: Number = Field(default=0, description="To lock a period.")


class Environment(Entity):
    """What is different in one installation; what is left out is as in the workspace."""

    refuses_secrets: ClassVar[bool] = True

    store: Filled | None = Field(default=None, description="The store of this environment.")
    sandbox: Filled | None = Field(default=None, description="The sandbox of this environment.")
    scratch: Filled | None = Field(default=None, description="The scratch folder or address of this environment.")
    default_resolver: Id | None = Field(default=None, description="The default resolver of this environment.")
    spark: SparkSettings | None = Field(
        default=None, description="Spark settings of this environment; each overrides that of the workspace."
    )
    parameters: dict[str, dict[str, Setting]] = Field(
        default_factory=dict, description="Values of parameters in this environment, by project and name."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """No secrets, and a sandbox in the file system; Spark's settings are checked apart."""
        yield from _check_places(places.without("spark"), "environment")


class Workspace(Entity):
    """A folder of definitions and its surroundings."""

    kind: ClassVar[str] = "workspace"
    refuses_secrets: ClassVar[bool] = True

    name: Filled | None = Field(default=None, description="The display name.")
    description: Text | None = Field(default=None, description="The purpose.")
    store: Filled = Field(default=DEFAULT_STORE, description="The database of versions and runs.")
    sandbox: Filled = Field(default=DEFAULT_SANDBOX, description="Where drafts write: a folder or a datasource id.")
    scratch: Filled | None = Field(
        default=None,
        description="A folder that the driver and all workers of Spark share, for what a run keeps while it is running, "
        "or an address such as `s3://bucket/folder` through which they exchange files; "
        "the default is `.dobo/runs`, which is right where Spark computes on this machine.",
    )
    default_resolver: Id | None = Field(default=None, description="The resolver of datasets without a `resolver_id`.")
    spark: SparkSettings = Field(default_factory=SparkSettings, description="The Spark session that runs use.")
    figures: Literal["on", "off", "columns"] = Field(
        default="on",
        description="Whether runs compute totals, changes of totals and matches of joins; "
        "`columns`: also a digest of every column, from which `dobo diff --columns` tells which changed.",
    )
    keep_inputs: Literal["no", "current", "always"] = Field(
        default="current",
        description="Whether copies of input files stay: for no run, for runs whose results count, or for every run.",
    )
    locale: LocaleName = Field(default="en", description="How numbers are written for people: 1,234.50 or 1.234,50.")
    approvals: ApprovalSettings = Field(
        default_factory=ApprovalSettings, description="The approvals of other people that the workspace asks for."
    )
    parameters: dict[str, dict[str, Setting]] = Field(
        default_factory=dict, description="Values of parameters, by project and name."
    )
    environments: dict[str, Environment] = Field(
        default_factory=dict, description="Settings that differ between installations, by name; selected with --env."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """No secrets, and a sandbox in the file system; environments and Spark's settings are checked apart."""
        yield from _check_places(places.without("spark").without("environments"), "workspace")

    def in_environment(self, name: str | None) -> Loaded["Workspace"]:
        """The workspace as it is in one of its environments; unchanged for None."""
        if name is None:
            return Loaded(self)
        environment = self.environments.get(name)
        if environment is None:
            unknown = UnknownReference(kind="environment", id=name, known=tuple(self.environments))
            return Loaded(None, (unknown,))
        changed = {key: getattr(environment, key) for key in ("store", "sandbox", "scratch", "default_resolver")}
        changes = {key: value for key, value in changed.items() if value is not None}
        if environment.spark is not None:
            changes["spark"] = _merge_spark(self.spark, environment.spark)
        if environment.parameters:
            named = {**self.parameters, **environment.parameters}
            changes["parameters"] = {
                each: {**self.parameters.get(each, {}), **environment.parameters.get(each, {})} for each in named
            }
        return Loaded(self.model_copy(update=changes))


def _merge_spark(usual: SparkSettings, special: SparkSettings) -> SparkSettings:
    moved = special.master is not None or special.remote is not None
    return SparkSettings(
        master=special.master if moved else usual.master,
        remote=special.remote if moved else usual.remote,
        conf={**usual.conf, **special.conf},
    )
