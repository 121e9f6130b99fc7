"""Reading the pages of reports, for the tests."""

import json
import re
from pathlib import Path

EVIL = "<script>alert(1)</script>"
EVIL_CLASS = "</script><img src=x onerror=alert(2)>"
MINUS = "\N{MINUS SIGN}"


def read_data(path):
    """Return the data that the scripts of a page read."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def find(driver, selector):
    """Return the elements that a selector finds."""
    return driver.find_elements("css selector", selector)


def text_of(driver, selector):
    """Return the text of the first of them."""
    return find(driver, selector)[0].text
