"""Links of the documentation that leave it, and those to folders, lead to the repository on the site. The planner as a page
is a part of the site, where it was built (`make web`), and its start says so first."""

import os
import posixpath
import re
import shutil

LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)")


PAGE = "target/web"
"""Where the planner as a page lies in a checkout."""
TRY = """<p><a class="md-button md-button--primary" href="try/index.html">Drop a model here: where its memory goes, and what less
would cost</a> Nothing to install, and nothing leaves your machine.</p>

"""


def _page(config):
    return os.path.join(os.path.dirname(config["config_file_path"]), PAGE)


def on_post_build(config):
    """Puts the planner beside the documents, and what lets search work in files."""
    shutil.copy(os.path.join(os.path.dirname(__file__), "iframe-worker.js"), os.path.join(config["site_dir"], "assets"))
    if os.path.isdir(_page(config)):
        shutil.copytree(_page(config), os.path.join(config["site_dir"], "try"), dirs_exist_ok=True)


def on_page_markdown(markdown, page, config, files):
    """Rewrites the links of a page; code stays as it is."""
    here = posixpath.dirname(page.file.src_uri)

    def link(match):
        target = posixpath.normpath(posixpath.join(here, match[1]))
        path = os.path.join(config["docs_dir"], target)
        if not os.path.exists(path):
            return match[1]
        if not target.startswith("..") and os.path.isfile(path):
            return match[1]
        root = os.path.dirname(config["config_file_path"])
        kind = "tree" if os.path.isdir(path) else "blob"
        return f"{config['repo_url']}/{kind}/main/{os.path.relpath(os.path.realpath(path), root)}"

    # Every second part is a block of code.
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    text = "".join(part if at % 2 else LINK.sub(link, part) for at, part in enumerate(parts))
    is_start = page.file.src_uri == "README.md" and os.path.isdir(_page(config))
    return text.replace("\n", f"\n\n{TRY}", 1) if is_start else text
