"""Fixture files: one line per array, so that a change shows where it is; every wrong version checked to be far off."""

import json

import numpy as np

# How far a wrong version must be from the right one, relative to the right one's largest magnitude. The tests use the
# same number, and a hundredth of it as their tolerance.
FAR = 1e-3


def rounded(array):
    """Ten digits: far below the tolerance of the tests, far above it in precision."""
    return [float(f"{value:.10g}") for value in np.asarray(array, dtype=np.float64).ravel()]


def distance(got, right):
    """The largest difference, relative to the largest magnitude of the right values."""
    return np.max(np.abs(np.asarray(got) - right)) / np.max(np.abs(right))


def check_far(case, name, got, right):
    if not np.all(np.isfinite(got)) or not distance(got, right) >= FAR:
        raise SystemExit(f"{case}: {name} is {distance(got, right):.2g} from the right values; change the inputs")


def operation_case(name, inputs, operation, wrong):
    """`operation` takes the name of a mistake or None and returns an array."""
    right = operation(None)
    versions = {}
    for mistake in wrong:
        got = operation(mistake)
        check_far(name, mistake, got, right)
        versions[mistake] = rounded(got)
    inputs = {key: exact(value) if isinstance(value, np.ndarray) else value for key, value in inputs.items()}
    return {"name": name, "inputs": inputs, "right": rounded(right), "wrong": versions}


def exact(array):
    """The values as f32 holds them; a value it does not hold is refused."""
    if not np.array_equal(array.astype(np.float32).astype(np.float64), array):
        raise SystemExit("an input is not exact in f32")
    return [float(value) for value in array.ravel()]


def tensor(name, array):
    if array.dtype == np.uint8:
        return {"dtype": "U8", "shape": list(array.shape), "data": array.tobytes().hex()}
    single = any(part in name for part in ("conv1d", "A_log", "dt_bias", "o_norm", "e_score_correction_bias"))
    data = exact(array)
    if not single:
        bits = array.astype(np.float32).view(np.uint32)
        if np.any(bits & 0xFFFF):
            raise SystemExit(f"{name} is not exact in bf16")
    return {"dtype": "F32" if single else "BF16", "shape": list(array.shape), "data": data}


def model_case(name, model, tokens, points, wrong, passes=()):
    """`model(mistake)` makes a `Model`; `points` are compared. A wrong version is kept where it differs most."""
    first = model(None)
    right = first.forward(tokens)
    versions = {}
    for mistake in wrong:
        got = model(mistake).forward(tokens)
        point = max(points, key=lambda point: distance(got[point], right[point]))
        check_far(name, mistake, got[point], right[point])
        versions[mistake] = {"point": point, "values": rounded(got[point])}
    return {
        "config": first.config,
        "tokens": list(tokens),
        "passes": [[len(tokens)], *passes],
        "weights": {key: tensor(key, first.weights[key]) for key in sorted(first.read)},
        "right": {point: rounded(right[point]) for point in points},
        "wrong": versions,
    }


def write(path, value):
    path.write_text(lines(value, 0) + "\n")


def lines(value, depth):
    """JSON with a line for each innermost array or tensor."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    flat = not any(isinstance(item, (dict, list)) for item in inner) or (isinstance(value, dict) and "dtype" in value)
    if flat or depth == 4:
        return json.dumps(value)
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(key)}: {lines(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + " " * depth + "}"
    return "[\n" + ",\n".join(pad + lines(item, depth + 1) for item in value) + "\n" + " " * depth + "]"
