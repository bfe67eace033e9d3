"""The parser of the command ``treeclust``."""

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..export.sql import DIALECTS
from . import arguments as read
from .exporting import FORMS
from .fit_options import (
    add_clusters,
    add_columns,
    add_escape_formulas,
    add_fit_options,
    add_force,
    add_include_greedy,
    add_stream,
    add_work,
)
from .messages import EXIT_STATUSES, UserError


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Help with its line breaks, and with room for the names of the options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class _Parser(argparse.ArgumentParser):
    """Argument errors as one line, like all others; options are written out in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the arguments; those that are not known are errors of this very command."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [word for word in unknown if word.startswith("-")]
            hint = "" if options else ": files come before the options, commas between columns"
            self.error(f"unrecognized arguments: {' '.join(options or unknown)}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


def program_name() -> str:
    """Return the words that start this command again as it was started."""
    started = Path(sys.argv[0])
    if started.parts[-2:] == ("treeclust_rs", "__main__.py"):
        return f"{Path(sys.executable).name.removesuffix('.exe')} -m treeclust_rs"
    if started.stem != "treeclust":
        return "treeclust"
    found = shutil.which("treeclust")
    is_found = found is not None and Path(found).parent.resolve() == started.parent.resolve()
    return "treeclust" if is_found else shlex.quote(str(started))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; its result names the command in `command`."""
    program = program_name()
    parser = _Parser(
        prog=program,
        description="Cluster a table and explain the clusters by a small decision tree.",
        epilog="For example:\n"
        f"  {program} demo\n"
        f"  {program} fit customers.parquet -k 6 --leaves 12 -o customers.json --plot tree.png\n"
        f"  {program} predict customers.json new.csv -o labelled.csv\n"
        f"\nThe options of a command: {program} COMMAND --help\n\n{EXIT_STATUSES}",
        formatter_class=_Layout,
    )
    parser.add_argument("--version", action="version", version=f"treeclust {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for add in (
        _add_demo,
        _add_fit,
        _add_compare,
        _add_predict,
        _add_explain,
        _add_profile,
        _add_plot,
        _add_export,
        _add_report,
        _add_info,
        _add_rename,
    ):
        add(commands)
    return parser


def _add_command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="For example:\n"
        + examples.replace("  treeclust ", f"  {program_name()} ")
        + f"\n\n{EXIT_STATUSES}",
        formatter_class=_Layout,
    )
    return parser


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        "demo",
        "cluster real wines, and customers as a database has them: a tour in ten seconds",
        "  treeclust demo\n  treeclust demo -o somewhere",
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", default="demo", help="where to write (default: demo)"
    )


def _add_fit(commands: Any) -> None:
    parser = _add_command(
        commands,
        "fit",
        "find clusters in a table and the tree that explains them",
        "  treeclust fit customers.csv -k 6 -o customers.json\n"
        "  treeclust fit customers.csv -k 6 --leaves 12 --drop id,name --plot tree.png\n"
        "  treeclust fit players.csv -k 6 --drop Name --numbers Value,Wage --levels Shirt\n"
        "  treeclust fit points.parquet --reference segment --leaves 20 -o segments.json\n"
        "  treeclust fit points.parquet --method kauri -k 5 --leaves 8 --kernel rbf\n"
        "  treeclust fit rings.csv --method kernel-expand -k 2 --leaves 6 --gamma scale\n"
        "  treeclust fit customers.csv --method oblique -k 6 --scale standard --alpha 3\n"
        "  treeclust fit folder/ --drop id --method exkmc --stream -o m.json",
    )
    _add_data(parser)
    add_fit_options(parser)


