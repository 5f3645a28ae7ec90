"""One function per metric, over the columns of a run's tables.

A function takes a table with the columns of ``REQUEST_SCHEMA`` (or ``CHUNK_SCHEMA``) and gives
seconds or a ratio as float64, aligned with its rows; NaN where the metric is not defined for that
row. Which rows count is the caller's choice: latencies are taken over ``succeeded`` requests.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
"""The same number for the same key, as ``codes`` gives them."""

US_PER_S = 1e6


def column(table: pa.Table, name: str) -> Floats:
    """A numeric column as float64; null becomes NaN."""
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def codes(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column's values as numbers, the same for the same value, in the order of appearance."""
    found = table[name].combine_chunks().dictionary_encode().indices
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def seconds(table: pa.Table, earlier: str, later: str) -> Floats:
    """Seconds between two time columns, NaN where either never happened."""
    return (column(table, later) - column(table, earlier)) / US_PER_S


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """A quotient, or None where a part is unknown or the denominator is not positive."""
    if numerator is None or denominator is None or not denominator > 0:
        return None
    return numerator / denominator


def succeeded(requests: pa.Table) -> pa.Table:
    """The requests that have no ``error_type``."""
    return requests.filter(pc.is_null(requests["error_type"]))


def ttft_s(requests: pa.Table) -> Floats:
    """First token minus context due (the intended time of the last arrival)."""
    return seconds(requests, "context_intended_us", "first_token_us")


def ttft_service_s(requests: pa.Table) -> Floats:
    """First token minus the moment the last context and the question were really sent."""
    return seconds(requests, "context_us", "first_token_us")


def ttft_user_s(requests: pa.Table) -> Floats:
    """First token minus the query's intended start: what a person waits, retrieval included."""
    return seconds(requests, "start_intended_us", "first_token_us")


def ttft_answer_s(requests: pa.Table) -> Floats:
    """First text that is no reasoning minus context due.

    Where the run does not tell reasoning apart, all of the text is answer, and this is ``ttft_s``.
    """
    answer = column(requests, "first_answer_us")
    no_reasoning = np.nan_to_num(column(requests, "reasoning_tokens")) == 0
    untold = np.isnan(answer) & no_reasoning
    answer[untold] = column(requests, "first_token_us")[untold]
    return (answer - column(requests, "context_intended_us")) / US_PER_S


def tpot_s(requests: pa.Table) -> Floats:
    """(Last token minus first token) / (output tokens - 1); NaN at one token or fewer."""
    gaps = column(requests, "output_tokens") - 1
    gaps[~(gaps > 0)] = np.nan
    return seconds(requests, "first_token_us", "last_token_us") / gaps


def itl_s(requests: pa.Table) -> Floats:
    """Gaps between consecutive content events of a request, pooled over all of them."""
    parts = [_gaps(chunk) for chunk in requests["token_us"].chunks]
    return np.concatenate(parts) if parts else np.empty(0)


def _gaps(lists: pa.ListArray) -> Floats:
    """Seconds between neighbours inside each list."""
    times = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.int64)
    if times.size < 2:
        return np.empty(0)
    ends = np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))
    inside = np.ones(times.size - 1, dtype=np.bool_)
    borders = ends[(ends > 0) & (ends < times.size)] - 1
    inside[borders] = False
    return np.diff(times)[inside] / US_PER_S


def e2e_s(requests: pa.Table) -> Floats:
    """Last token minus context due."""
    return seconds(requests, "context_intended_us", "last_token_us")


def e2e_user_s(requests: pa.Table) -> Floats:
    """Last token minus the query's intended start."""
    return seconds(requests, "start_intended_us", "last_token_us")


def ttft_user_actual_s(requests: pa.Table) -> Floats:
    """As ``ttft_user_s``, from the query's actual start."""
    return seconds(requests, "start_us", "first_token_us")


def e2e_service_s(requests: pa.Table) -> Floats:
    """As ``e2e_s``, from the moment the last context and the question were really sent."""
    return seconds(requests, "context_us", "last_token_us")


def e2e_user_actual_s(requests: pa.Table) -> Floats:
    """As ``e2e_user_s``, from the query's actual start."""
    return seconds(requests, "start_us", "last_token_us")


def schedule_lag_s(requests: pa.Table) -> Floats:
    """Actual start minus intended start; NaN for a request that was never started."""
    return seconds(requests, "start_intended_us", "start_us")


def chunk_lag_s(chunks: pa.Table) -> Floats:
    """When the client gave a context chunk to its connection, minus when it was to; NaN where it
    never did. Runs that do not say it have the time when the chunk went out."""
    handed_s = seconds(chunks, "send_intended_us", "handed_us")
    sent_s = seconds(chunks, "send_intended_us", "sent_us")
    return np.where(np.isnan(handed_s), sent_s, handed_s)


