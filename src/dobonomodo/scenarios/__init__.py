"""YAML tests: given rows, a project, and the expected rows."""

from dobonomodo.scenarios.run import Result, load_scenario, run_scenario
from dobonomodo.scenarios.suite import choose, find_scenarios, render_junit, run_suite

__all__ = ["Result", "choose", "find_scenarios", "load_scenario", "render_junit", "run_scenario", "run_suite"]