def _add_compare(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compare",
        "fit several methods to a table: what each costs and how hard it is to read",
        "  treeclust compare customers.csv -k 6\n"
        "  treeclust compare customers.csv -k 6 --methods best,exkmc,kauri --leaves 6,9,12\n"
        "  treeclust compare points.csv --reference segment --labels truth -o found.csv\n"
        "  treeclust compare customers.csv -k 6 --model customers.json --plot costs.png",
    )
    _add_data(parser)
    add_columns(parser)
    add_clusters(parser).add_argument(
        "--labels",
        metavar="COLUMN",
        help="true classes, which nothing but the column ari (adjusted Rand index) knows of",
    )
    compared = parser.add_argument_group("what to compare")
    compared.add_argument(
        "--methods",
        metavar="A,B,...",
        help="names of methods, as --method of treeclust fit has them (default: those for "
        "threshold trees without a kernel)",
    )
    compared.add_argument(
        "--model",
        dest="models",
        action="append",
        default=[],
        metavar="MODEL",
        help="a model file as well, measured as it is; may be repeated",
    )
    compared.add_argument(
        "--leaves",
        type=read.several_leaves,
        metavar="N,N,...",
        help="numbers of leaves for the methods that take one (default: one, two and four times "
        "the number of clusters)",
    )
    add_include_greedy(compared)
    output = parser.add_argument_group("what to write")
    output.add_argument(
        "-o", "--output", metavar="TABLE", help="the measures (.csv, .tsv, .parquet, .json)"
    )
    output.add_argument(
        "--plot", metavar="PICTURE", help="cost by number of leaves (.png, .svg, .pdf)"
    )
    add_force(output)
    add_work(parser, "number of fits at a time, of one thread each (default: one fit, all cores)")


def _add_predict(commands: Any) -> None:
    parser = _add_command(
        commands,
        "predict",
        "add the cluster of every row to a table",
        "  treeclust predict customers.json new.csv -o labelled.csv\n"
        "  treeclust predict customers.json new.parquet --column segment -o labelled.parquet\n"
        "  treeclust predict customers.json new.csv | head\n"
        "  treeclust predict customers.json 2024.csv.gz 2025.csv.gz -o both.csv.gz\n"
        "  treeclust predict customers.json new.csv --drift\n"
        "  treeclust predict customers.json folder/ --stream -o labelled.parquet",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "-o", "--output", metavar="TABLE", help="write here (default: to stdout, as CSV)"
    )
    parser.add_argument(
        "--column", metavar="NAME", default="cluster", help="name it so (default: cluster)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a column of that name in the table"
    )
    parser.add_argument(
        "--drift",
        action="store_true",
        help="print, by column that the model tests, the missing cells and the levels that the fit "
        "did not have; without -o nothing else",
    )
    add_stream(
        parser,
        "for tables larger than memory: read, label and write them batch by batch; the output is "
        "the same. To stdout rows are written before an error in later ones is found",
    )
    add_escape_formulas(parser)
    add_force(parser)


def _add_explain(commands: Any) -> None:
    parser = _add_command(
        commands,
        "explain",
        "say in one line per row why it is in its cluster",
        "  treeclust explain customers.json new.csv --rows 0-9\n"
        "  treeclust explain customers.json new.csv --rows 17,42",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "--rows", metavar="ROWS", help="which, counted from 0: 0,3,10-19 (default: all)"
    )


def _add_profile(commands: Any) -> None:
    parser = _add_command(
        commands,
        "profile",
        "say what the rows of each cluster are like, and what sets them apart",
        "  treeclust profile customers.json customers.csv\n"
        "  treeclust profile customers.json customers.csv -o profile.csv --plot profile.png",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "--scale",
        choices=("model", "standard", "robust"),
        default="model",
        help="units of the contrasts (default: those of the model's fit)",
    )
    parser.add_argument(
        "-o", "--output", metavar="TABLE", help="the figures (.csv, .tsv, .parquet, .json)"
    )
    parser.add_argument("--plot", metavar="PICTURE", help="a heat map (.png, .svg, .pdf)")
    add_force(parser)


def _add_plot(commands: Any) -> None:
    parser = _add_command(
        commands,
        "plot",
        "draw the tree of a model",
        "  treeclust plot customers.json -o tree.png\n"
        "  treeclust plot customers.json --leaves 6 -o small.svg\n"
        "  treeclust plot customers.json -o tree.dot",
    )
    _add_model(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PICTURE",
        required=True,
        help="write here: .png, .svg, .pdf, or .dot (Graphviz text)",
    )
    parser.add_argument(
        "--no-details",
        action="store_true",
        help="for a slide: tests, clusters and their shares of the rows alone",
    )
    add_force(parser)
    _add_truncation(parser)


