"""What a paper states, judged from our own runs. A claim is never bent to pass."""

from narrows.claims.binding import Binding, Instead
from narrows.claims.catalogue import Claim, Paper
from narrows.claims.judge import Part, Verdict, VerdictWord, judge

__all__ = ["Binding", "Claim", "Instead", "Paper", "Part", "Verdict", "VerdictWord", "judge"]
