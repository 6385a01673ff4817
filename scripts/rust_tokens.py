"""Splits Rust source into tokens: what scripts/words and scripts/size share."""

import re

TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
  | (?P<string>[bc]?"(?:[^"\\]|\\.)*")
  | (?P<char>b?'(?:[^'\\]|\\.[^']*)'(?!\w))
  | (?P<lifetime>'[A-Za-z_]\w*)
  | (?P<ident>(?:r\#)?[A-Za-z_]\w*)
  | (?P<number>\d\w*(?:\.\d\w*)?)
  | (?P<punct>\.\.[=.]|<<=|>>=|::|->|=>|\.\.|&&|\|\||<<|>>|[=!<>+*/%^&|-]=|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(source):
    """Each token as (kind, text, offset). Comments are tokens of the kind `comment`."""
    for token in TOKEN.finditer(source):
        kind = "raw" if token.lastgroup == "hashes" else token.lastgroup
        yield kind, token.group(), token.start()
