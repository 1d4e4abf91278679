"""The text of the C export: tables from the arrays, and the few lines of C for each encoder."""

import numpy as np

from linadd.export.quantised import BITS

__all__ = ["header_text", "source_text"]

HEADER = """\
/* An additive classifier, exported by linadd. */
#ifndef LINADD_MODEL_H
#define LINADD_MODEL_H
#ifdef __cplusplus
extern "C" {{
#endif

#define LINADD_N_FEATURES {n_features}
#define LINADD_N_OUTPUTS {n_outputs} /* columns of the scores: 1 for two classes */
#define LINADD_N_CLASSES {n_classes}

extern const int linadd_n_features, linadd_n_outputs, linadd_n_classes;
extern const char *const linadd_classes[LINADD_N_CLASSES];

/* 0, or the number (from 1) of the first feature of x whose value is not finite{strict}; then there are no scores. */
int linadd_decision(const double *x, double *scores);

/* Place of the label in linadd_classes, or minus such a number. */
int linadd_predict(const double *x);
{probabilities}
#ifdef __cplusplus
}}
#endif
#endif
"""

PROBABILITIES_HEADER = """
/* Probabilities of the classes; returns as linadd_decision. */
int linadd_probabilities(const double *x, double *p);
"""

HEAD = """\
/* An additive classifier, exported by linadd: C99, no allocation, thread-safe. Functions: see the header.
{note} * cc -DLINADD_CHECK {name} -lm makes a program that scores the check rows at the end of this file. */
#include "{header}"
{includes}
#define N_FEATURES LINADD_N_FEATURES
#define N_OUTPUTS LINADD_N_OUTPUTS
#define N_BASIS {n_basis}

const int linadd_n_features = N_FEATURES, linadd_n_outputs = N_OUTPUTS, linadd_n_classes = LINADD_N_CLASSES;
"""

KNOTS = """
    if (edge_start[j] >= 0) { /* knots of its own: the last edge that x has passed */
        const double *edge = edges + edge_start[j];
        int low = 0, high = n_bins[j];
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (edge[middle] <= x)
                low = middle;
            else
                high = middle - 1;
        }
        if (low > 0 && edge[low] == x && edge[low - 1] == x)
            return low - 0.5; /* a bin of its own for this value */
        return low == n_bins[j] ? low : low + (x - edge[low]) / (edge[low + 1] - edge[low]);
    }"""

COORDINATE = """
/* Where x stands on the axis of feature j. */
static double coordinate(double x, int j)
{{{clamp}{knots}
    return (x - origin[j]) * inverse[j];
}}
"""

CLAMP = """
    x = x > lower[j] ? x : lower[j];
    x = x < upper[j] ? x : upper[j];"""

# Values of phi at the fraction t (s = 1 - t), by degree; as numbers, and as integers of BITS bits.
VALUES = (
    ["1.0"],
    ["s", "t"],
    ["0.5 * s * s", "0.5 + t * s", "0.5 * t * t"],
    ["s * s * s / 6.0", "(4.0 + t * t * (3.0 * t - 6.0)) / 6.0", "(4.0 + s * s * (3.0 * s - 6.0)) / 6.0",
     "t * t * t / 6.0"],
)  # fmt: skip
INTEGER_VALUES = (
    ["ONE"],
    ["s", "t"],
    ["s * s / (2 * ONE)", "ONE / 2 + t * s / ONE", "t * t / (2 * ONE)"],
    ["s * s / ONE * s / (6 * ONE)", "(4 * ONE + t * t / ONE * (3 * t - 6 * ONE) / ONE) / 6",
     "(4 * ONE + s * s / ONE * (3 * s - 6 * ONE) / ONE) / 6", "t * t / ONE * t / (6 * ONE)"],
)  # fmt: skip

# Values of phi of the dense encoders; `phi(i, value)` stores one.
DENSE = {
    "fourier": """        for (i = 0; i < N_BASIS / 2; i++) {{
            const double angle = {pi!r} * u * (i + 1);
            {sin}
            {cos}
        }}
""",
    "hermite": """        double before = 1.0, here = u;
        for (i = 0; i < N_BASIS; i++) {{
            const double next = u * here - (i + 1) * before;
            {here}
            before = here;
            here = next;
        }}
""",
    "identity": """        i = 0;
        {u}
""",
}

