"""Pages of reports in a browser: what keys, pointers and buttons do, what it looks like, and the same without scripts."""

import json
import re
import time

import browser as browsers
import models
import need
import pytest

LARGEST = 5_000_000
"""Bytes of a page."""
OPS, TENSORS = 10_000, 5_000
FRAME = 0.1
"""Seconds within which a large model is drawn."""

need.require("browser", browsers.CHROMIUM is not None, "no Chromium: third_party/fetch.sh installs it where it can")


@pytest.fixture(scope="module")
def page(remat_opt, tmp_path_factory):
    """Page of a training step in one block."""
    out = tmp_path_factory.mktemp("page") / "unet.html"
    model = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
    search = ["--budget", "60%", "--step-limit", "20000", "--threads", "1", "--baseline", "file"]
    run = remat_opt(model, *search, "--place", "--target", "plan", "--report", out)
    assert run.returncode == 0, run.stderr
    return out


@pytest.fixture
def opened(browser, page):
    """The page in a window; whatever is done with it, its scripts must not fail."""
    browser.errors.clear()
    browser.open(page)
    yield browser
    assert not browser.errors


def large_data():
    """A chain with results that are read again much later, half of them computed again, with names that would be elements."""
    names = ["", "<img src=x onerror=alert(1)>", "=1+1", "f32", "Conv", *(f"model.layers.{op}.conv" for op in range(OPS))]
    steps = [[1 if op % 4 == 3 else 0, op + 5, 4, 0] for op in range(OPS)]
    lives = []
    for tensor in range(TENSORS):
        size = 1000 + tensor * 7919 % 50_000
        begin = tensor * 2
        lives.append([tensor, 0, begin, min(begin + 3 + tensor % 700, OPS), size, 0])
        if begin + 900 < OPS:
            lives.append([tensor, 1, begin + 890, begin + 900, size, 0])
    tensors = [[1 + tensor if tensor < 2 else tensor + 5, 4, 3, 0] for tensor in range(TENSORS)]
    run = {"steps": steps, "tensors": tensors, "lives": lives, "block": None, "budget": 8_000_000}
    return {"file": "large", "names": names, "runs": [{"name": "before", **run}, {"name": "after", **run}]}


@pytest.fixture(scope="module")
def large(page, tmp_path_factory):
    """The page with another, large model in it."""
    out = tmp_path_factory.mktemp("page") / "large.html"
    data = json.dumps(large_data()).replace("<", "\\u003c")
    begin, rest = page.read_text().split('id="data">', 1)
    out.write_text(f'{begin}id="data">{data}{rest[rest.index("</script>"):]}')
    return out


def test_a_page_is_one_file_that_refers_to_no_other(page, large):
    text = page.read_text()
    assert len(text) < LARGEST > large.stat().st_size
    assert not re.findall(r'(?:src|href)="', text)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_three_figures_stand_first(opened):
    names = opened.run("[...document.querySelectorAll('.figure h2')].map((name) => name.textContent)")
    assert names == ["Memory", "Time", "Outputs"]
    memory = opened.run("document.querySelector('.figure .value').textContent")
    before, after, percent = (float(figure) for figure in re.fullmatch(r"([\d.]+) → ([\d.]+) MiB −(\d+) %", memory).groups())
    assert abs(100 - 100 * after / before - percent) < 1.5


def test_one_chart_shows_before_after_both_and_the_block(opened):
    seen = {}
    for view in ("before", "after", "both", "block"):
        opened.run(f"document.querySelector('[value={view}]').click()")
        opened.settle()
        seen[view] = opened.run("[run.name, Boolean(drawing.behind), drawing.block, $('chart').toDataURL()]")
    assert [seen[view][:3] for view in seen] == [
        ["before", False, False],
        ["after", False, False],
        ["after", True, False],
        ["after", False, True],
    ]
    assert len({picture for *_, picture in seen.values()}) == 4
    most = opened.run("runs.map((run) => run.memory[run.peak])")
    assert most[1] < 0.61 * most[0]


def test_the_stacked_areas_add_up_to_the_memory_of_each_step(opened):
    assert opened.run(
        """drawing.bands.length > 10 && [...run.memory].every((memory, step) => {
          const here = drawing.bands.filter(({from, to}) => from <= step && step < to);
          const levels = [0, ...here.map(({from, high}) => high[step - from])];
          const drawn = new Set(here.map(({life}) => life));
          const others = run.at(step).filter((life) => !drawn.has(life)).reduce((sum, life) => sum + life.size, 0);
          return here.every(({from, low}, place) => low[step - from] === levels[place]) && levels.at(-1) + others === memory
            && drawing.tops[step] === memory;
        })"""
    )


