"""Every module of the source has its test beside it, in the same place under ``tests/unit``, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

import dobonomodo

SOURCE = Path(dobonomodo.__file__).parent
TESTS = Path(__file__).parents[1]

ELSEWHERE: dict[str, tuple[str, tuple[str, ...]]] = {
    "needs a running Spark": (
        "engine/test_nodes.py spark/test_runs.py spark/test_scratch.py spark/test_determinism.py spark/test_many_rows.py"
        " projects/test_agree.py property/test_ranges.py",
        (
            "engine/archive.py", "engine/computed.py",
            "engine/context.py", "engine/cutting.py", "engine/engine.py",
            "engine/differences.py", "engine/grouping.py",
            "engine/frames.py", "engine/joins.py", "engine/labels.py", "engine/loading.py", "engine/matches.py", "engine/observation.py",
            "engine/ranges.py", "engine/reach.py", "engine/reading.py", "engine/requirement.py", "engine/tracking.py", "engine/tree.py",
            "scenarios/run.py", "scenarios/scenario.py", "scenarios/suite.py",
            "scenarios/values.py",
        ),
    ),
    "kills the process": ("faults/test_kill.py", ("failpoint.py",)),
    "one test over all functions": ("unit/formula/test_functions.py", ("formula/functions/",)),
    "one test over all formulas": (
        "unit/formula/test_evaluate.py unit/formula/test_parse.py unit/formula/test_check.py",
        ("formula/meaning.py", "formula/moment.py", "formula/tree.py", "formula/typed.py"),
    ),
    "one test over all problems": ("unit/problems/test_catalogue.py golden/test_problems.py", ("problems/",)),
    "one suite over all storages": (
        "contract/test_storages.py contract/test_object_stores.py contract/test_fencing.py unit/storage/test_datasources.py",
        (
            "storage/catalogue.py", "storage/database.py", "storage/delta.py", "storage/delta_home.py", "storage/delta_target.py",
            "storage/iceberg.py", "storage/iceberg_target.py",
            "storage/table_files_target.py",
            "storage/extracted.py", "storage/file_storage.py",
            "storage/postgresql.py", "storage/local_shelf.py", "storage/named_object.py",
            "storage/object_target.py", "storage/shelf.py",
            "storage/storage.py", "storage/table_rows.py", "storage/table_target.py",
            "model/datasource.py",
        ),
    ),
    "compares what executors do with what the driver does": (
        "contract/test_executors.py contract/test_objects.py",
        ("engine/tasks.py", "storage/executors.py", "storage/object_copies.py"),
    ),
    "needs an object server or a catalog server": (
        "contract/test_objects.py contract/test_transport.py contract/test_iceberg_rest.py",
        ("storage/iceberg_rest.py", "storage/object_store.py"),
    ),
    "needs a cluster of HDFS": ("native/test_hdfs.py", ("storage/hdfs.py",)),
    "needs a connector of Spark": (
        "native/test_delta.py native/test_iceberg.py native/test_catalog_tables.py",
        ("storage/native.py", "storage/catalog_table.py", "storage/catalog_target.py"),
    ),
    "one suite over all stores": (
        "contract/test_store.py unit/store/test_opening.py unit/store/test_history.py",
        (
            "store/database.py", "store/format.py", "store/migrations/", "store/signoff.py", "store/sql.py",
            "store/store.py", "store/tables.py",
        ),
    ),
    "behind the facade, with it": (
        "unit/workspace/test_workspace.py unit/workspace/test_chains.py spark/test_runs.py",
        ("workspace/",),
    ),
    "behind the page, with it": ("unit/runs/test_report.py", ("runs/report/",)),
    "by its command, with the others": (
        "unit/cli/test_main.py unit/cli/test_flags.py docs/test_docs.py process/test_clean.py",
        (
            "cli/activate.py", "cli/arguments.py", "cli/checks.py", "cli/clean.py", "cli/console.py", "cli/demo.py",
            "cli/docs.py", "cli/explain.py", "cli/formula.py", "cli/functions.py", "cli/run.py", "cli/sample.py",
        ),
    ),
    "by what people decide, with the rooms of it": (
        "unit/workspace/test_closing.py unit/workspace/test_signing.py unit/cli/test_sign.py unit/cli/test_period.py",
        ("cli/decisions.py", "cli/history.py", "runs/control.py", "runs/results.py"),
    ),
    "by explanations of whole rows": (
        "unit/why/test_explain.py unit/why/test_interpret.py projects/test_why.py spark/test_why.py",
        (
            "why/asking.py", "why/loading.py", "why/row.py", "why/stored.py", "why/text.py",
            "cli/why.py",
        ),
    ),
    "by the plans that it is part of": (
        "unit/plan/test_planner.py unit/plan/operations/test_check.py unit/workspace/test_chains.py",
        (
            "plan/conservation.py", "plan/counts.py",
            "plan/facts.py", "plan/operations/lowered.py", "plan/operations/operation.py", "plan/step.py",
            "model/plain.py",
        ),
    ),
}  # fmt: skip
"""By reason: the tests, and the modules or folders that they are about."""


def find_modules() -> list[str]:
    return [
        path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")) if not path.stem.startswith("__")
    ]


def find_reasons(module: str) -> list[str]:
    return [
        reason
        for reason, (_, places) in ELSEWHERE.items()
        if any(module == place or (place.endswith("/") and module.startswith(place)) for place in places)
    ]


def has_test(module: str) -> bool:
    folder, _, name = module.rpartition("/")
    return (TESTS / "unit" / folder / f"test_{name}").exists()


def test_every_module_has_a_test_or_a_reason() -> None:
    alone = [module for module in find_modules() if not has_test(module) and not find_reasons(module)]
    assert alone == [], "write tests/unit/<same path>/test_<name>.py, or name the reason in ELSEWHERE"


def test_a_reason_is_named_once_and_only_where_it_is_needed() -> None:
    modules = find_modules()
    for reason, (_, places) in ELSEWHERE.items():
        for place in places:
            below = [module for module in modules if module == place or module.startswith(place)]
            assert below, (reason, place)
            assert place.endswith("/") or not has_test(place), (reason, place)
    assert [module for module in modules if len(find_reasons(module)) > 1] == []


@pytest.mark.parametrize("reason", ELSEWHERE)
def test_the_tests_of_a_reason_are_there(reason: str) -> None:
    for test in ELSEWHERE[reason][0].split():
        assert (TESTS / test).is_file(), test