DECISION = """
int linadd_decision(const double *x, double *scores)
{{
    {kind} sums[N_OUTPUTS] = {{0}};
    int i, j, o;
    for (j = 0; j < N_FEATURES; j++)
        if (!(x[j] - x[j] == 0.0){strict})
            return j + 1;
    for (j = 0; j < N_FEATURES; j++) {{
        const double u = coordinate(x[j], j);
{values}        for (i = 0; i < {n_local}; i++)
            for (o = 0; o < N_OUTPUTS; o++)
                sums[o] += phi[i] * {coef}[o];
    }}
    for (o = 0; o < N_OUTPUTS; o++)
        scores[o] = {score} + intercept[o];
{slopes}    return 0;
}}
"""

SLOPES = """    for (j = 0; j < N_FEATURES; j++) { /* beyond the ranges curves go on as lines */
        const double below = x[j] < lower[j] ? x[j] - lower[j] : 0.0, above = x[j] > upper[j] ? x[j] - upper[j] : 0.0;
        for (o = 0; o < N_OUTPUTS; o++)
            scores[o] += below * lower_slope[j][o] + above * upper_slope[j][o];
    }
"""

ONE_OUTPUT_LABEL = "    return scores[0] > 0.0;\n"
LABEL = """    int o, best = 0;
    for (o = 1; o < N_OUTPUTS; o++)
        best = scores[o] > scores[best] ? o : best;
    return best;
"""

PREDICT = """
static int place_of(const double *scores)
{{
{label}}}

int linadd_predict(const double *x)
{{
    double scores[N_OUTPUTS];
    const int refused = linadd_decision(x, scores);
    return refused ? -refused : place_of(scores);
}}
"""

LOG_SIGMOID = """
static double log_sigmoid(double f)
{
    return (f < 0.0 ? f : 0.0) - log1p(exp(-fabs(f)));
}
"""

POLYGON = """
/* Probability of output o at a score: linear between points, constant beyond. */
static double polygon(int o, double score)
{
    int k = calibration_starts[o];
    const int last = calibration_starts[o + 1] - 1;
    if (score <= calibration_scores[k])
        return calibration_probabilities[k];
    if (score >= calibration_scores[last])
        return calibration_probabilities[last];
    while (calibration_scores[k + 1] <= score)
        k++;
    return calibration_probabilities[k] + (score - calibration_scores[k])
        / (calibration_scores[k + 1] - calibration_scores[k])
        * (calibration_probabilities[k + 1] - calibration_probabilities[k]);
}
"""

PROBABILITIES = """
int linadd_probabilities(const double *x, double *p)
{{
    double scores[N_OUTPUTS];
    const int refused = linadd_decision(x, scores);
    if (refused)
        return refused;
{body}    return 0;
}}
"""
CALIBRATED = """    {
        int o;
        for (o = 0; o < N_OUTPUTS; o++)
            scores[o] = -(calibration_slope[o] * scores[o] + calibration_offset[o]);
    }
"""
ONE_POLYGON = """    p[1] = polygon(0, scores[0]);
    p[0] = 1.0 - p[1];
"""
POLYGON_SHARES = """    {
        double total = 0.0;
        int o;
        for (o = 0; o < N_OUTPUTS; o++)
            total += p[o] = polygon(o, scores[o]);
        for (o = 0; o < N_OUTPUTS; o++)
            p[o] = total > 0.0 ? p[o] / total : 1.0 / N_OUTPUTS;
    }
"""
ONE_OUTPUT_PROBABILITIES = """    p[0] = exp(log_sigmoid(-scores[0]));
    p[1] = exp(log_sigmoid(scores[0]));
"""
SHARES = """    {
        double largest = log_sigmoid(scores[0]), total = 0.0;
        int o;
        for (o = 0; o < N_OUTPUTS; o++) {
            p[o] = log_sigmoid(scores[o]);
            largest = p[o] > largest ? p[o] : largest;
        }
        for (o = 0; o < N_OUTPUTS; o++)
            total += p[o] = exp(p[o] - largest);
        for (o = 0; o < N_OUTPUTS; o++)
            p[o] /= total;
    }
"""

