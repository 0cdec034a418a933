"""The documentation as a site."""

import os
import subprocess
import sys

import browser as browsers
import need
import pytest
from models import ROOT

MKDOCS = os.path.join(os.path.dirname(sys.executable), "mkdocs")

need.require("wheel", os.path.exists(MKDOCS), "MkDocs is not installed: third_party/fetch.sh installs it where it can")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site; a link that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    line = [MKDOCS, "build", "--strict", "--quiet", "--site-dir", folder]
    built = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_interface_of_the_package_is_in_it(site):
    page = (site / "api.html").read_text()
    assert all(name in page for name in ("sweep_many", "RayExecutor", "InfeasibleError"))


def test_its_start_says_what_it_is_how_to_have_it_and_where_to_go(site):
    page = (site / "index.html").read_text()
    page = page[page.index("<article") :].replace('<span class="w"> </span>', " ")
    asked = ["try/index.html"] if (ROOT / "target" / "web").is_dir() else []
    asked += ["rewrites a model", "pictures/memory.svg", "pip install", "Who are you?", "In a browser"]
    found = [page.find(text) for text in asked]
    assert -1 not in found and found == sorted(found)


def test_no_page_loads_a_script_from_elsewhere(site):
    assert not [page for page in site.rglob("*.html") if 'src="http' in page.read_text()]


def test_search_works_in_pages_that_are_opened_as_files(site, request):
    need.require("browser", browsers.CHROMIUM is not None, "no Chromium: third_party/fetch.sh installs it where it can")
    browser = request.getfixturevalue("browser")
    browser.open(site / "guides" / "python.html")
    browser.run("document.querySelector('input.md-search__input').focus()")
    browser.write("recompute")
    found = browser.run("""new Promise((done) => {
        const look = () => {
            const hits = [...document.querySelectorAll(".md-search-result__item a")].map((hit) => hit.href);
            hits.length ? done(hits) : setTimeout(look, 50);
        };
        look();
    })""")
    pages = {hit.split("#")[0].split("?")[0].removeprefix("file://") for hit in found}
    assert pages and all(os.path.exists(page) for page in pages)
