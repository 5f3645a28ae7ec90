"""``s2l compare``"""

from pathlib import Path

import click

from s2l.exits import FAILED
from s2l.progress import console, say
from s2l.reports.comparison.comparable import TOKEN_TOLERANCE
from s2l.reports.comparison.compare import Options, compare_sides
from s2l.reports.comparison.gate import GateError, judge_gates, parse_gate
from s2l.reports.comparison.json import comparison_json
from s2l.reports.comparison.markdown import markdown
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.terminal import print_comparisons
from s2l.reports.slo import Slo, SloError, parse_request_slos
from s2l.runs import RUN
from s2l.writing import writing


class _Tolerance(click.ParamType[float]):
    """A share in per cent."""

    name = "percent"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            share = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 <= share <= 10:
            self.fail(f"{value!r} is no share; write it as 5%", param, ctx)
        return share


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option(
    "--slo", "slo_text", help="What each request has to meet, as ttft_s<500ms,tpot_s<50ms."
)
@click.option("--fail-if", "gate_texts", multiple=True, help="As 'ttft_s.p95 > +5%'; exit code 1.")
@click.option(
    "--token-tolerance",
    type=_Tolerance(),
    default=TOKEN_TOLERANCE,
    help="By how much prompts may differ in tokens.  [default: 2%]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the intervals.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page, too.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Markdown on standard output.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare(
    runs: tuple[Path, ...],
    slo_text: str | None,
    gate_texts: tuple[str, ...],
    token_tolerance: float,
    seed: int,
    html: Path | None,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """Compare RUNS with the first of them, paired by query, with intervals and in plain words.

    Sweeps are compared rate by rate.

    --fail-if takes [DELIVERY.]METRIC[.LEVEL], > or <, and a limit: % of the base, pp (percentage
    points) of a share, s or ms. The measured change decides, not its interval, which is printed;
    a figure that cannot be told fails.
    """
    if len(runs) < 2:
        raise click.UsageError("two runs at least; name the base first")
    slos = _slos(slo_text)
    try:
        gates = [parse_gate(text) for text in gate_texts]
    except GateError as error:
        raise click.UsageError(f"--fail-if {error}") from None
    options = Options(slos, seed, token_tolerance)
    base = Side.open(runs[0])
    compared = [compare_sides(base, Side.open(path), options) for path in runs[1:]]
    results = judge_gates(gates, compared)
    if html:
        from s2l.reports.comparison.html import write_comparison

        with writing(html):
            write_comparison(compared, results, html)
        say(f"page: {html}")
    if as_json:
        click.echo(comparison_json(compared, results))
    elif as_markdown:
        click.echo(markdown(compared, results), nl=False)
    else:
        print_comparisons(compared, results, console)
    return FAILED if any(result.failed for result in results) else 0


def _slos(text: str | None) -> tuple[Slo, ...]:
    try:
        return parse_request_slos(text) if text else ()
    except SloError as error:
        raise click.UsageError(f"--slo: {error}") from None
