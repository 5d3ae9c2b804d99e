"""The dense matrices that products of rotations stand for, one rotation after another."""

import numpy as np


def rotation_matrix(rotations) -> np.ndarray:
    """M with h' = h M, from the angles and phases of `Rotations`."""
    size = rotations.size
    angles = np.asarray(rotations.angles)
    phases = np.zeros_like(angles) if rotations.phases is None else np.asarray(rotations.phases)
    columns = np.eye(size, dtype=complex)  # acts on column vectors
    for pairs, layer_angles, layer_phases in _layers(angles, phases, size, rotations.capacity):
        for (a, b), theta, phi in zip(pairs, layer_angles, layer_phases, strict=True):
            rotation = np.eye(size, dtype=complex)
            rotation[a, a], rotation[a, b] = np.cos(theta), -np.exp(1j * phi) * np.sin(theta)
            rotation[b, a], rotation[b, b] = np.sin(theta), np.exp(1j * phi) * np.cos(theta)
            columns = rotation @ columns
    if rotations.diagonal is not None:
        return (np.diag(np.exp(1j * rotations.diagonal)) @ columns).T
    return np.real(columns.T)


def _layers(angles, phases, size, capacity):
    if capacity is None:
        for layer, (theta, phi) in enumerate(zip(angles, phases, strict=True)):
            distance = size // 2 ** (layer + 1)
            yield [(p, p + distance) for p in range(size) if not p & distance], theta, phi
    else:
        half = size // 2
        for theta, phi in zip(angles, phases, strict=True):
            yield [(2 * j, 2 * j + 1) for j in range(half)], theta[:half], phi[:half]
            yield [(2 * j + 1, 2 * j + 2) for j in range(half - 1)], theta[half:], phi[half:]
