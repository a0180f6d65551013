"""What an exception of Spark is taken for, by the classes and texts that Spark 4.3 was seen to raise."""

from __future__ import annotations

import socket

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

from dobonomodo.engine.faults import explain_fault, find_loss, noticing_loss
from dobonomodo.problems import RunFailed

NO_ANSWER = """<_MultiThreadedRendezvous of RPC that terminated with:
	status = StatusCode.UNAVAILABLE
	details = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:32915: Connection refused"
	debug_error_string = "UNAVAILABLE:failed to connect to all addresses"
>"""
SESSION_GONE = (
    "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle 6b27fae0-4ed3-4a4e-a5f5-c34e8c9d3f1f is invalid. Session not found. "
    "SQLSTATE: HY000"
)
OPERATION_GONE = (
    "[INVALID_HANDLE.OPERATION_NOT_FOUND] The handle 6b27fae0-4ed3-4a4e-a5f5-c34e8c9d3f1f is invalid. "
    "Operation not found. SQLSTATE: HY000"
)
EXECUTOR_LOST = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 12) (127.0.0.1 executor 4): ExecutorLostFailure (executor 4 exited caused by one of the running tasks) "
    "Reason: Command exited with code 137\nDriver stacktrace:"
)
SHUFFLE_LOST = (
    "Job aborted due to stage failure: ResultStage 3 (save at NativeMethodAccessorImpl.java:0) has failed the maximum "
    "allowable number of times: 4. Most recent failure reason:\n"
    "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 1 partition 0"
)
CHECKPOINT_LOST = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_12_0 not found! SQLSTATE: 56000"
APPLICATION_REMOVED = "Job aborted due to stage failure: Master removed our application: FAILED\nDriver stacktrace:"
CONTEXT_STOPPED = "Job 3 cancelled because SparkContext was shut down"

OVERFLOW = "[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003"
NO_NUMBER = (
    '[CAST_INVALID_INPUT] The value \'ExecutorLostFailure (executor\' of the type "STRING" cannot be cast to "BIGINT" '
    "because it is malformed. SQLSTATE: 22018"
)
NO_SUCH_METHOD = (
    "An error occurred while calling o75.collect. Trace:\npy4j.Py4JException: Method collect([]) does not exist"
)


def unanswered_call() -> Exception:
    """What the bridge to Java raises where no Java listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    with pytest.raises(Exception) as raised:
        gateway.jvm.System.currentTimeMillis()
    return raised.value


def answer_cut_off() -> Exception:
    """What PySpark raises where the socket of an answer is closed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Exception) as raised, _load_from_socket((port, "secret"), NoOpSerializer()):
        pass
    return raised.value


class Speechless(PySparkException):
    """As an error of Java whose text is asked of a Java that is gone."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


LOST = {
    "no Java": unanswered_call(),
    "an answer of Java": answer_cut_off(),
    "an empty answer of Java": Py4JNetworkError("Answer from Java side is empty"),
    "no answer of Java": Py4JError("An error occurred while calling o75.collectToPython"),
    "no Connect server": SparkConnectGrpcException(message=NO_ANSWER),
    "a Connect server that was restarted": SparkConnectGrpcException(message=SESSION_GONE),
    "an operation that was forgotten": SparkConnectGrpcException(message=OPERATION_GONE),
    "executors": PySparkException(message=EXECUTOR_LOST),
    "what executors had shuffled": PySparkException(message=SHUFFLE_LOST),
    "what executors had kept": PySparkException(message=CHECKPOINT_LOST),
    "the application": PySparkException(message=APPLICATION_REMOVED),
    "the context": PySparkException(message=CONTEXT_STOPPED),
}


@pytest.mark.parametrize("error", LOST.values(), ids=LOST)
def test_a_lost_spark_is_worth_another_try(error: Exception) -> None:
    failed = find_loss(error)
    assert failed is not None
    assert (failed.problem.code, failed.retry_helps, failed.problem.operation) == ("SPARK_LOST", True, None)
    with pytest.raises(RunFailed) as raised, noticing_loss():
        raise error
    assert (raised.value.problem, raised.value.retry_helps) == (failed.problem, True)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PySparkException(message=OVERFLOW), "ARITHMETIC_OVERFLOW"),
        (PySparkException(message=NO_NUMBER), "INVALID_NUMBER"),
        (PySparkException(message="[INTERNAL_ERROR] Eh? SQLSTATE: XX000"), "SPARK_FAILED"),
        (Py4JError(NO_SUCH_METHOD), "SPARK_FAILED"),
        (Speechless(message="[INTERNAL_ERROR] Eh?"), "SPARK_FAILED"),
    ],
)
def test_a_fault_of_data_or_query_is_not_a_loss(error: Exception, code: str) -> None:
    assert find_loss(error) is None
    assert explain_fault(error).code == code
    with pytest.raises(type(error)), noticing_loss():
        raise error


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), EOFError(), UnboundLocalError(), ValueError(NO_ANSWER)]
)
def test_what_others_raise_is_not_a_loss(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, noticing_loss():
        raise error
    assert raised.value is error
