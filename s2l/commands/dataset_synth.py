"""``s2l dataset synth``"""

from pathlib import Path

import click
import msgspec

from s2l import __version__
from s2l.folders import TRACES, new_folder
from s2l.parameters import POSITIVE, TOKENIZER
from s2l.progress import bar, say
from s2l.workloads.plural import counted
from s2l.workloads.privacy import HIDE
from s2l.workloads.synth.measured_profile import measure
from s2l.workloads.synth.profile import Profile
from s2l.workloads.synth.profiles import PROFILES, profile_named
from s2l.workloads.synth.synthesis import SynthOptions, write_synthetic
from s2l.workloads.synth.text import text_maker
from s2l.workloads.token_counter import TokenCounter, token_counter
from s2l.workloads.trace import Trace


@click.command(name="synth")
@click.option("--profile", type=click.Choice(list(PROFILES)), help="A published shape.")
@click.option("--like", type=click.Path(path_type=Path), help="A dataset to be like.")
@click.option("-n", "--queries", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--qps", type=POSITIVE, default=1.0, show_default=True, help="Queries per second.")
@click.option(
    "--arrivals", type=click.Choice(["poisson", "constant"]), default="poisson", show_default=True
)
@click.option(
    "--tokenizer",
    type=TOKENIZER,
    help="tokenizer.json, or the folder it is in: texts are exact in its tokens.  "
    "[default: a word is a token]",
)
@click.option(
    "--privacy",
    type=click.Choice(list(HIDE)),
    default="full",
    show_default=True,
    help="urls keeps lengths and hashes of the texts, not the texts.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the trace.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def dataset_synth(
    profile: str | None,
    like: Path | None,
    queries: int,
    seed: int,
    qps: float,
    arrivals: str,
    tokenizer: Path | None,
    privacy: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Make a workload of a published shape, or like another dataset; the same for a seed."""
    counter = token_counter(tokenizer)
    chosen = _profile(profile, like, counter)
    texts = text_maker(seed, counter)
    path = out or new_folder(TRACES, "synth")
    options = SynthOptions(queries, seed, qps, arrivals, privacy, __version__)
    with bar("queries", queries) as shown:
        manifest = write_synthetic(path, chosen, texts, options, lambda done: shown.advance())
    counts = manifest.counts
    say(
        f"{path}: {counted(counts.queries, 'query', 'queries')}, "
        f"{counted(counts.documents, 'document')}, {chosen.name}"
    )
    if as_json:
        click.echo(msgspec.json.encode({"trace": str(path), "counts": counts}))


def _profile(name: str | None, like: Path | None, counter: TokenCounter) -> Profile:
    if (name is None) == (like is None):
        raise click.UsageError("give one of --profile and --like")
    return profile_named(name) if name else measure(Trace.open(like or Path()), counter)
