"""Plain Tcl, as constraints are written in it: a command in each line, words in braces or brackets."""

import re


def commands(text):
    """Yield the words of each command; braces and brackets around a word are kept, comments and empty lines left out."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield list(words(line))


def words(line):
    """Yield the words of a line. Raises ValueError for a brace or bracket that is not closed."""
    place = 0
    while place < len(line):
        if line[place] == " ":
            place += 1
            continue
        end, depth = place, 0
        while end < len(line) and (depth or line[end] != " "):
            depth += (line[end] in "{[") - (line[end] in "}]")
            end += 1
        if depth:
            raise ValueError(f"not closed: {line[place:]}")
        yield line[place:end]
        place = end


def inside(word):
    """Return the words in a list in braces, or of a single word."""
    return re.sub(r"^\{(.*)\}$", r"\1", word).split()
