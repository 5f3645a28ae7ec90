"""The ``s2l`` program: parses, wires the parts together, and turns failures into exit codes."""

import importlib
import sys
from typing import Final

import click

from s2l import __version__
from s2l.exits import FAILED, INTERRUPTED, USAGE, exit_code_of, message_of

COMMANDS: Final = {
    "collect": "Record how context arrives, as a trace dataset.",
    "compare": "Compare runs, paired by query, with intervals and in plain words.",
    "dataset": "Look at, make, convert, check and share trace datasets.",
    "demo": "The whole job on this machine: crawl, replay both deliveries, report.",
    "doctor": "What is installed, what works here, what to install.",
    "export": "Write a run's metrics as a table, or its figures for a paper.",
    "import-run": "Make a run of a log that Stream2LLM's experiments wrote.",
    "mock": "A server with known latencies, for both protocols.",
    "publish": "Make a static site of runs, or add to one.",
    "replay": "Replay a trace against a server, streaming and waiting.",
    "report": "Make HTML reports of runs.",
    "score": "Grade a run's answers with a model: semantic similarity, a judge.",
    "serve": "Stock vLLM with the Realtime endpoint plugin.",
    "site": "The demo site: Python's documentation behind web-like latencies.",
    "sweep": "Replay at several rates; find the highest that meets objectives.",
}
"""Every command is a module of ``s2l.commands``, imported when it is called and not before."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"s2l.commands.{name}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="s2l")
def program() -> None:
    """Capture how retrieved context arrives, replay it, report what streaming it saves."""


def main() -> None:
    """Run the program; every failure is one line and an exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the program with these arguments; its exit code."""
    try:
        result = program.main(arguments, prog_name="s2l", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _say(f"{error.format_message()}{hint}", USAGE)
    except click.ClickException as error:
        return _say(error.format_message(), FAILED)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output is gone; there is nobody to tell
        return FAILED
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        return _say(message_of(error), code)


def _say(message: str, code: int) -> int:
    click.echo(f"s2l: {' '.join(message.split())}", err=True)
    return code
