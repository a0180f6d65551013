"""Where the values of a column come from, through every kind of operation."""

from __future__ import annotations

from typing import Any

from dobonomodo.plan.rows import Origin, merge
from tests.unit.plan.building import WORLD_BUILT, aggregate, append, delete, join, output, plan_of, update


def origin(text: str, column: str, **more: Any) -> tuple[set[str], set[str], tuple[int, ...]]:
    """Inputs, conditions and operations of a column at the end."""
    found = plan_of(text, **more).steps[-1].before.origins.get(column, Origin())
    return set(found.inputs), set(found.conditions), found.operations


CUSTOMERS = join("c", "customers", "c.id = customer_id")


def test_a_loaded_column_comes_from_its_dataset() -> None:
    assert origin(delete("paid"), "amount") == ({"sales.amount"}, set(), ())


def test_a_new_column_comes_from_what_its_expression_reads() -> None:
    assert origin(update("net = amount * quantity"), "net") == ({"sales.amount", "sales.quantity"}, set(), (1,))


def test_a_selector_is_a_condition_and_no_input() -> None:
    assert origin(update("net = amount", selector="paid AND region = 'x'"), "net") == (
        {"sales.amount"},
        {"sales.paid", "sales.region"},
        (1,),
    )


def test_a_named_selector_is_looked_into() -> None:
    head = "selectors: {mine: region = 'x'}"
    assert origin(update("net = 1", selector="{{mine}}"), "net", head=head) == (set(), {"sales.region"}, (1,))


def test_an_existing_column_keeps_its_own_origin_where_it_is_not_selected() -> None:
    assert origin(update("amount = quantity", selector="paid"), "amount") == (
        {"sales.amount", "sales.quantity"},
        {"sales.paid"},
        (1,),
    )


def test_a_column_that_is_overwritten_on_every_row_forgets_its_own_origin() -> None:
    assert origin(update("amount = quantity"), "amount") == ({"sales.quantity"}, set(), (1,))


def test_origins_add_up_over_operations() -> None:
    text = (
        update("net = amount", seq=1)
        + update("gross = net * quantity", seq=5)
        + update("net = 0", seq=9, selector="paid")
    )
    assert origin(text, "gross") == ({"sales.amount", "sales.quantity"}, set(), (1, 5))
    assert origin(text, "net") == ({"sales.amount"}, {"sales.paid"}, (1, 9))


def test_a_joined_column_comes_from_the_joined_dataset() -> None:
    # the columns that decide which row matches are conditions
    assert origin(update("tier = c.tier", joins=CUSTOMERS), "tier") == (
        {"customers.tier"},
        {"customers.id", "sales.customer_id"},
        (1,),
    )


def test_a_chain_of_joins() -> None:
    chain = CUSTOMERS + join("r", "rates", "r.country = c.country")
    inputs, conditions, _ = origin(update("net = amount * r.rate", joins=chain), "net")
    assert inputs == {"sales.amount", "rates.rate"}
    assert conditions == {"customers.id", "sales.customer_id", "rates.country", "customers.country"}


def test_a_join_that_a_column_does_not_use_does_not_decide_about_it() -> None:
    _, conditions, _ = origin(update("tier = c.tier", "twice = amount * 2", joins=CUSTOMERS), "twice")
    assert conditions == set()


def test_untouched_columns_stay_untouched() -> None:
    text = update("tier = c.tier", joins=CUSTOMERS) + delete("paid", seq=2) + aggregate("region", "n = COUNT(*)", seq=3)
    assert origin(text, "amount") == ({"sales.amount"}, set(), ())


def test_a_summary_comes_from_what_it_sums_up() -> None:
    assert origin(aggregate("region", "total = SUM(amount)", selector="paid", seq=4), "total") == (
        {"sales.amount"},
        {"sales.paid"},
        (4,),
    )


def test_a_summary_into_an_existing_column_keeps_both_origins() -> None:
    assert origin(aggregate("region", "quantity = SUM(amount)"), "quantity")[0] == {"sales.quantity", "sales.amount"}


def test_a_count_of_rows_has_no_inputs() -> None:
    assert origin(aggregate("region", "n = COUNT(*)"), "n") == (set(), set(), (1,))


def test_appended_rows_add_the_origin_of_their_source() -> None:
    assert origin(append("budget", where="status = 'x'", seq=3), "amount") == (
        {"sales.amount", "budget.amount"},
        {"budget.status"},
        (3,),
    )


def test_columns_that_the_source_lacks_stay_untouched() -> None:
    assert origin(append("budget"), "quantity") == ({"sales.quantity"}, set(), ())


def test_summarised_rows_add_the_origin_of_what_was_summed_up() -> None:
    grouping = "{group_by: [region], aggregations: [{column: quantity, expression: COUNT(status)}]}"
    assert origin(append("budget", grouping=grouping), "quantity")[0] == {"sales.quantity", "budget.status"}
    assert origin(append("budget", grouping=grouping), "region")[0] == {"sales.region", "budget.region"}


LOOKUPS = WORLD_BUILT.with_dataset(
    """
    dataset:
      id: looked
      main_table: {name: orders, columns: [{name: customer_id, type: string}]}
      lookups:
        - alias: customers
          target: {type: dataset, id: customers}
          join_conditions: [{source_column: customer_id, target_column: id}]
        - alias: zones
          target: {type: table, name: zones, columns: [{name: code, type: string}, {name: zone, type: string}]}
          join_conditions: [{source_column: customer_id, target_column: code}]
    """
)


def test_a_looked_up_column_comes_from_the_dataset_of_the_lookup() -> None:
    assert origin(update("tier = customers.tier"), "tier", world=LOOKUPS, input_id="looked")[0] == {"customers.tier"}


def test_a_lookup_table_of_the_dataset_itself_is_told_from_its_main_table() -> None:
    # `looked.zone` would look like a column of the main table
    inputs, _, _ = origin(update("zone = zones.zone"), "zone", world=LOOKUPS, input_id="looked")
    assert inputs == {"looked.zones.zone"}


def test_the_period_comes_from_the_dataset() -> None:
    assert origin(update("p = _period"), "p")[0] == {"sales._period"}


def test_outputs_see_the_origins_of_their_moment() -> None:
    text = output("{type: csv, path: a}", seq=1) + update("amount = 0", seq=2)
    first, last = plan_of(text).steps[0], plan_of(text).steps[-1]
    assert first.before.origins["amount"].operations == ()
    assert last.before.origins["amount"].operations == (2,)


def test_merging() -> None:
    one = Origin(frozenset({"a"}), frozenset({"x"}), (3,))
    other = Origin(frozenset({"b"}), frozenset(), (1, 3))
    assert merge([one, other]) == Origin(frozenset({"a", "b"}), frozenset({"x"}), (1, 3))
    assert merge([]) == Origin()


def test_the_last_operation_comes_last() -> None:
    assert Origin(operations=(1, 5)).through(1).operations == (5, 1)
