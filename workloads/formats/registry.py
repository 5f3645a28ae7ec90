"""All outside formats, by name."""

from typing import Final

from s2l.workloads.formats import (
    azure,
    burstgpt,
    custom,
    guidellm,
    questions,
    ragpulse,
    ragpulse_writer,
    ready_requests,
    squad,
    stream2llm_anns,
    stream2llm_anns_writer,
    stream2llm_crawl,
    timed_trace,
)
from s2l.workloads.formats.base import Format

_CRAWL = "a folder of query_<int>.csv"
_ANNS = "a folder with res/, query_trace_map*.json and retrieved_corpus_content.*.json"
_ONE_REQUEST: Final = ready_requests.LOSES
_LENGTHS: Final = f"{_ONE_REQUEST}, texts"

_ALL: Final = (
    Format(
        "stream2llm-crawl",
        _CRAWL,
        stream2llm_crawl.LOSES,
        stream2llm_crawl.read,
        stream2llm_crawl.write,
    ),
    Format(
        "stream2llm-anns",
        _ANNS,
        stream2llm_anns_writer.LOSES,
        stream2llm_anns.read,
        stream2llm_anns_writer.write,
    ),
    Format(
        "mooncake", "Mooncake or AIPerf JSONL", _ONE_REQUEST, timed_trace.read, timed_trace.write
    ),
    Format(
        "timed-trace", "vLLM timed_trace JSONL", _ONE_REQUEST, timed_trace.read, timed_trace.write
    ),
    Format("custom", "vLLM custom JSONL", f"{_ONE_REQUEST}, times", custom.read, custom.write),
    Format("guidellm", "GuideLLM JSONL", _ONE_REQUEST, guidellm.read, guidellm.write),
    Format(
        "azure", "Azure LLM inference 2023 CSV", f"{_LENGTHS}, ids, meta", azure.read, azure.write
    ),
    Format("burstgpt", "BurstGPT CSV", f"{_LENGTHS}, ids", burstgpt.read, burstgpt.write),
    Format(
        "ragpulse", "RAGPulse's folder", ragpulse_writer.LOSES, ragpulse.read, ragpulse_writer.write
    ),
    Format(
        "questions", "JSONL or CSV of questions", questions.LOSES, questions.read, questions.write
    ),
    Format("squad", "SQuAD JSON", squad.LOSES, squad.read, squad.write),
)
FORMATS: Final[dict[str, Format]] = {one.name: one for one in _ALL}