CHECK = """
#ifdef LINADD_CHECK
#include <stdio.h>
#define N_CHECKS {n_checks}
{tables}
int main(void)
{{
    double worst = 0.0, largest = 0.0, scores[N_OUTPUTS];
    int i, o, n_flips = 0;
    for (i = 0; i < N_CHECKS; i++) {{
        if (linadd_decision(check_rows[i], scores))
            return 1;
        for (o = 0; o < N_OUTPUTS; o++) {{
            worst = fabs(scores[o] - check_scores[i][o]) > worst ? fabs(scores[o] - check_scores[i][o]) : worst;
            largest = fabs(check_scores[i][o]) > largest ? fabs(check_scores[i][o]) : largest;
        }}
        n_flips += place_of(scores) != place_of(check_scores[i]);
    }}
    printf("%d check rows differ by at most %.1e of the largest score; %d other labels\\n", N_CHECKS, worst / largest,
           n_flips);
    return !(worst <= {tolerance!r} * largest);
}}
#endif
"""


def header_text(arrays):
    """The header file.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    """
    n_features, _, n_outputs = arrays["coef"].shape
    return HEADER.format(
        n_features=n_features, n_outputs=n_outputs, n_classes=len(arrays["classes"]),
        strict=", or is out of its range" if "is_strict" in arrays else "",
        probabilities=PROBABILITIES_HEADER if has_probabilities(arrays) else "",
    )  # fmt: skip


def source_text(arrays, header, integers, tolerance):
    """The C file.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    header : str
        Name of the header file.
    integers : Quantised or None
        The tables of a quantised model.
    tolerance : float
        Largest difference that the program of LINADD_CHECK accepts, relative to the largest score.
    """
    note = ""
    if integers is not None:
        note = f" * Coefficients are {integers.kind}; a score is off by at most {integers.error.max():.2g}.\n"
    head = HEAD.format(
        note=note, name=header.removesuffix(".h") + ".c", header=header, n_basis=arrays["coef"].shape[1],
        includes="#include <math.h>" + ("\n#include <stdint.h>" if integers else ""),
    )  # fmt: skip
    labels = ",\n    ".join(c_string(str(label)) for label in arrays["classes"].tolist())
    classes = f"\nconst char *const linadd_classes[LINADD_N_CLASSES] = {{\n    {labels}\n}};\n\n"
    is_bounded = bool(np.isfinite(arrays["lower"]).any())
    coordinate = COORDINATE.format(
        clamp=CLAMP if is_bounded else "", knots=KNOTS if "edges" in arrays else ""
    )  # fmt: skip
    predict = PREDICT.format(label=ONE_OUTPUT_LABEL if arrays["coef"].shape[2] == 1 else LABEL)
    checks = [c_table("double", f"check_{name}", arrays[f"check_{name}"]) for name in ("rows", "scores")]
    check = CHECK.format(n_checks=len(arrays["check_rows"]), tables="".join(checks), tolerance=tolerance)
    parts = [head, classes, tables(arrays, integers, is_bounded), coordinate, decision(arrays, integers)]
    return "".join([*parts, predict, probabilities(arrays), check])


def tables(arrays, integers, is_bounded):
    """The constant tables."""
    double = ["origin", "inverse", *(["lower", "upper"] if is_bounded else [])]
    text = [c_table("double", name, arrays[name]) for name in double]
    text += [c_table("double", name, arrays[name]) for name in ("lower_slope", "upper_slope") if name in arrays]
    if "is_strict" in arrays:
        text.append(c_table("unsigned char", "is_strict", arrays["is_strict"].astype(int)))
    if "degree" in arrays:
        text.append(c_table("int", "n_bins", arrays["n_bins"]))
    if "edges" in arrays:
        text.append(edge_tables(arrays))
    if integers is None:
        if "degree" not in arrays:
            text.append(c_table("double", "weights", arrays["weights"]))
        text += [c_table("float", "coef", arrays["coef"]), c_table("double", "intercept", arrays["intercept"])]
    else:
        text.append(f"#define ONE {1 << BITS} /* of a fraction, and of phi */\n")
        if integers.phi_scale is not None:
            text.append(c_table("double", "phi_scale", integers.phi_scale * arrays["weights"]))
        text += [
            c_table(f"{integers.kind}_t", "coef", integers.coef),
            c_table("double", "step", integers.step),
            c_table("double", "intercept", integers.intercept),
        ]
    return "".join(text)


