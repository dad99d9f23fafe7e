"""Names, words and sentences of the questions; none of them is in the pools from which the training data is drawn.

`training/make_corpus.py` leaves out every document that contains one of them.
"""

from __future__ import annotations

__all__ = [
    "CITIES", "COLORS", "COMPANIES", "FIRST_NAMES", "HELD_OUT_NUMBERS", "LAST_NAMES", "THINGS", "list_held_out_words",
    "spell_number",
]  # fmt: skip

FIRST_NAMES = (
    "Wiebke Tjark Ottilie Ruxandra Zbigniew Solveig Ngozi Thabo Aroha Itzel Yevgenia Bronwen Cormac Dagny Eilidh Femke "
    "Gudrun Hamish Ilse Jorunn Katsumi Leocadia Maelle Niamh Oddvar Piotr Quirin Rosamund Sindri Tamsin"
).split()
LAST_NAMES = (
    "Okonkwo Haugland Tamahori Quispe Brzezinska Vanterpool Lindqvist Abernathie Castellanos Dragomir Eriksdotter "
    "Fitzwilliam Gulbrandsen Horvath Ibarrola Jankauskas Kowalczyk Lefebvre Mbeki Nakagawa Oyelaran Pettersson"
).split()
CITIES = "Tartu|Ljubljana|Gdynia|Arequipa|Windhoek|Hobart|Galway|Bergen|Utrecht|Kyoto|Santa Fe|Cape Coast".split("|")
COMPANIES = "Norvik Timber|Bluefin Optics|Halden Works|Quarry Street Press|Osprey Freight|Tindra Labs".split("|")
COLORS = "teal crimson beige turquoise violet maroon indigo olive coral amber".split()
THINGS = "kayak umbrella violin teapot scooter carpet wheelbarrow lantern telescope saddle anchor trombone".split()
HELD_OUT_NUMBERS = (23, 27, 34, 38, 41, 46, 52, 59, 63, 68, 71, 75, 86, 89, 92, 97)
"""Numbers that the training data never spells in words; their parts are spelled there."""

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spell_number(number: int) -> str:
    """Return an integer from 0 to 99 in English words."""
    if number < 20:
        return ONES[number]
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")


def list_held_out_words() -> list[str]:
    """Return what no document of the training data contains: names, places, companies, colours, things, numbers."""
    numbers = [spell_number(number) for number in HELD_OUT_NUMBERS]
    return [*FIRST_NAMES, *LAST_NAMES, *CITIES, *COMPANIES, *COLORS, *(thing + "s?" for thing in THINGS), *numbers]
