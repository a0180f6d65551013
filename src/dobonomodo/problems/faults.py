"""The three exceptions, by who must act: the author, the outside world, or us."""

from __future__ import annotations

from collections.abc import Sequence

from dobonomodo.problems.problem import Problem


class Rejected(Exception):
    """The author must change something; nothing was read or written."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.code}: {problem.message()}" for problem in problems))
        self.problems = tuple(problems)


class RunFailed(Exception):
    """The data or an outside system is at fault; ``retry_helps`` says whether a later attempt can succeed."""

    def __init__(self, problem: Problem, *, others: Sequence[Problem] = ()) -> None:
        super().__init__(f"{problem.code}: {problem.message()}")
        self.problem = problem
        self.others = tuple(others)
        """What else is wrong, where several things are known at once, as of checks."""

    @property
    def retry_helps(self) -> bool:
        """Whether the same command can succeed later, with nothing changed."""
        return self.problem.retry_helps


class InternalError(Exception):
    """A fault of this program."""