def edge_tables(arrays):
    """Edges of the features that have their own, one behind the other, and where each one's start."""
    starts, flat = [], []
    for edges, n_bins in zip(arrays["edges"], arrays["n_bins"], strict=True):
        has_own = not np.isnan(edges[0])
        starts.append(len(flat) if has_own else -1)
        flat += edges[: n_bins + 1].tolist() if has_own else []
    return c_table("int", "edge_start", np.array(starts)) + c_table("double", "edges", np.array(flat))


def decision(arrays, integers):
    """The function linadd_decision."""
    return DECISION.format(
        kind="double" if integers is None else "int64_t",
        strict=" || (is_strict[j] && (x[j] < lower[j] || x[j] > upper[j]))" if "is_strict" in arrays else "",
        values=local_values(arrays, integers) if "degree" in arrays else dense_values(arrays, integers),
        n_local=int(arrays["degree"]) + 1 if "degree" in arrays else "N_BASIS",
        coef="coef[j][k + i]" if "degree" in arrays else "coef[j][i]",
        score="sums[o]" if integers is None else "(double)sums[o] * step[o]",
        slopes=SLOPES if "lower_slope" in arrays else "",
    )  # fmt: skip


def has_probabilities(arrays):
    """Whether the loss gives probabilities, or the decisions are calibrated."""
    return "link" in arrays or "calibration" in arrays


def probabilities(arrays):
    """The function linadd_probabilities with what it needs; nothing for a model without."""
    if not has_probabilities(arrays):
        return ""
    is_single = arrays["coef"].shape[2] == 1
    names = [name for name in arrays if name.startswith("calibration_")]
    text = "".join(c_table("double" if arrays[n].dtype.kind == "f" else "int", n, arrays[n]) for n in names)
    if "calibration_starts" in arrays:
        return f"\n{text}{POLYGON}" + PROBABILITIES.format(body=ONE_POLYGON if is_single else POLYGON_SHARES)
    body = ONE_OUTPUT_PROBABILITIES if is_single else SHARES
    body = CALIBRATED + body if names else body
    return f"\n{text}{LOG_SIGMOID}" + PROBABILITIES.format(body=body)


def local_values(arrays, integers):
    """Lines that find the bin k and the values phi[] of a B-spline."""
    degree = int(arrays["degree"])
    kind, values = ("double", VALUES) if integers is None else ("int64_t", INTEGER_VALUES)
    fraction = "u - k" if integers is None else "(int64_t)((u - k) * ONE)"
    names = f"t = {fraction}, s = {'1.0' if integers is None else 'ONE'} - t"
    text = "        const int k = (int)u < n_bins[j] ? (int)u : n_bins[j] - 1;\n"
    if degree:
        text += f"        const {kind} {names};\n"
    listed = ", ".join(values[degree])
    return f"{text}        const {kind} phi[] = {{{listed}}};\n"


def dense_values(arrays, integers):
    """Lines that fill the values phi[] of a dense basis."""
    name = str(arrays["encoder"])

    def stored(place, value):
        if integers is None:
            return f"phi[{place}] = weights[{place}] * {value};"
        return f"phi[{place}] = (int64_t)floor(phi_scale[{place}] * {value} + 0.5);"

    lines = DENSE[name].format(
        pi=np.pi, sin=stored("2 * i", "sin(angle)"), cos=stored("2 * i + 1", "cos(angle)"), here=stored("i", "here"),
        u=stored("i", "u"),
    )  # fmt: skip
    return f"        {'double' if integers is None else 'int64_t'} phi[N_BASIS];\n{lines}"


def c_table(kind, name, array):
    """A constant array of up to three dimensions, a line for each entry of the first."""
    sizes = "".join(f"[{length}]" for length in array.shape)
    lines = ",\n    ".join(braced(kind, row) for row in array)
    return f"static const {kind} {name}{sizes} = {{\n    {lines}\n}};\n"


def braced(kind, value):
    """A number, or nested braces of them."""
    if np.ndim(value):
        return "{" + ", ".join(braced(kind, part) for part in value) + "}"
    if kind == "float":
        return f"{np.float32(value)!s}f"
    return repr(value.item())


def c_string(text):
    """A string literal; what is not plain ASCII as octal bytes, a question mark escaped for it might be a trigraph."""
    plain = {byte: chr(byte) for byte in range(32, 127)} | {ord(c): f"\\{c}" for c in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'