def _add_export(commands: Any) -> None:
    parser = _add_command(
        commands,
        "export",
        "write the tree of a model as a page, SQL, polars, ONNX, a picture or a table of rules",
        "  treeclust export customers.json --to html -o tree.html\n"
        "  treeclust export customers.json customers.csv --to html -o tree.html\n"
        "  treeclust export customers.json --to sql --dialect postgres --table customers\n"
        "  treeclust export customers.json --to polars -o customers_cluster.py\n"
        "  treeclust export customers.json --to onnx -o tree.onnx",
    )
    _add_model(parser)
    _add_data(parser, "*")
    parser.add_argument(
        "--to",
        required=True,
        choices=tuple(FORMS),
        help="html: a page to look through in a browser, offline, with histograms and contrasts of "
        "the rows of DATA; polars: Python code of an expression; json: the model file itself, with "
        "--leaves cut down; rules: a table; the others as their names say",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write here (default of sql, polars, json and dot: to stdout)",
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        choices=tuple(DIALECTS),
        default="duckdb",
        help=f"of SQL: {', '.join(DIALECTS)} (default: duckdb)",
    )
    parser.add_argument(
        "--table", metavar="NAME", help="a SELECT from this table (default: a CASE expression)"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="of the column of labels in the SELECT (default: cluster)"
    )
    add_force(parser)
    _add_truncation(parser)


def _add_report(commands: Any) -> None:
    parser = _add_command(
        commands,
        "report",
        "write one page about a model for those who decide, to read or to print",
        "  treeclust report customers.json customers.csv -o report.html\n"
        "  treeclust report new.json customers.csv --previous old.json -o report.html",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="write here: .html (PDF: print it)"
    )
    parser.add_argument(
        "--previous", metavar="MODEL", help="an older model file: the page says what changed"
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    parser.add_argument(
        "--exemplars",
        type=read.whole_number(0),
        default=3,
        metavar="N",
        help="typical rows to show of each cluster; 0 writes no rows into the file (default: 3)",
    )
    add_force(parser)
    _add_truncation(parser)


def _add_info(commands: Any) -> None:
    parser = _add_command(
        commands,
        "info",
        "print the tree of a model and what it costs",
        "  treeclust info customers.json\n  treeclust info customers.json --rules\n"
        "  treeclust info customers.json --leaves 8 --rules-out rules.csv",
    )
    _add_model(parser)
    parser.add_argument("--rules", action="store_true", help="one rule per leaf, as a table")
    parser.add_argument(
        "--rules-out", metavar="TABLE", help="write the rules here (.csv, .tsv, .parquet)"
    )
    add_force(parser)
    _add_truncation(parser)


def _add_rename(commands: Any) -> None:
    parser = _add_command(
        commands,
        "rename",
        "give the clusters of a model names",
        "  treeclust rename customers.json 0=Loyal 3='On the move' -o named.json\n"
        "  treeclust rename named.json Loyal=Regular -o named.json --force",
    )
    _add_model(parser)
    parser.add_argument(
        "names",
        metavar="CLUSTER=NAME",
        type=read.name_of_cluster,
        nargs="+",
        help="a cluster and its new name; the others keep theirs",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="MODEL",
        required=True,
        help="write here (.json); predictions, rules and pictures of this model have the names",
    )
    add_force(parser)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a model file, as treeclust fit -o writes it"
    )


def _add_model_and_data(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_data(parser)


def _add_data(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs=nargs,
        help="a table: .csv, .tsv, .txt (tabs), these with .gz too, .parquet; a folder stands for "
        "the tables in it; several files of the same columns are one table",
    )
    text = parser.add_argument_group("how DATA is written, if it is text")
    text.add_argument(
        "--separator",
        type=read.separator,
        metavar="CHARACTER",
        help="between the cells (default: ',' for .csv, tab for .tsv and .txt)",
    )
    text.add_argument("--decimal-comma", action="store_true", help="numbers are written as in 3,14")
    text.add_argument(
        "--encoding", type=read.encoding, metavar="NAME", help="such as latin-1 (default: utf-8)"
    )
    text.add_argument(
        "--no-header", action="store_true", help="there are no names; call the columns x0, x1, ..."
    )


def _add_truncation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--leaves",
        type=read.whole_number(1),
        metavar="N",
        help="the smaller tree of this many leaves",
    )