def test_the_life_of_what_is_pointed_at_or_chosen_is_highlighted(opened):
    x, y, name = opened.run(
        """(() => {
          const band = drawing.bands.find(({life, from, to}) => life.kind === 1 || (to - from > 8 && life.size > 300000));
          const box = $("over").getBoundingClientRect();
          const middle = (band.from + band.to) >> 1;
          const value = (band.low[middle - band.from] + band.high[middle - band.from]) / 2;
          return [box.left + drawing.x(middle + 0.5), box.top + drawing.y(value), run.owner(band.life)];
        })()"""
    )
    plain = opened.run("$('over').toDataURL()")
    opened.move(x, y)
    assert opened.run("run.tensors[state.hovered].name") == name
    assert name in opened.run("$('about').textContent")
    assert opened.run("$('over').toDataURL()") != plain
    opened.drag((x, y), (x, y))
    assert opened.run("run.tensors[state.tensor].name") == name
    assert name in opened.run("$('said').textContent")
    opened.key("Escape")
    assert opened.run("state.tensor") is None


def test_a_drag_zooms_and_a_double_click_shows_all_again(opened):
    left, top, width = opened.run("(() => { const box = $('over').getBoundingClientRect(); return [box.left, box.top, box.width]; })()")
    opened.drag((left + width * 0.4, top + 150), (left + width * 0.6, top + 150))
    count = opened.run("run.steps.length")
    assert opened.run("state.to - state.from") < 0.3 * count
    opened.run("$('over').dispatchEvent(new MouseEvent('dblclick'))")
    assert opened.run("[state.from, state.to]") == [0, count]


def test_the_chart_is_used_by_keys_alone(opened):
    opened.key("p")
    peak = opened.run("run.peak")
    assert opened.run("state.step") == peak
    assert f"step {peak}: " in opened.run("$('said').textContent")
    opened.key("ArrowRight", "ArrowRight", "ArrowLeft")
    assert opened.run("state.step") == peak + 1
    opened.key("0")
    wide = opened.run("state.to - state.from")
    opened.key("+")
    assert opened.run("state.to - state.from") == pytest.approx(wide / 2, rel=0.01)
    opened.key("-")
    assert opened.run("state.to - state.from") == wide
    opened.run("$('over').focus()")
    opened.key("ArrowDown")
    first = opened.run("state.tensor")
    opened.key("ArrowDown")
    assert first is not None and opened.run("state.tensor") != first


def test_the_order_of_tab_follows_the_page_and_everything_has_a_name(opened):
    opened.run("document.activeElement.blur()")
    order = []
    for _ in range(40):
        opened.key("Tab")
        order.append(opened.run("document.activeElement.id || document.activeElement.name || document.activeElement.closest('[id]')?.id"))
    wanted = ["png", "csv", "json", "theme", "view", "peak", "wider", "closer", "all", "search", "over", "about", "tensors"]
    places = [order.index(name) for name in wanted]
    assert places == sorted(places)
    nameless = opened.run(
        """[...document.querySelectorAll("button, input, canvas[tabindex], fieldset, [role]")].filter((one) =>
          !(one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label"))).length"""
    )
    assert nameless == 0
    assert opened.run("getComputedStyle($('search')).outlineStyle") == "none"
    opened.run("document.activeElement.blur()")
    opened.key("/")
    assert opened.run("[document.activeElement.id, getComputedStyle($('search')).outlineStyle]") == ["search", "solid"]


def test_ops_are_found_by_name_and_by_type(opened):
    name = opened.run("run.name_of(40)")
    opened.key("/")
    opened.write(name)
    assert name in opened.run("$('found').textContent")
    opened.key("Enter")
    assert opened.run("run.name_of(state.step)") == name
    assert opened.run("document.activeElement.id") == "over"
    assert opened.run("state.from <= state.step && state.step < state.to")
    opened.key("/")
    opened.run("search.value = ''")
    opened.write("conv")
    kinds = opened.run("[...found.children].map((option) => option.textContent)")
    assert kinds and all("conv" in kind.lower() for kind in kinds)
    opened.key("ArrowDown", "Escape")
    assert opened.run("[found.hidden, search.value]") == [True, ""]


