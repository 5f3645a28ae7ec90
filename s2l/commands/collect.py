"""``s2l collect``: both kinds of retrieval."""

import click

from s2l.commands.collect_ann import ann
from s2l.commands.collect_crawl import crawl


@click.group()
def collect() -> None:
    """Record how context arrives, as a trace dataset."""


collect.add_command(ann)
collect.add_command(crawl)
