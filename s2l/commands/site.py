"""``s2l site``"""

import click

from s2l.collectors.demo_site.process import DemoSite, PortTaken
from s2l.foreground import run_until_interrupted
from s2l.parameters import POSITIVE
from s2l.progress import say


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--speed", type=POSITIVE, default=1.0, show_default=True, help="Divides latencies.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--failure-rate", type=click.FloatRange(0, 1), default=0.0, help="Share of pages that fail."
)
def site(port: int, speed: float, seed: int, failure_rate: float) -> int:
    """Serve Python's documentation with the latencies of a real crawl, until Ctrl-C."""

    async def serve() -> None:
        options = DemoSite(port=port, speed=speed, seed=seed, failure_rate=failure_rate)
        async with options as demo_site:
            say(f"demo site: {demo_site.url}  search: {demo_site.search_url}  (Ctrl-C stops it)")
            await demo_site.wait()

    try:
        return run_until_interrupted(serve())
    except PortTaken as error:
        raise click.ClickException(f"{error}; --port 0 takes a free one") from None
