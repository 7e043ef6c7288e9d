"""The style of an explanation, light and dark, for wide screens and phones. Nothing is loaded."""

from __future__ import annotations

import re

LIGHT = """
  --paper: #f6f6f3; --card: #ffffff; --ink: #1c1d21; --quiet: #62656d; --line: #dfdfda;
  --heat: #1f9e89; --alone: #b4531a; --minus: #b4531a;
"""
DARK = """
  --paper: #15161a; --card: #1e2025; --ink: #eceae4; --quiet: #a0a3ab; --line: #34373e;
  --heat: #1d8f7d; --alone: #f0a36b; --minus: #f0a36b;
"""
_RULES = """
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
.pair {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.25rem 1.5rem; margin-bottom: 1.25rem;
}
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem .75rem; margin-bottom: .75rem; }
header strong { font-size: 1.9rem; font-weight: 650; overflow-wrap: anywhere; }
header span, .source, .by, footer, h2 { color: var(--quiet); }
.source { margin: 0 0 0 auto; font-size: .85rem; }
h2 { font-size: .75rem; font-weight: 500; margin: 0; letter-spacing: .02em; }
.text {
  font-size: 1.2rem; line-height: 2.1; margin: 0 0 .5rem; white-space: pre-wrap; overflow-wrap: anywhere;
}
.block {
  padding: .16em .3em; border-radius: 6px; outline: 2px solid transparent; outline-offset: 1px;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; cursor: default;
  background: color-mix(in oklab, var(--heat) calc(6% + var(--s, 0) * 74%), var(--card));
}
.block.alone { background: none; border: 1.5px dashed var(--alone); }
.block:focus-visible { outline-color: var(--ink); }
sup { font-size: .62em; margin-inline-start: .18em; line-height: 0; font-variant-numeric: tabular-nums; }
u { text-decoration: underline wavy var(--alone) 1.5px; text-underline-offset: .25em; }
table { width: 100%; border-collapse: collapse; margin-top: .75rem; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: .35rem .6rem .35rem 0; vertical-align: baseline; font-size: .95rem; }
thead th { color: var(--quiet); font-weight: 500; font-size: .75rem; border-bottom: 1px solid var(--line); }
tbody tr { border-bottom: 1px solid var(--line); outline: 1.5px solid transparent; outline-offset: -1px; }
.n { width: 1.6rem; color: var(--quiet); font-weight: 500; }
.said { overflow-wrap: anywhere; }
thead th:nth-child(2), thead th:nth-child(3) { width: 26%; }
.said.none { color: var(--alone); font-size: .85rem; }
td[data-is] { white-space: nowrap; }
.quiet { color: var(--quiet); font-size: .85rem; }
.bar, .carry { display: inline-block; height: .6em; border-radius: 2px; margin-inline-end: .5em; }
.bar {
  width: 4rem; background: linear-gradient(var(--heat), var(--heat)) no-repeat var(--line);
  background-size: calc(var(--s) * 100%) 100%;
}
.carry {
  width: 4rem; background-repeat: no-repeat; border-radius: 0;
  background-image: linear-gradient(var(--c), var(--c)), linear-gradient(var(--quiet), var(--quiet));
  background-size: calc(var(--w) * 2rem) 100%, 1px 100%;
}
.carry.plus { --c: var(--heat); background-position: 2rem 0, 2rem 0; }
.carry.minus { --c: var(--minus); background-position: calc(2rem - var(--w) * 2rem) 0, 2rem 0; }
b.minus { color: var(--minus); font-weight: 500; }
.notes { margin: .9rem 0 0; padding-inline-start: 1.1rem; font-size: .92rem; }
.by { margin: .6rem 0 0; font-size: .8rem; }
.part { margin: 0 .25rem 1rem; }
footer { font-size: .85rem; padding: 0 .25rem; }
footer p { margin: 0 0 .4rem; }
footer .block { padding: .05em .35em; }
.scale { white-space: nowrap; }
.scale i {
  display: inline-block; width: 6rem; height: .8em; border-radius: 3px; vertical-align: -.08em;
  background: linear-gradient(to right, color-mix(in oklab, var(--heat) 6%, var(--card)),
    color-mix(in oklab, var(--heat) 80%, var(--card)));
  border: 1px solid var(--line);
}
@media (max-width: 640px) {
  .pair { padding: 1rem; }
  .text { font-size: 1.1rem; }
  table, tbody { display: block; }
  thead { display: none; }
  tbody tr { display: grid; grid-template-columns: 1.6rem 1fr 1fr; gap: .1rem .6rem; padding: .5rem 0; }
  tbody th, tbody td { padding: 0; }
  td.none:not(.said) { display: none; }
  td[data-is] { grid-column: span 1; white-space: normal; }
  td[data-is="strength"], td[data-is="first carries"] { grid-column: 2; }
  td[data-is="chance"], td[data-is="second carries"] { grid-column: 3; }
  td[data-is]::before { content: attr(data-is); display: block; color: var(--quiet); font-size: .72rem; }
  .bar, .carry { width: 4rem; }
}
"""
STYLE = f"""
:root {{{LIGHT}}}
@media (prefers-color-scheme: dark) {{
:root {{{DARK}}}
}}
{_RULES.strip()}
"""
# How notebooks say that they are light or dark, whatever the system is: JupyterLab, VS Code, Colab.
_LIGHT_THEMES = ('body[data-jp-theme-light="true"]', "body.vscode-light", 'html[theme="light"]')
_DARK_THEMES = ('body[data-jp-theme-light="false"]', "body.vscode-dark", 'html[theme="dark"]')
_SELECTORS = re.compile(r"(?m)^( *)([^@{}\n;]+?) \{")


def style_inside(scope: str, more: str = "") -> str:
    """The style, and `more` rules, for one element of another page; `scope` is the element's selector.

    Nothing outside of the element changes. Light or dark is that of a notebook, or else of the system.
    """
    rules = _SELECTORS.sub(lambda found: f"{found[1]}{_scoped(found[2], scope)} {{", STYLE + more)
    themes = "".join(
        f"{', '.join(f'{theme} {scope}' for theme in names)} {{{colours}}}\n"
        for names, colours in ((_LIGHT_THEMES, LIGHT), (_DARK_THEMES, DARK))
    )
    return rules + themes


def _scoped(selectors: str, scope: str) -> str:
    """Selectors below the scope. What stands for the whole page stands for the scope itself."""
    # A comma inside of parentheses belongs to its selector.
    each = re.split(r", (?![^(]*\))", selectors)
    return ", ".join(scope if one in (":root", "body") else f"{scope} {one}" for one in each)
