"""The report: what is in its data, that names stay text, and that a browser draws it."""

import base64
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import linadd.report
from linadd.errors import ConfigError
from linadd.report import BARS, report_data, write_report
from linadd.shapes import ranking
from tests.export.toy import ENCODER_OPTIONS, toy_model
from tests.solvers.problems import fit, toy

SCRIPT = Path(linadd.report.__file__).parent / "page.js"
EVIL = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "a&amp;b <!--",
    "\u2028'`${1}",
]
DTYPES = {
    "ends": "<f8", "x": "<u2", "y": "<i2", "y_scale": "<f4", "error": "<u2", "error_scale": "<f4", "bars": "u1",
    "limits": "<f4",
}  # fmt: skip
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


class Page(HTMLParser):
    """Tags, attributes and the text of scripts of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


def data_of(path):
    """The object that a report draws."""
    return json.loads(Page(Path(path).read_text("utf-8")).scripts[0])


def unpacked(curves, n_outputs):
    """The arrays of the curves, each with a row a feature."""
    arrays = {
        name: np.frombuffer(base64.b64decode(curves[name]), dtype).reshape(curves["n_shown"], -1)
        for name, dtype in DTYPES.items()
        if curves[name] is not None
    }
    y = arrays["y"].reshape(curves["n_shown"], n_outputs, -1)
    return arrays | {"values": y * arrays["y_scale"][..., None].astype(np.float64)}


def trained(n_classes=2, **choices):
    """A model of four features, whose names would be markup."""
    model = fit(*toy(n_classes=n_classes), max_epochs=3, tol=10, **choices)
    model.feature_names = EVIL
    return model


@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_curves_are_those_of_the_model(name, options, n_outputs):
    model = toy_model(name, options, n_outputs)
    if options == {"clamp": False}:
        with pytest.raises(ConfigError) as caught:
            report_data(model)
        assert str(caught.value) == (
            "a report needs curves with a training range; this model does not clamp its features."
        )
        return
    curves = report_data(model)["curves"]
    arrays = unpacked(curves, n_outputs)
    assert curves["kind"] == "span" and curves["bars"] is None and curves["n_shown"] == 4
    for k, number in enumerate(curves["index"]):
        np.testing.assert_allclose(arrays["ends"][k], model.ranges[number - 1], rtol=1e-12)
        shape = model.shape_function(number - 1)
        size = np.abs(shape.values).max() or 1.0
        ours, theirs = arrays["values"][k], shape.values.T
        np.testing.assert_allclose(ours[:, [0, -1]], theirs[:, [0, -1]], atol=1e-4 * size)
        np.testing.assert_allclose(ours.max(axis=1), theirs.max(axis=1), atol=0.05 * size)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_data_tell_of_the_model(n_classes):
    model = trained(n_classes, knots="uniform", n_bins=6)
    model.deviation = np.abs(model.coef)
    data = report_data(model, "m", grid=(2, 2, 1), test={"accuracy": 1.0})
    curves, arrays = data["curves"], unpacked(data["curves"], model.n_outputs)
    order, size, _ = ranking(model)
    assert curves["index"] == (order + 1).tolist() and curves["names"] == [EVIL[j] for j in order]
    np.testing.assert_allclose(curves["size"], size[order], rtol=1e-3)
    for k, j in enumerate(order):
        shape = model.shape_function(j, arrays["ends"][k, 0] + np.ptp(arrays["ends"][k]) * arrays["x"][k] / 65535)
        np.testing.assert_allclose(arrays["values"][k], shape.values.T, atol=1e-3 * np.abs(shape.values).max())
        error = arrays["error"][k].reshape(model.n_outputs, -1) * arrays["error_scale"][k][:, None]
        np.testing.assert_allclose(error, shape.error.T, atol=1e-3 * shape.error.max())
    assert curves["knots"][0] == np.round(np.arange(7) / 6, 4).tolist()
    assert arrays["bars"].shape == (4, BARS) and (arrays["bars"].max(axis=1) == 255).all()
    assert data["classes"] == [str(label) for label in model.classes[-model.n_outputs :]]
    assert [point["epoch"] for point in data["history"]] == [record["epoch"] for record in model.history]
    assert data["certificate"]["gap"] == model.summary["gap"] and data["test"] == {"accuracy": 1.0}
    np.testing.assert_allclose(data["maps"]["size"], model.importances().mean(axis=1), atol=1e-6)
    known = dict(row for _, rows in data["facts"] for row in rows)
    assert known["training rows"] == "120" and known["n_bins"] == "6" and known["digest of the model"] == model.digest
    assert known["0"].startswith(f"{model.summary['class_counts'][0]} rows (")


def test_names_never_become_markup(tmp_path):
    write_report(trained(), tmp_path / "r.html", title=EVIL[0])
    text = (tmp_path / "r.html").read_text("utf-8")
    page = Page(text)
    assert page.tags.count("script") == 2 and "img" not in page.tags
    assert sorted(data_of(tmp_path / "r.html")["curves"]["names"]) == sorted(EVIL)
    assert not {"<", ">", "&", "\u2028"} & set(page.scripts[0])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", SCRIPT.read_text("utf-8"))


def test_the_page_loads_nothing(tmp_path):
    write_report(trained(), tmp_path / "r.html")
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert not {name for name, _ in page.attributes} & {"src", "href"}
    policy = dict(page.attributes)["content"]
    assert policy == "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


def wide_model(n_features, n_outputs=1):
    """A model of many features; its coefficients are made up."""
    rng = np.random.default_rng(0)
    X = rng.random((60, n_features)).astype(np.float32)
    model = fit(X, rng.integers(0, max(n_outputs, 2), 60), max_epochs=1, tol=10, knots="uniform", solver="dual-cd")
    model.coef = rng.normal(size=model.coef.shape).astype(np.float32)
    return model


def test_the_file_stays_small_and_says_what_it_leaves_out(monkeypatch):
    model = wide_model(700)
    assert len(json.dumps(report_data(model))) < 700 * 300
    monkeypatch.setattr(linadd.report, "CURVE_BYTES", 2 * 11 * 50)
    curves = report_data(model)["curves"]
    assert (curves["n_shown"], curves["n_features"], len(curves["names"])) == (50, 700, 50)
    assert curves["index"] == (ranking(model)[0][:50] + 1).tolist()


@needs_node
def test_the_script_reads_the_numbers_as_python_wrote_them(tmp_path):
    model = trained(3, knots="quantile")
    data = report_data(model)
    (tmp_path / "data.json").write_text(json.dumps(data))
    grid = np.linspace(0, 1, 23)
    code = f"""
        const page = require({json.dumps(str(SCRIPT))});
        const data = require({json.dumps(str(tmp_path / "data.json"))});
        const curves = page.unpack(data.curves), line = page.curveOf(curves, 3, 1, 2);
        const at = {json.dumps(grid.tolist())}.map((u) => page.valueAt(line.x, line.values, u));
        const found = page.matching(["Ab c", "b", "cab"], "B a"), ends = page.shortEnds(1600000000, 1600000010);
        console.log(JSON.stringify([at, found, page.short(12345.678), page.short(0), ends, page.short(null)]));
    """
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    values, *rest = json.loads(run.stdout)
    arrays = unpacked(data["curves"], 3)
    expected = np.interp(grid * 65535, arrays["x"][1], arrays["values"][1, 2])
    np.testing.assert_allclose(values, expected, atol=1e-9)
    assert rest == [[0, 2], "12350", "0", ["1600000000", "1600000010"], "-"]


def browse(path, probe=""):
    """The document that chromium makes of a report, after a script that looks into it has filled the title."""
    text = Path(path).read_text("utf-8")
    probed = Path(path).with_name("probed.html")
    probed.write_text(text.replace("</body>", f"<script>{probe}</script></body>"), "utf-8")
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={probed.parent / 'profile'}", "--virtual-time-budget=2000"]
    command += ["--dump-dom", probed.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in run.stderr, run.stderr
    return run.stdout


def results(dom):
    """What the probe left in the attribute data-probe of the body."""
    found = re.search(r'data-probe="([^"]*)"', dom)
    return json.loads(html.unescape(found[1]))


PROBE = """
    const all = (query) => [...document.querySelectorAll(query)];
    const seen = { title: document.title, panels: all(".panel").length, images: all("img").length };
    seen.text = all(".controls .soft")[0].textContent;
    seen.names = all(".panel h3 span:first-child").map((each) => each.textContent);
    const picture = all(".panel > svg")[0], box = picture.getBoundingClientRect();
    const place = { clientX: box.left + box.width / 2, clientY: box.top + 20 };
    picture.dispatchEvent(new PointerEvent("pointermove", place));
    seen.tip = document.getElementById("tip").textContent;
    const input = document.querySelector("input[type=search]");
    input.value = "SCRIPT>"; input.dispatchEvent(new Event("input"));
    seen.found = all(".panel h3 span:first-child").map((each) => each.textContent);
    input.value = "no such"; input.dispatchEvent(new Event("input"));
    seen.none = all(".panel").length;
    input.value = ""; input.dispatchEvent(new Event("input"));
    all(".controls button")[1].click();
    seen.second = [all(".panel").length, all(".controls .soft")[0].textContent];
    seen.lines = all(".panel")[0].querySelectorAll("polyline").length;
    const box2 = document.querySelector(".classes input");
    if (box2) { box2.click(); seen.fewer = all(".panel")[0].querySelectorAll("polyline").length; }
    document.body.setAttribute("data-probe", JSON.stringify(seen));