def completion_s(requests: pa.Table) -> float | None:
    """Last request's end minus first request's intended start, failed requests included.

    This is also the measured window of the rates. None when nothing ended.
    """
    first = pc.min(requests["start_intended_us"]).as_py()
    last = pc.max(requests["end_us"]).as_py()
    return None if first is None or last is None else float((last - first) / US_PER_S)


def total(requests: pa.Table, *names: str) -> int | None:
    """Sum of the successes' token columns; None as soon as one of them is not known.

    A sum over the known ones alone would be a smaller number that looks like the whole.
    """
    done = succeeded(requests)
    if done.num_rows == 0 or any(done[name].null_count for name in names):
        return None
    return sum(int(pc.sum(done[name]).as_py()) for name in names)


def request_rate(requests: pa.Table) -> float | None:
    """Successes per second of the measured window."""
    return ratio(float(succeeded(requests).num_rows), completion_s(requests))


def output_token_rate(requests: pa.Table) -> float | None:
    """Output tokens of the successes per second of the measured window."""
    return ratio(total(requests, "output_tokens"), completion_s(requests))


def total_token_rate(requests: pa.Table) -> float | None:
    """Input and output tokens of the successes per second of the measured window."""
    return ratio(total(requests, "prompt_tokens", "output_tokens"), completion_s(requests))


def prefill_hidden(requests: pa.Table) -> Floats:
    """Share of the prompt that was already prefilled when the context was due.

    1 - (tokens left to prefill / prompt tokens). What is left is the prompt without its cached
    tokens, as the server's usage has them; NaN where it says nothing.
    """
    prompt = column(requests, "prompt_tokens")
    prompt[~(prompt > 0)] = np.nan
    return column(requests, "cached_tokens") / prompt


def prefill_work(requests: pa.Table) -> Floats:
    """Tokens prefilled / tokens in the final prompt: 1 where nothing was prefilled in vain.

    (prompt tokens + invalidated tokens) / prompt tokens, as the server's usage has them; NaN where
    it does not say. With caches that sessions share it is an upper bound: what others prefilled
    counts as if it had been prefilled again.
    """
    prompt = column(requests, "prompt_tokens")
    prompt[~(prompt > 0)] = np.nan
    return (prompt + column(requests, "invalidated_tokens")) / prompt


def reuse(chunks: pa.Table) -> Floats:
    """Share of the context before it that a replacing chunk kept: kept tokens / tokens before.

    NaN for a chunk that only appends, where the context before was empty, and where tokens are not
    known. Chunks of all requests may be mixed, in any order.
    """
    order, starts = by_request(chunks)
    context = column(chunks, "context_tokens")[order]
    before = np.r_[np.nan, context][: context.size]
    before[starts | ~(before > 0)] = np.nan
    before[~replaces(chunks)[order]] = np.nan
    found = np.empty(context.size)
    found[order] = column(chunks, "kept_tokens")[order] / before
    return found


def replaces(chunks: pa.Table) -> Booleans:
    """Whether each chunk is the whole context anew, and not an addition to it."""
    return np.asarray(pc.equal(chunks["kind"], "replace").to_numpy(), dtype=np.bool_)


def by_request(chunks: pa.Table) -> tuple[npt.NDArray[np.intp], Booleans]:
    """Row numbers of chunks by request and ``seq``, and which of them are a request's first."""
    owner = owners(chunks)
    seq = chunks["seq"].to_numpy()
    order = np.lexsort((seq, owner))
    ordered = owner[order]
    starts: Booleans = np.r_[True, ordered[1:] != ordered[:-1]][: owner.size]
    return order, starts


def owners(chunks: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each chunk's request, the same for all of its chunks.

    The column ``owner`` where the table has it, else ids numbered as they appear.
    """
    if "owner" in chunks.column_names:
        return np.asarray(chunks["owner"].to_numpy(), dtype=np.int64)
    return codes(chunks, "request_id")


def arrival_gaps_s(chunks: pa.Table) -> Floats:
    """Seconds from one chunk's intended arrival to the next one's of the same request, pooled."""
    order, starts = by_request(chunks)
    times = column(chunks, "arrival_intended_us")[order]
    return np.diff(times)[~starts[1:]] / US_PER_S


def retrieval_s(requests: pa.Table) -> Floats:
    """How long a query's context took to arrive: context due minus the query's intended start."""
    return seconds(requests, "start_intended_us", "context_intended_us")
