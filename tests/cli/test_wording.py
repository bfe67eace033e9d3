"""Messages of the package in the words of the command."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from treeclust_rs.cli import main
from treeclust_rs.cli.wording import in_words_of_the_command


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Only 2 clusters were found, fewer than n_clusters=3: X has too few distinct rows.",
            "Only 2 clusters were found, fewer than -k 3: the table has too few distinct rows.",
        ),
        (
            'Use scale="standard" or rescale the columns.',
            "Use --scale standard or rescale the columns.",
        ),
        ("max_leaves=2 must be at least n_clusters=3.", "--leaves 2 must be at least -k 3."),
        (
            "A smaller alpha or a larger max_depth may give more of them leaves.",
            "A smaller --alpha or a larger --max-depth may give more of them leaves.",
        ),
        (
            'Try a smaller gamma (it is 0.5) or gamma="scale", not gamma=0.5.',
            "Try a smaller --gamma (it is 0.5) or --gamma scale, not --gamma 0.5.",
        ),
        (
            "KernelExKMC and KernelExpand with base_tree=None explain any kernel.",
            "--method kernel-exkmc and --method kernel-expand with --base-tree none explain any "
            "kernel.",
        ),
        (
            "or grow without Kernel IMM (base_tree=None).",
            "or grow without Kernel IMM (--base-tree none).",
        ),
        ("approximation=None takes it as it is.", "no --approximation takes it as it is."),
        (
            "The 'n_cuts' parameter of Douglas must be an int. Got 0 instead.",
            "--n-cuts must be an int. Got 0 instead.",
        ),
        ("Input X contains inf.", "The table contains inf."),
        ("X has duplicate names.", "The table has duplicate names."),
        (
            "Cut fewer columns (feature_mask), or less often (n_cuts=2).",
            "Cut fewer columns (--columns or --drop), or less often (--n-cuts 2).",
        ),
        # Names of columns and labels stay as they are, whatever they look like.
        (
            "column 'X', 'gamma', 'n_cuts=3', \"it's alpha\" and the kernel's scale, not X.csv",
            "column 'X', 'gamma', 'n_cuts=3', \"it's alpha\" and the kernel's scale, not X.csv",
        ),
    ],
)
def test_options_stand_in_place_of_parameters(message: str, words: str) -> None:
    assert in_words_of_the_command(message) == words


def test_warnings_and_errors_of_a_fit_name_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*options: str) -> str:
        main(["fit", "few.csv", "-q", "-k", "3", *options])
        return capsys.readouterr().err

    pl.DataFrame({"x": [1, 1, 1, 2, 2], "y": [0] * 5}).write_csv("few.csv")
    assert "fewer than -k 3: the table has too few distinct rows." in said()
    many = said("--method", "douglas", "--max-iter", "1", "--n-init", "1")
    assert "Other starts (--n-init, --seed), more epochs (--max-iter) or more cuts" in many
    pl.DataFrame({"x": range(9), "y": [0, 1, 5] * 3}).write_csv("few.csv")
    far = said("--method", "kernel-imm", "--gamma", "9e99")
    assert "Try a smaller --gamma (it is 9e+99) or --scale standard." in far
    settled = said("--method", "oblique", "--max-iter", "1")
    assert "stopped after --max-iter 1 before" in settled
    for text in (far, settled, many):
        assert "n_init" not in text
        assert "=" not in text.replace(">=", "")
