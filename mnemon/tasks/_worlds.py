"""Graphs that are never trained on: the London Underground's interchanges and a family."""

import functools
import itertools

import numpy as np

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
        table[node, : len(out)] = out
    return nodes, edges, np.asarray([len(out) for out in leaving]), table[..., 0], table[..., 1]
