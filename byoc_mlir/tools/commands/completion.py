"""`byoc completion`: a script that completes commands, options and names in a shell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence

from byoc_mlir.tools.commands.common import bundled_networks

SHELLS = ("bash", "zsh", "fish")

_Parsers = Mapping[str, argparse.ArgumentParser]

_BASH = """\
_byoc() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {commands} -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} $before" in
{choices}
  *) words="" ;;
  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  case "$word" in
  -*)
    case "${{COMP_WORDS[1]}}" in
{options}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    ;;
  *) COMPREPLY=($(compgen -W {networks} -- "$word") $(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _byoc byoc
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.description = (
        f'{__doc__} bash: eval "$(byoc completion bash)" in ~/.bashrc, likewise zsh;'
        " fish: byoc completion fish > ~/.config/fish/completions/byoc.fish"
    )
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    print(script(args.shell, args.parsers), end="")
    return 0


def script(shell: str, parsers: _Parsers) -> str:
    """Returns the script for one of `SHELLS`; `parsers` are the parsers of the commands."""
    if shell == "fish":
        return "\n".join([*_fish_lines(parsers), ""])
    text = _BASH.format(
        commands=_words(list(parsers)),
        networks=_words(bundled_networks()),
        choices="\n".join(
            f'  "{command} {option}") words={_words(choices)} ;;'
            for command, parser in parsers.items()
            for option, choices in _choices(parser)
        ),
        options="\n".join(
            f"    {command}) words={_words([name for one in _options(parser) for name in one])} ;;"
            for command, parser in parsers.items()
        ),
    )
    return f"{_ZSH if shell == 'zsh' else ''}{text}"


def _fish_lines(parsers: _Parsers) -> Iterator[str]:
    for command in parsers:
        yield f"complete -c byoc -n __fish_use_subcommand -f -a {command}"
    networks = _words(bundled_networks())
    for command, parser in parsers.items():
        head = f"complete -c byoc -n '__fish_seen_subcommand_from {command}'"
        choices = dict(_choices(parser))
        if any(action.dest == "model" for action in parser._actions):
            yield f"{head} -a {networks}"
        for names in _options(parser):
            flags = " ".join(f"-l {one[2:]}" if one[1] == "-" else f"-s {one[1:]}" for one in names)
            known = [_words(choices[one]) for one in names if one in choices]
            yield f"{head} {flags}{f' -x -a {known[0]}' if known else ''}"


def _options(parser: argparse.ArgumentParser) -> Sequence[Sequence[str]]:
    """Returns the options of a parser, each with its names."""
    return [action.option_strings for action in parser._actions if action.option_strings]


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields each option that takes only certain words, with these words."""
    for action in parser._actions:
        for option in action.option_strings if action.choices else ():
            yield option, list(map(str, action.choices or ()))
    for action in parser._actions:
        if action.choices and not action.option_strings:
            yield parser.prog.split()[-1], list(map(str, action.choices))


def _words(words: Sequence[str]) -> str:
    return shlex.quote(" ".join(words))
