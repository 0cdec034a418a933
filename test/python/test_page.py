"""Pages of reports in a browser: charts that scripts make, and the same without scripts."""

import re
import shutil
import subprocess

import models
import need
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LARGEST = 2_000_000
"""Bytes of a page."""
POINT = """<script>
for (const over of document.querySelectorAll(".u-over")) {
  const box = over.getBoundingClientRect();
  const at = { clientX: box.left + box.width * SHARE, clientY: box.top + box.height * 0.98, bubbles: true };
  for (const kind of ["mouseenter", "mousemove"]) over.dispatchEvent(new MouseEvent(kind, at));
}
</script></body>"""
"""What a hand does that points at each chart, at this share of its width."""

need.require("browser", CHROMIUM is not None, "no Chromium: third_party/fetch.sh installs it where it can")


@pytest.fixture(scope="module")
def page(remat_opt, tmp_path_factory):
    """Page of a training step in one block."""
    out = tmp_path_factory.mktemp("page") / "unet.html"
    model = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
    search = ["--budget", "60%", "--step-limit", "20000", "--threads", "1", "--baseline", "file"]
    run = remat_opt(model, *search, "--place", "--target", "plan", "--report", out)
    assert run.returncode == 0, run.stderr
    return out


def dom(page):
    """The page as the browser has it after its scripts have run."""
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout



def test_a_page_is_one_file_that_refers_to_no_other(page):
    text = page.read_text()
    assert len(text) < LARGEST
    assert not re.findall(r'(?:src|href)="', text)


def test_charts_are_drawn_and_say_what_is_pointed_at(page, tmp_path):
    pointed = tmp_path / "pointed.html"
    pointed.write_text(page.read_text().replace("</body>", POINT.replace("SHARE", "0.5")))
    text = dom(pointed)
    assert '<body class="scripted">' in text
    # Two of memory, one of the block, none of which the browser gave up.
    assert text.count("<canvas") == 3
    before, after, block = re.findall(r'<div class="about">(.*?)(?=<div class="about">|<section|$)', text, re.DOTALL)
    assert "in memory" in before
    assert "in memory" in after
    assert "steps" in block


def test_at_first_the_peak_is_described(page):
    text = dom(page)
    peak = re.search(r"at most (\S+ \S+) are taken at one step", text)[1]
    after = re.findall(r'<div class="about">(.*?)(?=<div class="about">|<section|$)', text, re.DOTALL)[1]
    shown = re.search(r"([\d.]+) MiB in memory", after)[1]
    assert abs(float(shown) - float(peak.split()[0])) < 0.06


def test_without_scripts_nothing_is_missing(page, tmp_path):
    plain = tmp_path / "plain.html"
    plain.write_text(re.sub("<script>.*?</script>", "", page.read_text(), flags=re.DOTALL))
    text = dom(plain)
    assert '<body class="scripted">' not in text
    assert text.count("<svg") == 2
    assert "Dropped and computed again" in text
