"""Experiments: what they are, and the plans they expand into."""

from narrows.experiment.content import Content, read_content
from narrows.experiment.define import FILE, GIVEN, Experiment, identifier, place_of
from narrows.experiment.plans import (
    ABSENT,
    MAX_NAME,
    SEPARATOR,
    ControllerUse,
    Difference,
    Pairs,
    Plan,
    apart,
    case_name,
    is_plain,
    labelled,
)
from narrows.experiment.report import ReportChoice
from narrows.experiment.seeds import MAX_SEEDS, Seeds, chosen_seeds, seeds_text

__all__ = [
    "ABSENT",
    "FILE",
    "GIVEN",
    "MAX_NAME",
    "MAX_SEEDS",
    "SEPARATOR",
    "Content",
    "ControllerUse",
    "Difference",
    "Experiment",
    "Pairs",
    "Plan",
    "ReportChoice",
    "Seeds",
    "apart",
    "case_name",
    "chosen_seeds",
    "identifier",
    "is_plain",
    "labelled",
    "place_of",
    "read_content",
    "seeds_text",
]
