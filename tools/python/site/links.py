"""Links of the documentation that leave it, and those to folders, lead to the repository on the site."""

import os
import posixpath
import re

LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)")


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
    return "".join(part if at % 2 else LINK.sub(link, part) for at, part in enumerate(parts))
