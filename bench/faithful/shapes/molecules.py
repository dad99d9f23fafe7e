"""SMILES-like strings and their validator: branches and rings are closed, no atom exceeds its valence.

A small subset: C N O F S and aromatic c n o, bonds = and #, branches, ring numbers 1 to 3. Aromatic atoms have one bond
more than is written, for the ring. Nothing else of chemistry is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import constrain
from constrain.sampling.success_walks import Validator

from ...counted_models import CachedModel
from .tasks import Task, train_ngram

__all__ = ["Molecule", "build_molecule_tasks", "is_valid", "is_viable"]

VALENCE = {"C": 4, "N": 3, "O": 2, "F": 1, "S": 6, "c": 3, "n": 3, "o": 2}
"""Maximum number of bonds; of an aromatic atom, of those that are written."""
ORDER = {"=": 2, "#": 3}
FORM = r"[CNOFScno][CNOFScno123()=#]{2,23}"
KNOWN = (
    "CCO CC(=O)O c1ccccc1 CC(C)O CCN CC(=O)N OCC C1CCCCC1 Cc1ccccc1 Oc1ccccc1 Nc1ccccc1 CC(=O)Oc1ccccc1C(=O)O "
    "CC(=O)Nc1ccc(O)cc1 CCOCC CCC(=O)C C#N CC#N C=C CC=C C#C CN(C)C OCCO NCCO C1CCNCC1 C1COCCO1 c1ccncc1 c1ccoc1 "
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O FC(F)F CSC CS(=O)C CS(=O)(=O)C Fc1ccccc1 COc1ccccc1 c1ccc2ccccc2c1 OC1CCCCC1 "
    "CC(N)C(=O)O NCC(=O)O OCC(O)CO CC(O)C(=O)O C1CC1 C1CCC1 C1CCCC1 CCCCCC CC(C)(C)C O=C1CCCCC1 CNC NC(=O)N "
    "OC(=O)c1ccccc1 CCOC(=O)C c1cnccn1 CN1CCCC1 O=C1CCCN1 NC1CCCCC1 C=Cc1ccccc1 O=Cc1ccccc1 SCC CC(=O)CC(=O)C"
).split()
"""Common molecules, to train a model on."""


@dataclass
class Molecule:
    """The state of the validator after a prefix.

    free: bonds that each atom can still have. open_rings: (atom, bond) by ring number. branches: the atoms at which
    open branches begin. ringed: atoms that close a ring. aromatic: aromatic atoms. last: the atom that the next one is
    bound to, -1 at the start. bond: order of a written bond whose second atom is missing, else 0. before: the last
    character.
    """

    free: list[int] = field(default_factory=list)
    open_rings: dict[str, tuple[int, int]] = field(default_factory=dict)
    branches: list[int] = field(default_factory=list)
    ringed: set[int] = field(default_factory=set)
    aromatic: list[int] = field(default_factory=list)
    last: int = -1
    bond: int = 0
    before: str = ""

    def read(self, letter: str) -> bool:
        """Read a character. Return False if no valid text begins so."""
        good = self.read_atom(letter) if letter in VALENCE else self.read_sign(letter)
        self.before = letter
        return good

    def read_atom(self, letter: str) -> bool:
        """Read an atom and bind it to the last one."""
        self.free.append(VALENCE[letter])
        if letter.islower():
            self.aromatic.append(len(self.free) - 1)
        good = self.last < 0 or self.bind(self.last, len(self.free) - 1, self.bond or 1)
        self.last, self.bond = len(self.free) - 1, 0
        return good

    def bind(self, one: int, other: int, order: int) -> bool:
        """Add a bond between two atoms. Return False if one of them exceeds its valence."""
        self.free[one] -= order
        self.free[other] -= order
        return self.free[one] >= 0 and self.free[other] >= 0

    def read_sign(self, letter: str) -> bool:
        """Read a bond, a bracket or a ring number."""
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
        return self.last > other + 1 and self.bind(other, self.last, order)

    @property
    def complete(self) -> bool:
        """Whether the text is valid as it is; an aromatic atom requires a ring."""
        closed = not self.open_rings and not self.branches and not self.bond and self.before != "("
        return closed and self.last >= 0 and bool(self.ringed or not self.aromatic)


def read_molecule(text: bytes) -> Molecule | None:
    """Return the state after a prefix, or None if no valid text begins so."""
    made = Molecule()
    return made if all(made.read(letter) for letter in text.decode()) else None


def is_viable(text: bytes) -> bool:
    """Return whether a valid text may begin with a prefix. It may accept prefixes that none begins with."""
    return read_molecule(text) is not None


def is_valid(text: bytes) -> bool:
    """Return whether a text is a molecule."""
    made = read_molecule(text)
    return made is not None and made.complete


WANTED: dict[str, Validator] = {
    "any": lambda text: True,
    "with N": lambda text: b"N" in text or b"n" in text,
    "with a ring": lambda text: b"1" in text,
    "two branches": lambda text: text.count(b"(") >= 2,
}
"""What a task requires besides validity."""


def combine_validators(further: Validator) -> Validator:
    """Return a validator: whether a text is a molecule that a further validator accepts."""
    return lambda text: is_valid(text) and further(text)


def build_molecule_tasks(count: int) -> list[Task]:
    """Build a task for each entry of WANTED, with a byte-level model trained on KNOWN."""
    ngram, vocabulary = train_ngram(KNOWN * 5, order=3)
    form = constrain.compile(vocabulary=vocabulary, regex=FORM)
    return [
        Task("SMILES", name, CachedModel(ngram), form, 26, accepts=combine_validators(further), viable=is_viable)
        for name, further in list(WANTED.items())[:count]
    ]
