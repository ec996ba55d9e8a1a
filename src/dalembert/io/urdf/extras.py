"""What stands in a URDF file besides the elements of its specification: coefficients of contact, and what nobody reads."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from xml.etree import ElementTree

#: elements that the importer reads, by the element they are in
KNOWN = {
    "robot": {"link", "joint", "material", "transmission"},
    "link": {"inertial", "visual", "collision", "contact"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
    "contact": {"lateral_friction", "restitution"},
}
#: and attributes
ATTRIBUTES = {"limit": {"lower", "upper", "effort", "velocity"}, "dynamics": {"damping", "friction"}}


@dataclass
class Extras:
    """``contact``: friction and restitution of links that give them; ``lines`` for the report."""

    contact: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def read_extras(text: bytes) -> Extras:
    """Look through a file that was found safe."""
    extras, root = Extras(), ElementTree.fromstring(text)
    unread = Counter(child.tag for child in root if child.tag not in KNOWN["robot"])
    extras.lines += [f"<{tag}> is left out" + (f" ({count} times)" if count > 1 else "") for tag, count in unread.items()]
    for kind in ("link", "joint"):
        for element in root.findall(kind):
            _look(extras, kind, element)
    return extras


def _look(extras: Extras, kind: str, element: ElementTree.Element) -> None:
    name = element.get("name", "")
    for child in element:
        if child.tag not in KNOWN[kind]:
            extras.lines.append(f"{kind} {name!r}: <{child.tag}> is left out")
        unread = sorted(set(child.attrib) - ATTRIBUTES.get(child.tag, set(child.attrib)))
        if unread:
            extras.lines.append(f"{kind} {name!r}: {', '.join(unread)} of <{child.tag}> {'is' if len(unread) == 1 else 'are'} left out")
        if child.tag == "contact":
            extras.contact[name] = _value(child, "lateral_friction"), _value(child, "restitution")
            unread = sorted({c.tag for c in child} - KNOWN["contact"])
            if unread:
                extras.lines.append(f"link {name!r}: {', '.join(unread)} of <contact> {'is' if len(unread) == 1 else 'are'} left out")


def _value(element: ElementTree.Element, tag: str) -> float | None:
    """A number that makes sense as a coefficient, or None."""
    found = element.find(tag)
    try:
        value = float("nan") if found is None else float(found.get("value", "nan"))
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None
