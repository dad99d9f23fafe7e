"""Vocabulary of the training data: pools of names and words, and `Facts`, the consistent facts of one subject.

Everything is drawn from a `random.Random`; `Pools` is filled once by `faker` with a seed of its own. Facts of one
subject are consistent (the email address is derived from the name, the age from the birth date), so that the model
learns to write consistent records.
"""

from __future__ import annotations

import datetime
import random
import re
import uuid
from dataclasses import dataclass
from functools import cached_property

from faker import Faker

__all__ = ["Facts", "Pools", "WorldPools"]

ADJECTIVES = (
    "small large red blue green warm cold quiet bright soft strong light heavy simple modern classic fresh sweet dark "
    "round smooth fast slow gentle wooden steel portable compact wireless organic handmade vintage durable elegant"
).split()
THINGS = (
    "lamp chair table desk mug bottle backpack jacket notebook keyboard monitor camera speaker charger bicycle helmet "
    "tent knife pan kettle blender toaster clock mirror shelf sofa blanket pillow towel candle vase guitar drum piano "
    "pencil ruler hammer drill ladder rope glove scarf hat shoe boot watch ring wallet phone tablet laptop printer "
    "router"
).split()
FOODS = (
    "flour sugar salt butter milk eggs rice pasta tomato onion garlic carrot potato chicken beef salmon cheese basil "
    "lemon honey cream bread apple banana spinach mushroom pepper oats yogurt vanilla chocolate ginger cinnamon"
).split()
DISHES = "soup salad stew curry pie cake pancakes risotto tacos omelette lasagna cookies bread noodles chili".split()
TAGS = (
    "new sale urgent home work travel food music sport science art health finance garden kids outdoor office tech "
    "books games history nature fashion news local design data cloud mobile security billing support beta draft"
).split()
COLORS = "red blue green black white yellow orange purple brown gray pink silver gold navy".split()
HOBBIES = "hiking chess cooking painting reading cycling swimming gardening photography sailing running music".split()
ANIMALS = "cat dog rabbit horse parrot turtle hamster goat sheep fox owl bear wolf duck".split()
LANGUAGES = "English French German Spanish Italian Dutch Polish Swedish Japanese Korean Arabic Hindi".split()
CURRENCIES = "USD EUR GBP JPY CHF CAD AUD SEK".split()
UNITS = "kg g cm m km C F bar V A W Hz lux ppm mm s ms".split()
VERBS = "opens closes moves finds keeps brings holds follows shows carries watches builds".split()
TOPICS = (
    "meeting workshop concert conference lecture festival dinner party training webinar exhibition market race tour"
).split()
PROBLEMS = (
    "cannot log in|page does not load|payment was declined|app crashes on start|order arrived late|"
    "password reset email missing|wrong item delivered|screen stays black|file upload fails|invoice is incorrect|"
    "battery drains quickly|search returns no results|account is locked|refund not received"
).split("|")
DISHSTEPS = (
    "Mix the {a} and {b}.|Chop the {a}.|Heat the {a} in a pan.|Add the {a} and stir.|Bake for {n} minutes.|"
    "Season with {a} and {b}.|Serve with {a}.|Boil the {a} for {n} minutes.|Let it rest for {n} minutes."
).split("|")


CITIES = (
    "Paris|London|Berlin|Madrid|Rome|Vienna|Oslo|Prague|Lisbon|Dublin|New York|Boston|Chicago|Seattle|Tokyo|Seoul|"
    "Sydney|Toronto|Zürich|Málaga|São Paulo|Kraków|Göteborg|København|Montréal|Reykjavík"
).split("|")


LOCALES = (
    "de_DE fr_FR es_ES it_IT nl_NL pl_PL pt_BR sv_SE no_NO fi_FI cs_CZ tr_TR hu_HU ro_RO id_ID en_GB en_IN".split()
)


class Pools:
    """Lists of names from `faker`, a fixed number of each, as calling it for every document takes too long."""

    def __init__(self, seed: int, size: int = 1500) -> None:
        fake = Faker("en_US")
        fake.seed_instance(seed)

        def many(make: object) -> list[str]:
            return sorted({make() for _ in range(size)})  # type: ignore[operator]

        self.first = many(fake.first_name)
        self.last = many(fake.last_name)
        self.city = many(fake.city)
        self.street = many(fake.street_name)
        self.state = many(fake.state)
        self.company = many(fake.company)
        self.job = sorted({job.split(",")[0] for job in many(fake.job)})
        self.country = [c for c in many(fake.country) if len(c) < 16 and c.isascii()]
        self.words = [word for word in many(fake.word) if word.isalpha()]
        self.phrase = many(fake.catch_phrase)
        self.domain = many(fake.domain_name)


class WorldPools:
    """Names of people and places in many languages with Latin script."""

    def __init__(self, seed: int, size: int = 250) -> None:
        self.first: list[str] = []
        self.last: list[str] = []
        self.city: list[str] = []
        for locale in LOCALES:
            fake = Faker(locale)
            fake.seed_instance(seed)
            self.first += sorted({fake.first_name() for _ in range(size)})
            self.last += sorted({fake.last_name() for _ in range(size)})
            if locale != "it_IT":  # faker stores its Italian cities in a set, whose order differs between processes
                self.city += sorted({fake.city() for _ in range(size)})


