"""The site: Markdown pages, the reference made from docstrings, the gallery made by running it.

`make docs` builds it without a network; a warning is an error.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

import structot  # noqa: E402

project = "structot"
author = "structot developers"
copyright = "structot developers, MIT licence"
release = version = structot.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_templates", "tutorial", "**/sg_execution_times.rst"]
exclude_patterns += ["sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "py:obj"  # `solve` in a docstring is a link
suppress_warnings = ["config.cache"]  # the order of gallery pages is an object

# Markdown: links like page.md#a-heading, as on GitHub, are links here.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_imported_members = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# Torch is large, and only the docstrings of what uses it are needed here.
autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch"]
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_validation_checks = set()

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "tutorial"],
    "gallery_dirs": ["gallery", "start"],
    "filename_pattern": r"(plot_|five_minutes)",
    # The other scripts of examples/ draw pictures of other pages, or take longer.
    "ignore_pattern": r"(^|/)(?!plot_|five_minutes)[^/]*\.py$",
    "within_subsection_order": "reference.GalleryOrder",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("structot",),
    "inspect_global_variables": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"(matplotlib|Axes|Text|Line2D|list|tuple|dict)",
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
    "plot_gallery": True,
}
warnings.filterwarnings("ignore", category=structot.ConvergenceWarning)

# Pages with wide tables: no second column beside them.
WIDE = ["benchmarks", *(f"experiments/{path.stem}" for path in HERE.glob("experiments/*.md"))]

html_theme = "pydata_sphinx_theme"
html_title = "structot"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start/*": [], "changelog": [], "bibliography": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}


def _escape_bars(app, what, name, obj, options, lines):
    """A vertical bar is an absolute value in our docstrings, not a substitution."""
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = line.split("``")  # every second one is literal
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
            lines[k] = "``".join(parts)


def _skip_foreign(app, what, name, obj, skip, options):
    """Methods that scikit-learn adds to every estimator, for its metadata routing."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app):
    """Write the pages of the reference before anything is read."""
    app.connect("autodoc-process-docstring", _escape_bars)
    app.connect("autodoc-skip-member", _skip_foreign)
    reference.write(HERE / "api")
