"""The graphs known by name: which files they are, where users keep them, where they come from, how they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evidentia._support.errors import EvidentiaError
from evidentia.graphs.planetoid import PARTS

HOMES = {
    "planetoid": "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data",
    "gnn-benchmark": "https://raw.githubusercontent.com/shchur/gnn-benchmark/master/data/npz",
    "graph2gauss": "https://raw.githubusercontent.com/abojchevski/graph2gauss/master/data",
}


@dataclass(frozen=True)
class Entry:
    """A graph known by name.

    Args:
        name: its name here.
        family: the folder of its family, and the PyG class that reads it.
        folder: its own folder there.
        files: the names of its files.
        home: a key of `HOMES`.
        digests: SHA-256 of each file (Planetoid), or of the arrays in it (npz); empty if none is known.
        largest_component: whether only the largest connected component is used unless asked otherwise.
        class_names: names of the classes, where the files have none that can be read.
        aliases: other names.
    """

    name: str
    family: str
    folder: str
    files: tuple[str, ...]
    home: str
    digests: Mapping[str, str] = field(default_factory=dict)
    largest_component: bool = False
    class_names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """What the names of Planetoid's files begin with."""
        return self.files[0].rsplit(".", 1)[0]

    @property
    def layouts(self) -> list[str]:
        """Folders under a data root that may hold the files; downloads go to the first."""
        parent = self.family if self.family == "Planetoid" else f"graphs/{self.family}"
        layouts = [f"{parent}/{self.folder}/raw"]
        for folder in dict.fromkeys([self.folder, self.folder.lower()]):
            layouts += [f"{family}{folder}/raw" for family in (f"{self.family}/", f"{parent}/", "", f"{folder}/")]
        # CitationFull's cora.npz is not the only file of that name, so its folder must say what it is.
        if self.family != "CitationFull":
            layouts += ["raw", "."]
        return list(dict.fromkeys(layouts))

    def url(self, file: str) -> str:
        """Where a file comes from."""
        return f"{HOMES[self.home]}/{file}"


def _planetoid(name: str, folder: str, class_names: tuple[str, ...], digests: str) -> Entry:
    files = tuple(f"ind.{name}.{part}" for part in PARTS)
    checks = dict(zip(files, digests.split(), strict=True))
    return Entry(name, "Planetoid", folder, files, "planetoid", checks, class_names=class_names)


def _npz(name: str, family: str, folder: str, file: str, home: str, digest: str = "", **more: tuple[str, ...]) -> Entry:
    digests = {file: digest} if digest else {}
    component = family in ("Amazon", "Coauthor")
    return Entry(name, family, folder, (file,), home, digests, largest_component=component, **more)


_ENTRIES = (
    _planetoid(
        "cora",
        "Cora",
        (
            *("Theory", "Reinforcement Learning", "Genetic Algorithms", "Neural Networks", "Probabilistic Methods"),
            *("Case Based", "Rule Learning"),
        ),
        """
        23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab
        94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1
        b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a
        41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad
        9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543
        2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71
        58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d
        297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875
        """,
    ),
    _planetoid(
        "citeseer",
        "CiteSeer",
        (
            *("Artificial Intelligence", "Machine Learning", "Information Retrieval", "Databases", "Agents"),
            "Human-Computer Interaction",
        ),
        """
        d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6
        8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924
        539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21
        55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce
        2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668
        f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95
        d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7
        2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4
        """,
    ),
    _planetoid(
        "pubmed",
        "PubMed",
        ("Diabetes, Experimental", "Diabetes Type 1", "Diabetes Type 2"),
        """
        fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33
        e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3
        4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d
        ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd
        508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e
        0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e
        5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9
        b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5
        """,
    ),
    _npz(
        *("photo", "Amazon", "Photo", "amazon_electronics_photo.npz", "gnn-benchmark"),
        digest="2b41969612a0dee9587336fb5c0d4b3a16be9007ebbceec6e8bcb3fb31fe7e00",
        aliases=("amazon-photo",),
    ),
    _npz(
        *("computers", "Amazon", "Computers", "amazon_electronics_computers.npz", "gnn-benchmark"),
        digest="51a63048cf0d14044ba9b4cbbab9b8d8c6923980978480c6a51219334e81f793",
        aliases=("amazon-computers",),
    ),
    _npz(
        *("physics", "Coauthor", "Physics", "ms_academic_phy.npz", "gnn-benchmark"),
        digest="40bd849f012b34b0be94a7ab43f5f43f653c9e62aa46b00d2e16177b52daab6f",
        # The file has them too, but as Python objects, which are not read.
        class_names=("phys rev d", "phys rev a", "phys rev b", "phys rev c", "phys rev e"),
        aliases=("coauthor-physics",),
    ),
    _npz("cs", "Coauthor", "CS", "ms_academic_cs.npz", "gnn-benchmark", aliases=("coauthor-cs",)),
    _npz("cora-full", "CitationFull", "cora", "cora.npz", "graph2gauss", aliases=("corafull",)),
    _npz("cora-ml", "CitationFull", "cora_ml", "cora_ml.npz", "graph2gauss"),
    _npz("citeseer-full", "CitationFull", "citeseer", "citeseer.npz", "graph2gauss"),
    _npz("dblp", "CitationFull", "dblp", "dblp.npz", "graph2gauss"),
    _npz("pubmed-full", "CitationFull", "pubmed", "pubmed.npz", "graph2gauss"),
)

CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
_NAMES = {alias: entry.name for entry in _ENTRIES for alias in (entry.name, *entry.aliases)}


def find_entry(name: str) -> Entry:
    """The graph of that name, in upper or lower case."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-") if isinstance(name, str) else name
    if wanted not in _NAMES:
        raise EvidentiaError(f"there is no graph named {name!r}; choose one of: {', '.join(CATALOG)}")
    return CATALOG[_NAMES[wanted]]
