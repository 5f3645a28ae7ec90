"""Waits for one answer, where a request is made for itself and not for a record of it."""

import asyncio

from s2l.serving_adapter.base import PreparedRequest, ServingError, Usage


class Answer:
    """A listener whose answer can be awaited."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.usage: asyncio.Future[Usage] = asyncio.get_running_loop().create_future()

    def on_sent(self, index: int) -> None:
        """Nothing is noted."""

    def on_asked(self) -> None:
        """Nothing is noted."""

    def on_prefilled(self, index: int, tokens: int) -> None:
        """Nothing is noted."""

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        self.texts.append(text)

    def on_resent(self, error: ServingError) -> None:
        """Nothing is noted."""

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        if not self.usage.done():
            self.usage.set_result(usage)

    def on_failed(self, error: ServingError) -> None:
        if not self.usage.done():
            self.usage.set_exception(error)


async def answer(request: PreparedRequest, *, chunks: int, salt: str, timeout_s: float) -> Answer:
    """Send all of a request at once and wait for its answer.

    Raises:
        ServingError: it failed, or was not complete in time.
    """
    listener = Answer()
    session = request.start(listener, salt=salt)
    try:
        for index in range(chunks):
            session.send_chunk(index)
        session.ask()
        async with asyncio.timeout(timeout_s):
            await listener.usage
    except TimeoutError:
        raise ServingError("timeout", f"no complete answer within {timeout_s:g} s") from None
    finally:
        session.close()
    return listener
