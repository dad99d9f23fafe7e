"""SMILES-like strings, and a check of them: branches close, rings close, no atom has more bonds than it can have.

A small subset: C N O F S and aromatic c n o, bonds = and #, branches, ring numbers 1 to 3. Aromatic atoms take one bond
more than they show, for the ring. No claim about chemistry beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import constrain
from constrain.sampling.success_walks import Validator

from ..fixtures import Counted
from .tasks import Task, train_ngram

__all__ = ["Molecule", "build_molecule_tasks", "is_valid", "is_viable"]

VALENCE = {"C": 4, "N": 3, "O": 2, "F": 1, "S": 6, "c": 3, "n": 3, "o": 2}
"""Most bonds; of an aromatic atom those that are written."""
ORDER = {"=": 2, "#": 3}
FORM = r"[CNOFScno][CNOFScno123()=#]{2,23}"
READ = (
    "CCO CC(=O)O c1ccccc1 CC(C)O CCN CC(=O)N OCC C1CCCCC1 Cc1ccccc1 Oc1ccccc1 Nc1ccccc1 CC(=O)Oc1ccccc1C(=O)O "
    "CC(=O)Nc1ccc(O)cc1 CCOCC CCC(=O)C C#N CC#N C=C CC=C C#C CN(C)C OCCO NCCO C1CCNCC1 C1COCCO1 c1ccncc1 c1ccoc1 "
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O FC(F)F CSC CS(=O)C CS(=O)(=O)C Fc1ccccc1 COc1ccccc1 c1ccc2ccccc2c1 OC1CCCCC1 "
    "CC(N)C(=O)O NCC(=O)O OCC(O)CO CC(O)C(=O)O C1CC1 C1CCC1 C1CCCC1 CCCCCC CC(C)(C)C O=C1CCCCC1 CNC NC(=O)N "
    "OC(=O)c1ccccc1 CCOC(=O)C c1cnccn1 CN1CCCC1 O=C1CCCN1 NC1CCCCC1 C=Cc1ccccc1 O=Cc1ccccc1 SCC CC(=O)CC(=O)C"
).split()
"""Molecules that anyone who draws molecules knows."""


@dataclass
class Molecule:
    """A text as it is read. free: bonds left at each atom; open_rings: atom and bond by number; branches: atoms."""

    free: list[int] = field(default_factory=list)
    open_rings: dict[str, tuple[int, int]] = field(default_factory=dict)
    branches: list[int] = field(default_factory=list)
    ringed: set[int] = field(default_factory=set)
    aromatic: list[int] = field(default_factory=list)
    last: int = -1
    bond: int = 0
    before: str = ""

    def read(self, letter: str) -> bool:
        """Take a letter; False if nothing right can come of it."""
        good = self.atom(letter) if letter in VALENCE else self.sign(letter)
        self.before = letter
        return good

    def atom(self, letter: str) -> bool:
        self.free.append(VALENCE[letter])
        if letter.islower():
            self.aromatic.append(len(self.free) - 1)
        good = self.last < 0 or self.bound(self.last, len(self.free) - 1, self.bond or 1)
        self.last, self.bond = len(self.free) - 1, 0
        return good

    def bound(self, one: int, other: int, order: int) -> bool:
        self.free[one] -= order
        self.free[other] -= order
        return self.free[one] >= 0 and self.free[other] >= 0

    def sign(self, letter: str) -> bool:
        if self.last < 0 or (self.bond and not letter.isdigit()):
            return False
        if letter in ORDER:
            self.bond = ORDER[letter]
            return self.before not in ORDER
        if letter == "(":
            self.branches.append(self.last)
            return self.before != "(" and self.free[self.last] > 0
        if letter == ")":
            if not self.branches or self.before == "(":
                return False
            self.last = self.branches.pop()
            return True
        if self.before in "()":
            return False
        if letter not in self.open_rings:
            self.open_rings[letter] = self.last, self.bond
            self.bond = 0
            return self.free[self.last] > 0
        other, order = self.open_rings.pop(letter)
        order, self.bond = max(order, self.bond, 1), 0
        self.ringed.update((other, self.last))
        return self.last > other + 1 and self.bound(other, self.last, order)

    @property
    def complete(self) -> bool:
        """Return whether it may end here. An aromatic atom needs a ring somewhere."""
        closed = not self.open_rings and not self.branches and not self.bond and self.before != "("
        return closed and self.last >= 0 and bool(self.ringed or not self.aromatic)


def read_molecule(text: bytes) -> Molecule | None:
    """None if nothing right can come of it."""
    made = Molecule()
    return made if all(made.read(letter) for letter in text.decode()) else None


def is_viable(text: bytes) -> bool:
    """Return whether a beginning may become a molecule, as far as is seen."""
    return read_molecule(text) is not None


def is_valid(text: bytes) -> bool:
    """Return whether it is one."""
    made = read_molecule(text)
    return made is not None and made.complete


WANTED: dict[str, Validator] = {
    "any": lambda text: True,
    "with N": lambda text: b"N" in text or b"n" in text,
    "with a ring": lambda text: b"1" in text,
    "two branches": lambda text: text.count(b"(") >= 2,
}


def combine_judges(further: Validator) -> Validator:
    """Build a judge: a molecule that a further judge accepts."""
    return lambda text: is_valid(text) and further(text)


def build_molecule_tasks(count: int) -> list[Task]:
    """One task for each wish: a model over bytes that has read READ."""
    ngram, vocabulary = train_ngram(READ * 5, order=3)
    form = constrain.compile(vocabulary=vocabulary, regex=FORM)
    return [
        Task("SMILES", name, Counted(ngram), form, 26, accepts=combine_judges(further), viable=is_viable)
        for name, further in list(WANTED.items())[:count]
    ]
