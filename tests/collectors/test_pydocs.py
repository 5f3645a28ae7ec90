import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.extraction.extractor import Extractor
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.searching.site import SiteSearch
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions

sys.path.insert(0, str(Path(__file__).parent))
from collecting_crawl import collect_crawl

_FOLDER = Path(__file__).parents[2] / "datasets" / "pydocs"


@pytest.fixture(scope="module")
def questions() -> list[Query]:
    return read_questions(_FOLDER / "queries.jsonl")


def test_there_are_40_different_questions(questions: list[Query]) -> None:
    assert [query.query_id for query in questions] == [f"pydocs-{i:03}" for i in range(1, 41)]
    assert len({query.text for query in questions}) == 40
    assert all(query.answers and query.meta["page"] for query in questions)
    booleans = [query for query in questions if set(query.answers) <= {"True", "False"}]
    assert len(booleans) <= 8


async def test_every_answer_stands_in_its_page_which_the_search_finds(
    demo_site: Any, questions: list[Query]
) -> None:
    async with Fetcher(allow_private=True) as fetcher, Extractor() as extractor:
        search = SiteSearch(fetcher, demo_site.search_url)

        async def problem(query: Query) -> str | None:
            url = demo_site.url + query.meta["page"]
            if url not in [hit.url for hit in await search.search(query, 7)]:
                return f"{query.query_id}: {url} is not among the first 7 hits"
            found = await extractor.read(await fetcher.fetch(url, lambda: 0))
            if not any(_has_word(found.text, answer) for answer in query.answers):
                return f"{query.query_id}: {query.answers} is not in {found.text[:300]!r}"
            return None

        problems = await asyncio.gather(*(problem(query) for query in questions))
    assert [text for text in problems if text] == []


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


async def test_all_questions_can_be_crawled_without_a_failure(
    demo_site: Any, questions: list[Query], sink: Any
) -> None:
    done = await collect_crawl(
        questions, demo_site.search_url, sink, concurrency=20, settings=CrawlSettings.at_home()
    )
    assert (done.done, done.failures) == (40, {})
    assert {len(sink.arrivals(query.query_id)) for query in questions} == {9}
