#!/usr/bin/env python3
"""The software bill of materials of a release binary, CycloneDX 1.5 as JSON, on standard output.

What `cargo metadata` says of the default features on Linux (x86_64): the crates that are linked in and those that only build
(scope "excluded"), each with its licence, its checksum of Cargo.lock and what it depends on. No date, no random number: the
same Cargo.lock gives the same bytes.
"""

import json
import os
import subprocess
import sys
import tomllib

TARGET = "x86_64-unknown-linux-gnu"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def metadata():
    words = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]
    return json.loads(subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def checksums():
    with open(os.path.join(ROOT, "Cargo.lock"), "rb") as file:
        return {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(file)["package"]}


def tree(edges):
    """The name and version of all that the binaries need by such edges, as cargo itself resolves features for them."""
    words = ["cargo", "tree", "--package", "zk-leader-run", "--locked", "--target", TARGET, "--edges", edges, "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {(name, version.removeprefix("v")) for name, version in (line.split()[:2] for line in lines if line)}


def component(package, is_linked, checksum):
    entry = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "scope": "required" if is_linked else "excluded",
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "purl": purl(package),
    }
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def main():
    told, sums = metadata(), checksums()
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    linked, needed = tree("normal,no-proc-macro"), tree("normal,build")
    packages = {p["id"]: p for p in told["packages"] if identity(p) in needed}
    root = told["resolve"]["root"]
    order = sorted(packages.keys() - {root}, key=lambda i: identity(packages[i]))
    components = [
        component(packages[i], identity(packages[i]) in linked, sums[identity(packages[i])]) for i in order
    ]
    depends = [
        {"ref": purl(packages[i]), "dependsOn": sorted({purl(packages[d["pkg"]]) for d in dependencies(nodes[i], packages)})}
        for i in [root, *order]
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[root], True, None) | {"type": "application"}},
        "components": components,
        "dependencies": depends,
    }
    json.dump(bill, sys.stdout, indent=2)
    print()


def identity(package):
    return package["name"], package["version"]


def dependencies(node, packages):
    """Those that are needed to build or to run it, and are in the bill."""
    kinds = (None, "build")
    return [d for d in node["deps"] if d["pkg"] in packages and any(k["kind"] in kinds for k in d["dep_kinds"])]


main()
