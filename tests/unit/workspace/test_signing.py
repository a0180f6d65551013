"""Sign-offs: what can be signed, what makes them void, approvals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dobonomodo.problems.control import ApprovalsMissing, CannotSign, NotSigned, Unsignable
from tests.unit.workspace.conftest import PERIOD, PROJECT, Office, refusal


def standing(office: Office, name: str) -> list[tuple[str, str | None, str | None]]:
    return [(each.by, each.comment, each.void) for each in office.at_desk("ann").find_run(name).signed]


def test_a_run_is_signed_by_any_of_its_names(office: Office) -> None:
    run = office.put_run()
    signed = office.at_desk("bob").sign("latest", comment="totals agree")
    office.at_desk("cy").sign(f"{PROJECT}@{PERIOD}")
    assert (signed.subject.id, signed.by, signed.comment) == (run.id, "bob", "totals agree")
    assert standing(office, run.id) == [("bob", "totals agree", None), ("cy", None, None)]


def test_a_later_run_makes_a_sign_off_void_visibly(office: Office) -> None:
    first = office.put_run()
    office.at_desk("bob").sign(first.id)
    office.put_run(draft=True)
    office.put_run(status="failed", progress={"outputs": []})
    office.put_run(period="2026-02")
    assert standing(office, first.id) == [("bob", None, None)]
    later = office.put_run()
    assert standing(office, first.id) == [("bob", None, f"run {later.id} came later")]
    assert standing(office, later.id) == []


def test_an_output_that_was_published_before_a_run_failed_replaces_the_result(office: Office) -> None:
    first = office.put_run()
    document = {**first.snapshot["project"], "document": {"publish": "as_done"}}
    later = office.put_run(status="failed", snapshot={**first.snapshot, "project": document})
    office_view = office.at_desk("ann").show_period(PERIOD)
    assert [each.run for each in office_view.results] == [later.id]


def test_a_quarantine_of_a_failed_run_replaces_an_output_of_what_was_signed(office: Office) -> None:
    signed = office.put_run()
    office.at_desk("bob").sign(signed.id)
    office.at_desk("bob").sign(PERIOD)
    failed = office.put_run(status="failed", updated_at=datetime.now(UTC) + timedelta(minutes=1))
    assert standing(office, signed.id) == [("bob", None, f"run {failed.id} came later")]
    view = office.at_desk("ann").show_period(PERIOD)
    assert [each.run for each in view.results] == [signed.id]
    assert [each.void for each in view.signed] == [f"run {failed.id} of {PROJECT} came later"]
    for name in (signed.id, PERIOD):
        problem = refusal(office.at_desk("cy").sign, name)
        assert problem == CannotSign(name=name, reason=Unsignable.OVERWRITTEN, detail=failed.id, status="failed")
    again = office.put_run()
    office.at_desk("cy").sign(PERIOD)
    assert standing(office, again.id) == []


@pytest.mark.parametrize(
    ("status", "told", "hint"),
    [
        ("running", "run `{run}` is running and has replaced an output", "dobo resume {run}"),
        ("cancelled", "run `{run}` was cancelled, and its quarantine has replaced an output", "run the period again"),
        ("failed", "run `{run}` failed, and its quarantine has replaced an output", "run the period again"),
    ],
)
def test_what_replaced_an_output_is_told_by_its_state(office: Office, status: str, told: str, hint: str) -> None:
    signed = office.put_run()
    later = office.put_run(status=status)
    for name in (signed.id, PERIOD):
        problem = refusal(office.at_desk("cy").sign, name)
        assert problem.message() == f"`{name}` cannot be signed: {told.format(run=later.id)}"
        assert hint.format(run=later.id) in (problem.hint() or "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"draft": True}, Unsignable.DRAFT),
        ({"status": "failed"}, Unsignable.NOT_COMPLETED),
        ({"status": "running"}, Unsignable.NOT_COMPLETED),
    ],
)
def test_what_is_no_result_cannot_be_signed(office: Office, changes: dict[str, Any], reason: Unsignable) -> None:
    run = office.put_run(**changes)
    problem = refusal(office.at_desk("bob").sign, run.id)
    assert isinstance(problem, CannotSign)
    assert (problem.name, problem.reason) == (run.id, reason)
    assert office.at_desk("bob").history(PERIOD)[-1].event != "sign"


def test_a_run_that_was_replaced_cannot_be_signed(office: Office) -> None:
    first, later = office.put_run(), office.put_run()
    problem = refusal(office.at_desk("bob").sign, first.id)
    assert problem == CannotSign(name=first.id, reason=Unsignable.REPLACED, detail=later.id)


def test_a_version_is_signed_until_there_is_a_later_one(office: Office) -> None:
    office.at_desk("bob").sign(f"{PROJECT}@v1")
    office.change("projects/monthly-sales.yaml", "0.9", "0.8")
    workspace = office.at_desk("ann")
    workspace.apply()
    problem = refusal(workspace.sign, f"{PROJECT}@v1")
    assert problem == CannotSign(name=f"{PROJECT}@v1", reason=Unsignable.OLD_VERSION, detail=f"{PROJECT}@v2")
    (version, _) = workspace.describe(PROJECT).versions
    (signed,) = version.signed
    assert version.to_dict()["sign_offs"] == [signed.to_dict()]
    assert (signed.by, signed.comment, signed.void) == ("bob", None, "version 2 came later")


def test_a_version_that_there_is_not(office: Office) -> None:
    assert refusal(office.at_desk("bob").sign, f"{PROJECT}@v9").code == "VERSION_NOT_FOUND"
    assert refusal(office.at_desk("bob").sign, "nobody@v1").code == "VERSION_NOT_FOUND"


def test_the_results_of_a_period_are_signed_until_one_changes(office: Office) -> None:
    office.put_run()
    office.at_desk("bob").sign(PERIOD, comment="all of it")
    (signed,) = office.at_desk("ann").show_period(PERIOD).signed
    assert (signed.by, signed.void) == ("bob", None)
    other = office.put_run(project="other", updated_at=datetime.now(UTC) + timedelta(hours=1))
    (signed,) = office.at_desk("ann").show_period(PERIOD).signed
    assert signed.void == f"run {other.id} of other came later"


def test_one_withdraws_ones_own(office: Office) -> None:
    run = office.put_run()
    office.at_desk("bob").sign(run.id)
    assert refusal(office.at_desk("cy").unsign, run.id) == NotSigned(name=run.id, by="cy")
    (withdrawn,) = office.at_desk("bob").unsign(run.id, reason="wrong run")
    assert withdrawn.subject.id == run.id
    assert standing(office, run.id) == []
    assert [(entry.event, entry.by, entry.reason) for entry in office.at_desk("ann").history(PERIOD)][-1] == (
        "unsign",
        "bob",
        "wrong run",
    )


def test_the_person_is_that_of_the_operating_system_unless_named(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = office.put_run()
    workspace = office.at_desk("ann")
    monkeypatch.setenv("DOBO_USER", " ")
    monkeypatch.setenv("LOGNAME", "dora")
    assert workspace.sign(run.id).by == "dora"


class TestActivation:
    def test_others_must_have_signed_the_version(self, office: Office) -> None:
        office.setting("approvals: {activate: 2}")
        office.change("projects/monthly-sales.yaml", "0.9", "0.8")
        workspace = office.at_desk("ann")
        workspace.apply()
        name = f"{PROJECT}@v2"
        workspace.sign(name)
        office.at_desk("bob").sign(name)
        missing = refusal(office.at_desk("ann").activate, PROJECT)
        assert missing == ApprovalsMissing(
            subject=PROJECT, needed=2, approved_by=("bob",), own="ann", command=f"dobo sign {name}"
        )
        office.at_desk("cy").sign(name)
        assert office.at_desk("ann").activate(PROJECT).version == 2
        entry = office.at_desk("ann").history(PROJECT)[-1]
        assert (entry.event, (entry.detail or {})["approved_by"]) == ("activate", ["bob", "cy"])

    def test_a_sign_off_of_the_version_before_does_not_count(self, office: Office) -> None:
        office.setting("approvals: {activate: 1}")
        office.at_desk("bob").sign(f"{PROJECT}@v1")
        office.change("projects/monthly-sales.yaml", "0.9", "0.8")
        workspace = office.at_desk("ann")
        workspace.apply()
        assert refusal(workspace.activate, PROJECT).code == "APPROVALS_MISSING"


class TestOverride:
    def plan(self, office: Office, person: str = "ann") -> object:
        workspace = office.at_desk(person)
        return workspace.run(PROJECT, period=PERIOD, override_closed=True, reason="late invoice")

    def test_a_reason_is_needed_whatever_the_status(self, office: Office) -> None:
        problem = refusal(office.at_desk("ann").run, PROJECT, period=PERIOD, override_closed=True)
        assert problem.code == "REASON_MISSING"

    def test_others_must_have_signed_the_override(self, office: Office) -> None:
        office.setting("approvals: {override: 1}")
        workspace = office.at_desk("ann")
        workspace.change_period(PERIOD, "closed")
        problem = refusal(self.plan, office)
        assert isinstance(problem, ApprovalsMissing)
        assert problem.command == f"dobo sign {PROJECT}@{PERIOD} --override"
        office.at_desk("bob").sign(f"{PROJECT}@{PERIOD}", override=True, comment="agreed")
        # The run fails, since there are no files to read; that it was allowed to begin is recorded.
        run = self.plan(office)
        assert run.override is not None  # type: ignore[attr-defined]
        assert (run.override.reason, run.override.approved_by) == ("late invoice", ("bob",))  # type: ignore[attr-defined]
        events = [(entry.event, entry.reason, entry.detail) for entry in office.at_desk("ann").history(PERIOD)]
        (override,) = [each for each in events if each[0] == "override"]
        assert override[1] == "late invoice"
        assert (override[2] or {})["approved_by"] == ["bob"]

    def test_an_approval_is_for_one_result(self, office: Office) -> None:
        office.setting("approvals: {override: 1}")
        office.at_desk("ann").change_period(PERIOD, "closed")
        office.at_desk("bob").sign(f"{PROJECT}@{PERIOD}", override=True)
        office.put_run_overriding()
        assert refusal(self.plan, office).code == "APPROVALS_MISSING"

    @pytest.mark.parametrize(("status", "reason"), [("open", "not closed"), ("locked", "not closed")])
    def test_only_a_closed_period_is_overridden(self, office: Office, status: str, reason: str) -> None:
        workspace = office.at_desk("ann")
        if status == "locked":
            workspace.change_period(PERIOD, "closed")
            workspace.change_period(PERIOD, "locked")
        problem = refusal(workspace.sign, f"{PROJECT}@{PERIOD}", override=True)
        assert (getattr(problem, "reason", None), getattr(problem, "detail", None)) == (reason, status)

    def test_names_that_there_are_not(self, office: Office) -> None:
        workspace = office.at_desk("ann")
        assert refusal(workspace.sign, f"nobody@{PERIOD}", override=True).code == "NOT_DEFINED"
        assert refusal(workspace.sign, f"{PROJECT}@2026-13", override=True).code == "PERIOD_NOT_FOUND"
        assert refusal(workspace.sign, PROJECT, override=True).code == "PERIOD_NOT_FOUND"

    def test_an_open_period_needs_no_override(self, office: Office) -> None:
        run = self.plan(office)
        assert run.override is None  # type: ignore[attr-defined]


class TestResume:
    def test_a_run_is_not_resumed_in_a_period_that_was_closed_since(self, office: Office) -> None:
        workspace = office.at_desk("ann")
        run = office.put_run(status="failed")
        workspace.change_period(PERIOD, "closed")
        problem = refusal(workspace.resume, run.id)
        assert (problem.code, getattr(problem, "status", None)) == ("PERIOD_NOT_RUNNABLE", "closed")
        assert not workspace.can_resume(run.id)
