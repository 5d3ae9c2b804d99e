"""Graphs that are not drawn at random: the London Underground's interchanges, a family, and those of a user's file."""

import csv
import functools
import io
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..data._read import BadFile, read_text

# Stations of zone 1 where at least two of these lines meet; stops between them are left out. Each line is named by the
# directions in which it is travelled, forwards and back, so that the labels of the edges that leave a station differ.
_LINES = (
    (
        ("Bakerloo S", "Bakerloo N"),
        "Paddington, Baker Street, Oxford Circus, Piccadilly Circus, Charing Cross, Embankment, Waterloo, "
        "Elephant & Castle",
    ),
    (
        ("Central E", "Central W"),
        "Notting Hill Gate, Bond Street, Oxford Circus, Tottenham Court Road, Holborn, Bank, Liverpool Street",
    ),
    (
        ("Circle clockwise", "Circle anticlockwise"),
        "Notting Hill Gate, Paddington, Baker Street, King's Cross St. Pancras, Moorgate, Liverpool Street, "
        "Embankment, Westminster, Victoria, South Kensington, Gloucester Road, Notting Hill Gate",
    ),
    (
        ("Jubilee S", "Jubilee N"),
        "Baker Street, Bond Street, Green Park, Westminster, Waterloo, London Bridge",
    ),
    (
        ("Northern (Bank) S", "Northern (Bank) N"),
        "Euston, King's Cross St. Pancras, Moorgate, Bank, London Bridge, Elephant & Castle",
    ),
    (
        ("Northern (Charing Cross) S", "Northern (Charing Cross) N"),
        "Euston, Warren Street, Tottenham Court Road, Leicester Square, Charing Cross, Embankment, Waterloo",
    ),
    (
        ("Piccadilly W", "Piccadilly E"),
        "King's Cross St. Pancras, Holborn, Leicester Square, Piccadilly Circus, Green Park, South Kensington, "
        "Gloucester Road",
    ),
    (
        ("Victoria S", "Victoria N"),
        "King's Cross St. Pancras, Euston, Warren Street, Oxford Circus, Green Park, Victoria",
    ),
)

# Couples with their children, in order of birth.
_FAMILIES = (
    ("Alan", "Ada", ("Fergus", "Ffion")),
    ("Bram", "Ffion", ("Carol", "Colin")),
    ("Edwin", "Edith", ("David", "Dora", "Derek")),
    ("David", "Carol", ("Freya", "Frank")),
    ("Colin", "Grace", ("Gwen", "Gareth")),
    ("Harold", "Dora", ("Hilda", "Helen")),
)
_WOMEN = frozenset(["Ada", "Ffion", "Carol", "Edith", "Dora", "Freya", "Grace", "Gwen", "Hilda", "Helen"])


Triples = tuple[tuple[str, str, str], ...]
LABELS = 999  # how many nodes, and kinds of edges, can be told apart
_HEADER = ("source", "edge", "destination")


@functools.cache
def london() -> Triples:
    """(station, line and direction, station): 102 triples between 25 stations."""
    triples = []
    for (forwards, back), stations in _LINES:
        names = stations.split(", ")
        for a, b in itertools.pairwise(names):
            triples += [(a, forwards, b), (b, back, a)]
    return tuple(triples)


@functools.cache
def family() -> Triples:
    """(person, kin, person): parents, spouses and children of an invented family."""
    triples = []
    for father, mother, children in _FAMILIES:
        triples += [(father, "wife", mother), (mother, "husband", father)]
        count = {"son": 0, "daughter": 0}
        for child in children:
            kind = "daughter" if child in _WOMEN else "son"
            count[kind] += 1
            name = f"{kind} {count[kind]}"
            triples += [(child, "father", father), (child, "mother", mother)]
            triples += [(father, name, child), (mother, name, child)]
    return tuple(triples)


class World(NamedTuple):
    """A graph whose nodes and edges have names."""

    name: str
    triples: Triples
    lines: tuple[int, ...] = ()  # of the file, where it comes from one: of each triple

    def refuse(self, triple: int, problem: str) -> BadFile:
        """The error that names the line of a triple."""
        return BadFile(self.name, self.lines[triple] if self.lines else None, problem)

    def require_labels(self, kinds: int) -> None:
        """At most so many kinds of edges, and no more nodes than there are labels."""
        nodes: set[str] = set()
        edges: set[str] = set()
        for number, (source, edge, destination) in enumerate(self.triples):
            nodes |= {source, destination}
            edges.add(edge)
            for names, most, what in ((nodes, LABELS, "nodes"), (edges, kinds, "kinds of edges")):
                if len(names) > most:
                    raise self.refuse(number, f"more than {most} {what} cannot be told apart")

    def require_ways_on(self) -> None:
        """A walk must be able to go on from wherever it comes."""
        sources = {source for source, _, _ in self.triples}
        for number, (_, _, destination) in enumerate(self.triples):
            if destination not in sources:
                raise self.refuse(number, f"no edge leaves {destination!r}: a walk that comes there cannot go on")


@functools.lru_cache(maxsize=8)
def read_world(name: str) -> World:
    """A graph from a CSV file, a triple `source,edge,destination` a line, with or without these names above them."""
    path, triples, first = Path(name), [], {}
    rows = csv.reader(io.StringIO(read_text(path), newline=""))
    for row in rows:
        cells, line = tuple(cell.strip() for cell in row), rows.line_num
        if not any(cells) or (line == 1 and cells == _HEADER):
            continue
        if len(cells) != len(_HEADER) or not all(cells):
            raise BadFile(
                path, line, f"has {','.join(cells)!r}; wanted {','.join(_HEADER)}, e.g. Bank,Central E,Holborn"
            )
        source, edge, destination = cells
        if (source, edge) in first:
            raise BadFile(
                path, line, f"a second edge {edge!r} leaves {source!r}, the first is in line {first[source, edge]}"
            )
        first[source, edge] = line
        triples.append((source, edge, destination))
    if not triples:
        raise BadFile(path, None, f"holds no triple {','.join(_HEADER)}")
    return World(name, tuple(triples), tuple(first.values()))


@functools.lru_cache(maxsize=8)
def distances(triples: Triples) -> np.ndarray:
    """Edges of the shortest path between each two nodes, in the order of `as_arrays`; -1 where none leads."""
    nodes, _, degree, destination, _ = as_arrays(triples)
    links = np.zeros((len(nodes), len(nodes)), np.float32)
    for node, (count, after) in enumerate(zip(degree, destination, strict=True)):
        links[node, after[:count]] = 1.0
    new = np.eye(len(nodes), dtype=bool)
    apart = np.where(new, 0, -1)
    while new.any():
        new = (new @ links > 0) & (apart < 0)
        apart[new] = apart.max() + 1
    return apart


@functools.lru_cache(maxsize=8)
def as_arrays(triples: Triples) -> tuple[list[str], list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Names of nodes and edges; degree of each node, and destination and edge of each of its slots."""
    nodes = sorted({node for source, _, destination in triples for node in (source, destination)})
    edges = sorted({edge for _, edge, _ in triples})
    leaving: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for source, edge, destination in triples:
        leaving[nodes.index(source)].append((nodes.index(destination), edges.index(edge)))
    slots = max(map(len, leaving))
    table = np.zeros((len(nodes), slots, 2), int)
    for node, out in enumerate(leaving):
        table[node, : len(out)] = np.reshape(out, (-1, 2))
    return nodes, edges, np.asarray([len(out) for out in leaving]), table[..., 0], table[..., 1]
