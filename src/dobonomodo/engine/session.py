"""The Spark sessions that we open ourselves, and their settings. A session that a user hands in is never changed."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dobonomodo.engine.archive import archive_options
from dobonomodo.engine.java import Java, launch_environment, require_java
from dobonomodo.engine.size import InputSize, available_megabytes, heap_megabytes
from dobonomodo.problems import Problem, Rejected, RunFailed
from dobonomodo.problems.package import find_missing_package
from dobonomodo.problems.run import SparkUnavailable
from dobonomodo.problems.session import SessionConflict, SettingRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"

RESULT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Overflow, a bad cast or an invalid date is an error, not a silent NULL.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.caseSensitive": "false",
        # Scale is reduced before integer digits; the types of our formulas are computed by this rule.
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        # Dates are parsed by java.time alone; the older parsers accept 2026-02-30.
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        # Otherwise Spark replaces ${...} in every statement, inside text literals too.
        "spark.sql.variable.substitute": "false",
        # Both decide how literals of rendered SQL are read.
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        # Times as every tool reads them, and days before 1582 as they are.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }
)
"""Settings on which results depend. They hold in every session we open, and ``conf`` cannot change them."""

_LAUNCH_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    # On by default in a session that Python starts; draws over our own output on stderr.
    "spark.ui.showConsoleProgress": "false",
    # Records a Python stack for each call, at up to four times the cost of building a plan (Spark 4.3).
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The parser caches its state until the heap is full, unless this is disabled (Spark 4.1).
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "25",
    # A Hive on the class path would create a database in the current folder.
    "spark.sql.catalogImplementation": "in-memory",
}

# Even without its web UI, Spark keeps the data for it: the plans of the last thousand queries, as text.
_UNSEEN_SETTINGS: Mapping[str, str] = {
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}

# Locale and zone of the machine would show in texts, formatted numbers and dates, its encoding in file contents. These options
# come last, since the last of two options wins.
_SAME_EVERYWHERE = "-Duser.language=en -Duser.country=US -Duser.timezone=UTC -Dfile.encoding=UTF-8"
_QUIET = f'"-Dlog4j2.configurationFile={Path(__file__).with_name("log4j2.properties").as_uri()}"'
_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"


_opening = threading.Lock()

# The address of a socket has at most 104 bytes on some systems; the names of our folder and of the file take 56 of them.
_LONGEST_SOCKET_FOLDER = 46

_SMALL_SETTINGS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    # Adaptive planning after every exchange takes longer than the work itself.
    "spark.sql.adaptive.enabled": "false",
}
# The C2 compiler of the JVM pays off after seconds of work; until then it competes with C1. Without C2 the JVM reserves 48 MB
# for compiled code, which the generated code of a long session fills.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"


def open_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    app_name: str = "dobo",
    conf: Mapping[str, str] = MappingProxyType({}),
    size: InputSize | None = None,
) -> SparkSession:
    """A session of our own: on this machine, on the cluster ``master``, or on the Spark Connect server ``remote``.

    One process has one Spark. If it already runs, the new session is opened in it and does not change the settings of the
    others; stopping a session stops all. ``conf`` adds settings. ``size`` is the size of the inputs, if known: small inputs are
    computed fastest in one partition and by a JVM that optimises less.
    """
    require_possible(master=master, remote=remote, conf=conf)
    # One process has one Spark, even if two threads request it at once.
    with _opening, _without_pandas_warning():
        try:
            session = (
                _open_remote(remote, conf=conf)
                if remote is not None
                else _open_classic(master, app_name=app_name, conf=conf, size=size)
            )
        except ImportError as fault:
            raise _explain_import(fault, remote=remote) from fault
    _silence_python_loggers()
    return session


def require_possible(*, master: str | None, remote: str | None, conf: Mapping[str, str]) -> None:
    """Refuse impossible settings before a session is opened."""
    problems: list[Problem] = [
        SettingRefused(name=name, fixed=RESULT_SETTINGS[name])
        for name, value in conf.items()
        if RESULT_SETTINGS.get(name, value) != value
    ]
    if master is not None and remote is not None:
        problems.insert(0, SessionConflict(wanted=master, running=remote))
    if problems:
        raise Rejected(problems)


def _explain_import(fault: ImportError, *, remote: str | None) -> RunFailed:
    """The packages that Spark needs and that are not installed; PySpark itself reports a version that is too old."""
    extra = "spark" if remote is None else "connect"
    reason = " ".join(str(fault).split())
    return find_missing_package(fault) or RunFailed(
        SparkUnavailable(reason=reason, remedy=f"pip install 'dobonomodo[{extra}]'")
    )


def adapt_session(session: SparkSession) -> SparkSession:
    """A session for computing, derived from the user's session: the same Spark, with the settings on which results depend.

    The user's session is not changed; if it already has these settings, it is used directly.
    """
    if all(str(session.conf.get(name, None)).lower() == value.lower() for name, value in RESULT_SETTINGS.items()):
        return session
    own = session.newSession()
    if is_remote(own):
        give_up_soon(own)
    _set_all(own, RESULT_SETTINGS)
    return own


def _open_classic(
    master: str | None, *, app_name: str, conf: Mapping[str, str], size: InputSize | None
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _forget_ended_java()
    small = size is not None and size.is_small
    running = SparkContext._active_spark_context  # noqa: SLF001  (Spark has no public way to look without starting)
    if running is not None:
        if master is not None and master != running.master:
            raise RunFailed(SessionConflict(wanted=master, running=running.master or LOCAL))
        session = SparkSession(running).newSession()
        local = _SMALL_SETTINGS if small and is_local(running.master or LOCAL) else {}
        _set_all(session, {**local, **conf, **RESULT_SETTINGS})
        return session

    java = require_java()
    settings = _settings_of_launch(master or LOCAL, java, app_name=app_name, conf=conf, size=size)
    launch = SparkConf().setAll(list(settings.items()))
    with _environment(_variables_of_launch(master or LOCAL, java)), _own_interrupts():
        gateway = SparkContext._gateway  # noqa: SLF001  (of an earlier session)
        if gateway is None:
            with _signals_later():
                gateway = launch_gateway(launch)  # type: ignore[no-untyped-call]
        # Known only now: the file spark-defaults.conf of the cluster may set some.
        given = conf.get(_EXECUTOR_OPTIONS) or gateway.jvm.System.getProperty(_EXECUTOR_OPTIONS)
        launch.set(_EXECUTOR_OPTIONS, options_of_executors(given))
        return SparkSession(SparkContext(conf=launch, gateway=gateway))


def _forget_ended_java() -> None:
    """If the Java of an earlier session was killed, PySpark would keep using it (Spark 4.3)."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001
    if process is None or process.poll() is None:
        return
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def _open_remote(remote: str, *, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(remote).create()
    give_up_soon(session)
    # A connection that is still open when Python unloads its modules can wait forever (Spark 4.3, grpcio 1.85).
    atexit.register(_close_connection, weakref.ref(session))
    _set_all(session, {**conf, **RESULT_SETTINGS})
    return session


def give_up_soon(session: SparkSession) -> None:
    """Detect within 15 seconds that a server does not respond; by default the client retries for ten minutes (Spark 4.3)."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=4000)])
    # The exception carries the message.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)


def _close_connection(reference: weakref.ref[SparkSession]) -> None:
    session = reference()
    if session is not None:
        session.client.close()


def _set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    for name, value in settings.items():
        # Setting an unchanged value can print a deprecation warning.
        if session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except AnalysisException as fault:
            raise RunFailed(SettingRefused(name=name)) from fault


def _settings_of_launch(
    master: str, java: Java, *, app_name: str, conf: Mapping[str, str], size: InputSize | None
) -> dict[str, str]:
    settings = {**_LAUNCH_SETTINGS, "spark.app.name": app_name}
    if conf.get("spark.ui.enabled", "").lower() != "true":
        settings |= _UNSEEN_SETTINGS
    if is_local(master):
        settings |= {
            # No port is open to the network, and the machine's own name is not looked up in DNS.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Spark's default of 200 partitions is for a cluster; here each one is a task that costs milliseconds.
            "spark.sql.shuffle.partitions": str(4 * _cores(master)),
            # Outputs that share files divide their rows among a few files of each task; without this, Spark would sort them first.
            "spark.sql.maxConcurrentOutputFileWriters": "8",
            "spark.driver.memory": f"{heap_megabytes(size, available_megabytes())}m",
            **_socket_settings(),
        }
    java_options = [_QUIET]
    if size is not None and size.is_small and is_local(master):
        settings |= _SMALL_SETTINGS
        java_options.append(_QUICK_START)
    if is_local(master) and "-XX:ArchiveClassesAtExit" not in conf.get(_DRIVER_OPTIONS, ""):
        java_options += archive_options(java)
    java_options += [conf.get(_DRIVER_OPTIONS, ""), _SAME_EVERYWHERE]
    return {
        **settings,
        **conf,
        **RESULT_SETTINGS,
        "spark.master": master,
        _DRIVER_OPTIONS: " ".join(filter(None, java_options)),
    }


def _socket_settings() -> dict[str, str]:
    """Python reads rows from Java through a Unix socket file, not through a port that serves the first client.

    Another process can be first: a client whose server was killed retries its port, which may be in use again. Python then
    waits forever or fails with an unrelated error (Spark 4.3).
    """
    if len(tempfile.gettempdir()) > _LONGEST_SOCKET_FOLDER:
        return {}
    folder = tempfile.mkdtemp(prefix="dobo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


def options_of_executors(given: str | None) -> str:
    """The options of Java for executors: those that a user or the cluster gives, and those on which results depend."""
    return f"{given} {_SAME_EVERYWHERE}" if given else _SAME_EVERYWHERE


def _variables_of_launch(master: str, java: Java) -> dict[str, str]:
    # Spark starts `python3` from the PATH for its Python workers, which need not be the one we are installed in.
    variables = {"PYSPARK_PYTHON": sys.executable} if "PYSPARK_PYTHON" not in os.environ else {}
    if is_local(master):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    # In the plain C locale Java cannot open a file whose name is not ASCII.
    if os.environ.get("LC_ALL") in {"C", "POSIX"}:
        variables["LC_ALL"] = "C.UTF-8"
    return {**variables, **launch_environment(java)}


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def computes_here(session: SparkSession) -> bool:
    """Whether a session computes in this process's own Spark, on this machine alone."""
    return not is_remote(session) and is_local(session.sparkContext.master or LOCAL)


def is_local(master: str) -> bool:
    """Whether Spark computes in its own driver alone."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _cores(master: str) -> int:
    if master == "local":
        return 1
    number = re.match(r"local\[(\d+)", master)
    return int(number[1]) if number else os.cpu_count() or 1


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The variables for as long as Spark needs to start, which reads them from its own environment only."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Remove Spark's Ctrl-C handler: it calls the JVM in the middle of another call, and fails (Spark 4.3)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the JVM listens, a second or two: a JVM without a client would never end (Spark 4.3)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if came:
        signal.raise_signal(came[0])


@contextmanager
def _without_pandas_warning() -> Iterator[None]:
    """Spark 4.3 imports pandas when it starts and warns about pandas 3, which we do not use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def _silence_python_loggers() -> None:
    """PySpark writes each error of a query to stderr, as JSON with the Java stack, before it raises it (Spark 4)."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