"""


@needs_browser
def test_a_browser_draws_it(tmp_path):
    model = trained(3, knots="quantile")
    model.deviation = np.abs(model.coef)
    write_report(model, tmp_path / "r.html", title=EVIL[1], grid=(2, 2, 1))
    seen = results(browse(tmp_path / "r.html", PROBE))
    assert seen["title"] == f"{EVIL[1]} - linadd report" and seen["images"] == 0
    assert (seen["panels"], seen["text"]) == (4, "4 features, page 1 of 1")
    order = ranking(model)[0]
    assert seen["names"] == [EVIL[j] for j in order]
    assert seen["tip"].startswith(f"{EVIL[order[0]]} = ") and seen["tip"].count("±") == 3
    assert seen["found"] == [EVIL[0]] and seen["none"] == 0
    assert (seen["lines"], seen["fewer"]) == (3, 2)


@needs_browser
@pytest.mark.parametrize("n_features", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_browser_draws_one_page_of_many_features(n_features, tmp_path):
    write_report(wide_model(n_features), tmp_path / "r.html")
    seen = results(browse(tmp_path / "r.html", PROBE))
    assert (seen["panels"], seen["second"]) == (12, [12, f"{n_features:,} features, page 2 of {-(-n_features // 12)}"])


TEST = {
    "file": "rows.h5", "n_rows": 10, "accuracy": 0.9, "error": 0.1, "auc": None, "log_loss": 0.25,
    "classes": ["<b>", "z"], "recall": [1.0, None], "precision": [0.5, None], "support": [9, 1],
    "confusion": [[9, 0], [1, 0]],
    "calibration_error": 0.01,
    "reliability": [{"low": 0, "high": 0.1, "count": 9, "predicted": 0.05, "observed": 0.06},
                    {"low": 0.9, "high": 1, "count": 1, "predicted": 0.95, "observed": 1}],
    "range": {"n_clamped": 3, "n_values": 40, "features": [{"feature": "<i>", "below": 1, "above": 2}]},
}  # fmt: skip


@needs_browser
def test_a_browser_draws_the_test_figures(tmp_path):
    write_report(trained(), tmp_path / "r.html", test=TEST)
    probe = """document.body.setAttribute("data-probe", JSON.stringify([document.getElementById("test").textContent,
        document.querySelectorAll("#test b, #test i").length, document.querySelectorAll("#test circle").length]));"""
    text, n_markup, n_circles = results(browse(tmp_path / "r.html", probe))
    assert (n_markup, n_circles) == (0, 2)
    for part in ("Measured on rows.h5.", "90.00 %", "0.25", "<b>", "3 of 40 values lie outside", "worst: <i>"):
        assert part in text


def test_what_paper_needs_is_not_undone_by_a_later_rule():
    style = (Path(__file__).parents[1] / "linadd/report/page.css").read_text("utf-8")
    paper, _, rest = style[style.index("@media print") :].partition("} }\n")
    for selector, body in re.findall(r"(\.\w+) \{ ([^}]*)", paper + "}"):
        for name, value in re.findall(r"([\w-]+): ([^;]+);", body):
            later = re.search(rf"^\{selector} \{{[^}}]*{name}:", rest, re.MULTILINE)
            assert later is None or value.endswith("!important"), f"{selector} {name}"
