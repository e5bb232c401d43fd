"""All about an installation on one page, for somebody who wonders why something doesn't work.

What belongs to others (packs, backends, their libraries) is run in processes of their own, so that whatever it does,
there is an answer.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from corejax.base.config import SETTINGS, config, variable
from corejax.base.errors import CorejaxError
from corejax.inspect import checking, surroundings, watching
from corejax.inspect.answers import Problem
from corejax.installed import groups, manifest
from corejax.xla.cache.persistent_files import Directory, Fault
from corejax.xla.runtime import backends

if TYPE_CHECKING:
    from corejax.installed.distributions import Pack
    from corejax.installed.manifest import Manifest

#: Environment variables that aren't of settings.
VARIABLES = ("COREJAX_DISABLE_PACKS", "COREJAX_PACKS", "COREJAX_PREFER", "COREJAX_SLOW_IMPORT")

_PREFIX = "COREJAX_"
_ENVIRONMENT = "the environment"

Facts = dict[str, str]


#: What is said of a section in which there is nothing.
_NOTHING = {"packs": "none: pip install 'corejax[std]' brings the standard ones", "settings": "all as by default"}


@dataclass(frozen=True)
class Diagnosis:
    """What was found: facts by section and name, and everything that is wrong."""

    sections: Mapping[str, Facts]
    problems: tuple[Problem, ...]

    def lines(self) -> Iterator[str]:
        """As text."""
        for title, facts in self.sections.items():
            yield title
            yield from [f"  {name}: {fact}" for name, fact in facts.items()] or [f"  {_NOTHING.get(title, 'none')}"]
        yield "problems"
        yield from [f"  {problem}" for problem in self.problems] or ["  none"]


def examine(seconds: float = checking.SECONDS) -> Diagnosis:
    """Look at everything. No process that is started for it may take longer than this."""
    problems = [*surroundings.unsupported()]
    sections: dict[str, Facts] = {"versions": surroundings.versions(), "packs": {}, "backends": {}, "settings": {},
                                  "caches": _caches(problems), "duplicates": {}}
    packs: dict[str, Pack] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are told as problems
            installed = manifest.read()
    except CorejaxError as error:  # variables name what isn't there
        problems.append(Problem(_ENVIRONMENT, error.message, error.todo or ""))
    else:
        packs = installed.all()
        sections["packs"], sections["duplicates"] = _packs(installed), _choices(installed)
        problems += checking.problems(seconds)
        sections["backends"] = {name: _smoke(installed, name, seconds, problems) for name in backends.known()}
        sections |= {name: _told(installed, name, seconds, problems) for name in installed.names(groups.FACTS)}
    sections["settings"] = _settings(problems, {name for facts in sections.values() for name in facts})
    sections["duplicates"] |= _copies(packs, problems)
    return Diagnosis(sections, tuple(dict.fromkeys([*_hidden(packs), *problems])))  # those first, as others may follow


def _copies(packs: Mapping[str, Pack], problems: list[Problem]) -> Facts:
    """What is installed more than once; different versions are a problem, which `check` tells of packs."""
    found = {}
    for name in (*surroundings.needed(), *packs):
        copies = manifest.copies(name)
        if len(copies) > 1:
            found[name] = "; ".join([f"{each.version} in {each.locate_file('')}" for each in copies])
            if name not in packs and len({each.version for each in copies}) > 1:
                problems.append(Problem(name, f"several versions are installed, of which the first counts: "
                                              f"{found[name]}", "uninstall all of them, and install one"))
    return found


def _hidden(packs: Mapping[str, Pack]) -> Iterator[Problem]:
    """Modules that would be imported, or are, in place of those of distributions."""
    for name in surroundings.needed():
        yield from surroundings.hidden(name, [name.replace("-", "_")])
    for pack in packs.values():
        yield from surroundings.hidden(pack.name, sorted({each.module.partition(".")[0] for each in pack.entries}))


# Packs

def _packs(installed: Manifest) -> Facts:
    found = {str(pack): groups.counted([entry.group for entry in pack.entries]) for pack in installed.all().values()}
    return found | {str(pack): "excluded by COREJAX_PACKS or COREJAX_DISABLE_PACKS"
                    for pack in installed.hidden.values()}


def _choices(installed: Manifest) -> Facts:
    """What several packs provide, and who was chosen. Conflicts are told as problems."""
    found = {}
    for group in dict.fromkeys([entry.group for pack in installed.all().values() for entry in pack.entries]):
        for name in installed.names(group):
            entries = installed.providers(group, name)
            if len(entries) < 2 or group == groups.RULES or name in groups.TABLES:
                continue
            try:
                chosen = installed.choose(group, name)
            except CorejaxError:
                continue
            assert chosen is not None
            others = ", ".join([str(entry.pack) for entry in entries if entry is not chosen])
            found[f"the {groups.noun(group)} {name!r}"] = f"{chosen.pack}, preferred to {others}"
    return found


def _where(ended: watching.Ended) -> str:
    return f": {ended.place}" if ended.place else ""


def _told(installed: Manifest, name: str, seconds: float, problems: list[Problem]) -> Facts:
    """What a pack has to say, in a section of this name."""
    pack = installed.providers(groups.FACTS, name)[0].pack.name
    ended = watching.run(["facts", name], seconds)
    found = {}
    for each in ended.found:
        if "error" in each:
            problems.append(Problem(pack, each["error"], each["todo"]))
        else:
            found[each["name"]] = each["fact"]
    if ended.why:
        problems.append(Problem(pack, f"what it says about {name!r} {ended.why}{_where(ended)}", "tell its authors"))
    return found


# Backends

def _smoke(installed: Manifest, name: str, seconds: float, problems: list[Problem]) -> str:
    """What comes of a small program on each kind of device that a backend has."""
    entries = installed.providers(backends.GROUP, name)
    pack = entries[0].pack.name if entries else "corejax"
    ended = watching.run(["backend", name], seconds)
    works = []
    for each in ended.found:
        if "unusable" in each:
            return f"can't be used here: {each['unusable']}"
        if "error" in each:
            problems.append(Problem(pack, each["error"], each["todo"]))
            return "faulty"
        if each["wrong"]:
            problems.append(Problem(pack, f"the backend {name!r} computes {each['wrong']} on its {each['kind']}",
                                    "install another release of what drives it"))
            return "computes something wrong"
        works.append(f"{each['count']} {each['kind']} (a program in {each['seconds']:.2f} s)")
    if ended.why:
        doing = f" while {ended.at}" if ended.at else ""
        problems.append(Problem(pack, f"the backend {name!r} {ended.why}{doing}{_where(ended)}",
                                "choose another one with COREJAX_BACKEND" + (
                                    "; --seconds gives it more time" if ended.why.startswith("takes") else "")))
        return f"{ended.why}{doing}"
    return f"works: {', '.join(works)}"


# Settings and caches

def _settings(problems: list[Problem], told: Container[str]) -> Facts:
    """What differs from the defaults, with who says so: an environment variable, unless a pack has told of it."""
    found = {name: f"{getattr(config, name)!r}, by {setting.env_var}; the default is {setting.default!r}"
             for name, setting in SETTINGS.items() if getattr(config, name) != setting.default}
    shown = [setting.env_var for setting in SETTINGS.values()]
    known = [variable(name) for name in dir(config)]  # those of packs, too, which need not be loaded
    for name, value in sorted(os.environ.items()):
        if not name.startswith(_PREFIX) or name in shown or name in told:
            continue
        is_known = name in VARIABLES or name in known
        found[name] = repr(value) + ("" if is_known else ", which isn't a variable of corejax")
        plain = {other.removeprefix(_PREFIX): other for other in (*known, *VARIABLES)}
        near = [] if is_known else get_close_matches(name.removeprefix(_PREFIX), plain, 1, 0.7)
        if near:
            problems.append(Problem(_ENVIRONMENT, f"corejax doesn't know the variable {name}",
                                    f"did you mean {plain[near[0]]}?"))
    return found


def _caches(problems: list[Problem]) -> Facts:
    """What is kept between processes; what one process keeps ends with it."""
    path, where = config.compilation_cache_dir, "compiled programs"
    if path is None:
        return {where: "not kept: config.compilation_cache_dir, or COREJAX_COMPILATION_CACHE_DIR, names no directory"}
    if not os.path.lexists(path):
        return {where: f"to be kept in {path}, which isn't there yet"}
    sizes: list[int] = []
    faults: dict[str, list[object]] = {}
    try:
        with Directory(path) as directory:
            for size, fault in directory.survey():
                sizes.append(size)
                if fault is not None:
                    faults.setdefault(fault.message, []).append(fault.got)
    except Fault as fault:
        problems.append(Problem("corejax", f"{fault.message} ({path})", fault.todo or ""))
        return {where: f"not kept: {fault.message}"}
    for message, files in faults.items():
        problems.append(Problem("corejax", f"{message}: {files[0]}" + f" and {len(files) - 1} more" * (len(files) > 1),
                                "remove what can't be used: programs are compiled again when they are needed"))
    writable = os.access(path, os.W_OK)
    if not writable:
        problems.append(Problem("corejax", f"the compilation cache can't be written to: {path}",
                                "let this user write there, or name another directory"))
    return {where: f"{len(sizes)} in {path}, {_megabytes(sum(sizes))} of "
                   f"{_megabytes(config.compilation_cache_max_size)}" + ", read only" * (not writable)}


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
