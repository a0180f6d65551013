"""One transaction for several Iceberg tables: REST catalogs offer it, pyiceberg does not.

The library makes the requests of each table; what is private to it is used here alone.
"""

# ruff: noqa: SLF001  the library has no public way to either

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableRequest, Table, Transaction

COMMIT = "transactions/commit"
"""Where a catalog accepts such transactions."""


def commits_together(catalog: Catalog) -> bool:
    """Whether the catalog advertises transactions of several tables."""
    from pyiceberg.catalog.rest import Endpoint, HttpMethod, RestCatalog

    if not isinstance(catalog, RestCatalog):
        return False
    offered = Endpoint(http_method=HttpMethod.POST, path=f"/v1/{{prefix}}/{COMMIT}")
    return offered in catalog._supported_endpoints


def commit_together(transactions: Sequence[tuple[Table, Transaction]]) -> bool:
    """Commit all on top of exactly the snapshots that were read; False if a table has a later one.

    Neither answer tells which tables have changed: some catalogs commit one table after the other. So who calls looks at all
    tables again, and the manifests of a refused transaction stay, since a table may refer to them.
    """
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.catalog.rest.response import _handle_non_200_response
    from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
    from requests import HTTPError

    catalog = transactions[0][0].catalog
    if not isinstance(catalog, RestCatalog):
        raise AssertionError("only REST catalogs commit several tables at once")
    changes = ", ".join(_make_request(*each).model_dump_json() for each in transactions)
    response = catalog._session.post(catalog.url(COMMIT), data=f'{{"table-changes": [{changes}]}}'.encode())
    try:
        response.raise_for_status()
    except HTTPError as fault:
        unknown = dict.fromkeys((500, 502, 504), CommitStateUnknownException)
        try:
            _handle_non_200_response(fault, {409: CommitFailedException, **unknown})
        except CommitFailedException:
            return False
    return True


def _make_request(table: Table, transaction: Transaction) -> CommitTableRequest:
    """What the library would send for one table."""
    from pyiceberg.table import CommitTableRequest, Namespace, TableIdentifier
    from pyiceberg.table.update import AssertTableUUID

    *namespace, name = table.name()
    return CommitTableRequest(
        identifier=TableIdentifier(namespace=Namespace(namespace), name=name),
        requirements=(*transaction._requirements, AssertTableUUID(uuid=table.metadata.table_uuid)),
        updates=transaction._updates,
    )
