"""Sphinx configuration: ``sphinx-build -W --keep-going docs docs/_build``."""

from __future__ import annotations

from importlib.metadata import version as read_version

project = "lhtree"
author = "The lhtree developers"
copyright = "The lhtree developers"
release = version = read_version("lhtree")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "doc_module": ("lhtree",),
    "backreferences_dir": "generated/backreferences",
}

templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "lhtree"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"getting-started": []}  # it has no pages below it
html_theme_options = {
    "navigation_with_keys": False,
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "results/accuracy": [],  # the wide tables need the room
        "results/paper": [],
    },
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