def test_the_table_is_sorted_by_each_heading_and_rows_choose(opened):
    def column(place):
        return opened.run(f"[...table.body.rows].map((row) => row.cells[{place}].textContent)")

    sizes = opened.run("table.rows().map((row) => row.size)")
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == opened.run("run.memory[run.peak]")
    opened.click("#tensors th:first-child button")
    assert column(0) == sorted(column(0), key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])
    assert opened.run("table.heads.map((head) => head.getAttribute('aria-sort'))")[0] == "ascending"
    opened.click("#tensors th:nth-child(6) button")
    opened.click("#tensors th:nth-child(4) button")
    assert opened.run("table.rows().map((row) => row.size)") == sizes
    shapes, types = column(1), column(2)
    assert any("×" in shape for shape in shapes) and "f32" in types
    opened.click("#tensors tbody tr:nth-child(2)")
    assert opened.run("[state.tensor, table.body.rows[1].className]") == [opened.run("Number(table.body.rows[1].dataset.tensor)"), "chosen"]
    assert opened.run("table.body.rows[1].querySelector('button').getAttribute('aria-pressed')") == "true"


def test_chart_table_and_report_are_saved(opened):
    picture = opened.saved("#png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000
    head, *rows = opened.saved("#csv").read_text().split("\n")
    assert head.strip() == "tensor,shape,type,bytes,first_step,last_step,computed_again,kind"
    assert len(rows) - 1 == opened.run("table.all.length")
    report = json.loads(opened.saved("#json").read_text())
    assert report["format"].startswith("remat-report/")
    assert report["peak_bytes"] == opened.run("run.memory[run.peak]")


def test_colors_are_told_apart_in_both_themes(opened):
    contrast = """((one, other) => {
      const light = (color) => [1, 3, 5].reduce((sum, place, part) => {
        const value = parseInt(color.slice(place, place + 2), 16) / 255;
        return sum + [0.2126, 0.7152, 0.0722][part] * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      }, 0.05);
      const style = getComputedStyle(document.documentElement);
      const [a, b] = [one, other].map((name) => light(style.getPropertyValue(name).trim()));
      return Math.max(a, b) / Math.min(a, b);
    })"""
    for theme in ("light", "dark"):
        assert opened.run("getComputedStyle(document.documentElement).colorScheme") == theme
        for text in ("--text", "--muted", "--accent", "--budget", "--good"):
            assert opened.run(f"{contrast}('{text}', '--card')") >= 4.5, (theme, text)
        for area in ("--kept", "--again", "--tiled", "--paged", "--other"):
            assert opened.run(f"{contrast}('{area}', '--card')") >= 3, (theme, area)
        opened.click("#theme")


def test_a_large_model_stays_fluent_and_its_names_are_text(browser, large):
    browser.errors.clear()
    browser.open(large)
    assert browser.run("[run.steps.length, run.tensors.length]") == [OPS, TENSORS]
    took = """Math.min(...Array.from({ length: 5 }, (_, time) => {
      const begun = performance.now();
      DO;
      return performance.now() - begun;
    })) / 1000"""
    assert browser.run(took.replace("DO", "new Drawing(prepared($('chart')).ctx, 900, 430, view()).draw()")) < FRAME
    assert browser.run(took.replace("DO", "(look(5000 + time), drawing.life_at(400, 300))")) < FRAME
    most = browser.run("Math.max(...run.memory)")
    assert browser.run("Math.max(...drawing.tops)") == pytest.approx(most)
    browser.key("/")
    browser.write("layers.7777.conv")
    browser.key("Enter")
    assert browser.run("state.step") == 7777
    browser.run("choose(0)")
    browser.settle()
    assert "<img src=x onerror=alert(1)>" in browser.run("$('said').textContent")
    assert not browser.errors


@pytest.mark.parametrize("name", browsers.WINDOWS)
def test_the_page_looks_as_it_should(browser, page, name):
    width, height, theme = browsers.WINDOWS[name]
    browser.open(page, width, height, theme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.looks_as_kept(f"page-{name}")


def test_without_scripts_nothing_is_missing(browser, page, tmp_path):
    plain = tmp_path / "plain.html"
    plain.write_text(re.sub("<script>.*?</script>", "", page.read_text(), flags=re.DOTALL))
    browser.open(plain)
    seen = browser.run("document.body.innerText")
    assert all(words in seen for words in ("Memory", "not compared", "Dropped and computed again"))
    assert browser.run("[...document.querySelectorAll('svg')].filter((chart) => chart.getBoundingClientRect().width > 300).length") == 1
    assert browser.run("[...document.querySelectorAll('button, input')].filter((one) => one.offsetParent).length") == 0