@dataclass
class Facts:
    """The facts of one subject; each is drawn on first use and cached."""

    rng: random.Random
    pools: Pools

    def pick(self, pool: list[str] | tuple[str, ...]) -> str:
        return self.rng.choice(pool)

    @cached_property
    def first(self) -> str:
        return self.pick(self.pools.first)

    @cached_property
    def last(self) -> str:
        return self.pick(self.pools.last)

    @cached_property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @cached_property
    def company(self) -> str:
        return self.pick(self.pools.company)

    @cached_property
    def domain(self) -> str:
        return self.pick(["example.com", "example.org", "example.net", self.pick(self.pools.domain)])

    @cached_property
    def username(self) -> str:
        first, last, two = self.first.lower(), self.last.lower(), self.rng.randrange(10, 99)
        return self.pick([f"{first}.{last}", f"{first}{two}", f"{first[0]}{last}", f"{first}_{last}"])

    @cached_property
    def email(self) -> str:
        return f"{self.username}@{self.domain}"

    @cached_property
    def url(self) -> str:
        return f"https://{self.domain}/{self.word}"

    @cached_property
    def word(self) -> str:
        return self.pick(self.pools.words)

    @cached_property
    def phone(self) -> str:
        r = self.rng
        return f"+1-{r.randrange(200, 999)}-{r.randrange(200, 999)}-{r.randrange(10_000):04}"

    @cached_property
    def street(self) -> str:
        return f"{self.rng.randrange(1, 999)} {self.pick(self.pools.street)}"

    @cached_property
    def city(self) -> str:
        return self.pick(self.pools.city if self.rng.random() < 0.6 else CITIES)

    @cached_property
    def born(self) -> datetime.date:
        return datetime.date(1940, 1, 1) + datetime.timedelta(days=self.rng.randrange(24_000))

    @property
    def age(self) -> int:
        return 2025 - self.born.year

    @cached_property
    def day(self) -> datetime.date:
        return datetime.date(2019, 1, 1) + datetime.timedelta(days=self.rng.randrange(2_900))

    def later(self) -> datetime.date:
        return self.day + datetime.timedelta(days=self.rng.randrange(1, 60))

    def time(self) -> str:
        return f"{self.rng.randrange(6, 23):02}:{self.rng.choice((0, 15, 30, 45)):02}:00"

    def moment(self) -> str:
        return f"{self.day.isoformat()}T{self.time()}Z"

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def span(self) -> str:
        return f"PT{self.rng.randrange(1, 60)}{self.rng.choice('MHS')}"

    def ipv4(self) -> str:
        return ".".join(str(self.rng.randrange(1, 255)) for _ in range(4))

    @cached_property
    def thing(self) -> str:
        return f"{self.pick(ADJECTIVES)} {self.pick(THINGS)}"

    @cached_property
    def dish(self) -> str:
        return f"{self.pick(FOODS)} {self.pick(DISHES)}"

    @cached_property
    def problem(self) -> str:
        return self.pick(PROBLEMS)

    @cached_property
    def event(self) -> str:
        return f"{self.pick(ADJECTIVES + HOBBIES)} {self.pick(TOPICS)}".capitalize()

    def food(self) -> str:
        return self.pick(FOODS)

    def step(self) -> str:
        return self.pick(DISHSTEPS).format(a=self.food(), b=self.food(), n=self.rng.randrange(1, 12) * 5)

    def words(self, count: int) -> str:
        return " ".join(self.pick(self.pools.words) for _ in range(count))

    def sentence(self) -> str:
        """Return a sentence about this subject."""
        r = self.rng
        make = r.choice(
            (
                lambda: f"{self.name} is a {self.pick(self.pools.job).lower()} from {self.city}.",
                lambda: f"{self.first} likes {self.pick(HOBBIES)} and {self.pick(HOBBIES)}.",
                lambda: f"The {self.thing} is {self.pick(ADJECTIVES)} and {self.pick(ADJECTIVES)}.",
                lambda: f"A {self.thing} for the {self.pick(TAGS)} {self.pick(THINGS)}.",
                lambda: f"The {self.pick(ANIMALS)} {self.pick(VERBS)} the {self.pick(ADJECTIVES)} {self.pick(THINGS)}.",
                lambda: f"The {self.event.lower()} takes place in {self.city} on {self.day.isoformat()}.",
                lambda: f"The customer writes: {self.problem}.",
                lambda: f"{self.company} sells the {self.thing} for {r.randrange(5, 500)} {self.pick(CURRENCIES)}.",
                lambda: f"We need {r.randrange(2, 30)} more {self.pick(THINGS)}s before {self.day.isoformat()}.",
                lambda: f"{self.first} wrote to {self.pick(self.pools.first)} about the {self.pick(THINGS)}.",
            )
        )
        text: str = make()
        return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
