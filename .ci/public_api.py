"""Lists the public names of a crate, with their signatures, from rustdoc's JSON: public_api.py FILE.json"""

import json
import sys


class Listing:
    def __init__(self, crate):
        self.index = crate["index"]
        self.root = crate["root"]
        self.homes = {}  # item -> its first path
        self.lines = set()

    def item(self, item_id):
        return self.index.get(str(item_id))

    # Types and generics

    def path(self, path):
        return path["path"].rsplit("::", 1)[-1] + self.args(path.get("args"))

    def args(self, args):
        if not args:
            return ""
        if "parenthesized" in args:
            inner = args["parenthesized"]
            output = f" -> {self.type(inner['output'])}" if inner["output"] else ""
            return f"({', '.join(self.type(t) for t in inner['inputs'])}){output}"
        if "angle_bracketed" not in args:
            return ""
        inner = args["angle_bracketed"]
        found = [self.arg(arg) for arg in inner["args"]] + [self.constraint(c) for c in inner["constraints"]]
        return f"<{', '.join(found)}>" if found else ""

    def arg(self, arg):
        if isinstance(arg, str):
            return "_"
        kind, value = next(iter(arg.items()))
        return {"lifetime": lambda: value, "type": lambda: self.type(value), "const": lambda: value["expr"]}.get(
            kind, lambda: "_"
        )()

    def constraint(self, constraint):
        name, binding = constraint["name"] + self.args(constraint.get("args")), constraint["binding"]
        if "equality" in binding:
            value = binding["equality"]
            return f"{name} = {self.type(value['type']) if 'type' in value else value['constant']['expr']}"
        return f"{name}: {self.bounds(binding['constraint'])}"

    def bounds(self, bounds):
        return " + ".join(self.bound(bound) for bound in bounds)

    def bound(self, bound):
        if "trait_bound" in bound:
            bound = bound["trait_bound"]
            mark = {"maybe": "?", "maybe_const": "~const "}.get(bound["modifier"], "")
            return mark + self.binder(bound["generic_params"]) + self.path(bound["trait"])
        return bound.get("outlives") or "use<..>"

    def binder(self, params):
        return f"for<{', '.join(p['name'] for p in params)}> " if params else ""

    def type(self, type_):
        if isinstance(type_, str):
            return "_"
        kind, value = next(iter(type_.items()))
        if kind == "resolved_path":
            return self.path(value)
        if kind in ("generic", "primitive"):
            return value
        if kind == "dyn_trait":
            traits = [self.binder(t["generic_params"]) + self.path(t["trait"]) for t in value["traits"]]
            return "dyn " + " + ".join(traits + ([value["lifetime"]] if value["lifetime"] else []))
        if kind == "function_pointer":
            return self.binder(value["generic_params"]) + self.qualifiers(value["header"]) + self.signature(value["sig"])
        if kind == "tuple":
            return f"({', '.join(self.type(t) for t in value)}{',' if len(value) == 1 else ''})"
        if kind == "slice":
            return f"[{self.type(value)}]"
        if kind == "array":
            return f"[{self.type(value['type'])}; {value['len']}]"
        if kind == "impl_trait":
            return f"impl {self.bounds(value)}"
        if kind == "raw_pointer":
            return f"*{'mut' if value['is_mutable'] else 'const'} {self.type(value['type'])}"
        if kind == "borrowed_ref":
            lifetime = value["lifetime"] + " " if value["lifetime"] else ""
            return f"&{lifetime}{'mut ' if value['is_mutable'] else ''}{self.type(value['type'])}"
        if kind == "qualified_path":
            of = f" as {self.path(value['trait'])}" if value.get("trait") and value["trait"]["path"] else ""
            own = self.type(value["self_type"])
            return f"{f'<{own}{of}>' if of else own}::{value['name']}{self.args(value.get('args'))}"
        return kind

    def qualifiers(self, header):
        words = [("is_const", "const "), ("is_unsafe", "unsafe "), ("is_async", "async ")]
        return "".join(word for key, word in words if header.get(key)) + "fn"

    def signature(self, sig):
        def parameter(name, type_):
            own = {"generic": "Self"}
            if name == "self" and type_ == own:
                return "self"
            if name == "self" and "borrowed_ref" in type_ and type_["borrowed_ref"]["type"] == own:
                return self.type(type_).removesuffix("Self") + "self"
            return f"{name}: {self.type(type_)}"

        inputs = ", ".join(parameter(name, type_) for name, type_ in sig["inputs"])
        output = f" -> {self.type(sig['output'])}" if sig["output"] else ""
        return f"({inputs}){output}"

    def generics(self, generics):
        """The parameters in brackets, and the conditions behind the item."""
        names = []
        for param in generics["params"]:
            kind, value = next(iter(param["kind"].items()))
            if kind == "lifetime":
                names.append(param["name"])
            elif kind == "const":
                names.append(f"const {param['name']}: {self.type(value['type'])}")
            elif not value.get("is_synthetic"):
                bounds = f": {self.bounds(value['bounds'])}" if value["bounds"] else ""
                default = f" = {self.type(value['default'])}" if value.get("default") else ""
                names.append(param["name"] + bounds + default)
        conditions = []
        for predicate in generics["where_predicates"]:
            kind, value = next(iter(predicate.items()))
            if kind == "bound_predicate":
                conditions.append(f"{self.type(value['type'])}: {self.bounds(value['bounds'])}")
            elif kind == "lifetime_predicate":
                conditions.append(f"{value['lifetime']}: {' + '.join(value['outlives'])}")
        return f"<{', '.join(names)}>" if names else "", f" where {', '.join(conditions)}" if conditions else ""

    # Items

    def emit(self, line):
        self.lines.add(" ".join(line.split()))

    def module(self, module_id, path, seen=()):
        for child in self.item(module_id)["inner"]["module"]["items"]:
            self.child(child, path, seen)

    def child(self, child_id, path, seen):
        item = self.item(child_id)
        if item is None:
            return
        kind, value = next(iter(item["inner"].items()))
        if kind == "use":
            target = self.item(value["id"]) if value["id"] is not None else None
            if value["is_glob"]:
                if target and "module" in target["inner"] and value["id"] not in seen:
                    self.module(value["id"], path, (*seen, value["id"]))
                elif target and "enum" in target["inner"]:
                    self.emit(f"pub use {path}::{{variants of {value['source']}}}")
            elif target is None:
                self.emit(f"pub use {path}::{value['name']} = {value['source']}")
            else:
                self.named(value["id"], target, f"{path}::{value['name']}", seen)
        elif item["name"]:
            self.named(child_id, item, f"{path}::{item['name']}", seen)

    def named(self, item_id, item, path, seen):
        kind = next(iter(item["inner"]))
        home = self.homes.setdefault(str(item_id), path)
        if home != path:
            self.emit(f"pub use {path} = {home}")
        elif kind == "module":
            self.emit(f"pub mod {path}")
            if item_id not in seen:
                self.module(item_id, path, (*seen, item_id))
        else:
            self.declare(item, path)

    def declare(self, item, path, container=""):
        kind, value = next(iter(item["inner"].items()))
        public = "" if container == "trait" else "pub "
        if kind == "function":
            params, where = self.generics(value["generics"])
            self.emit(f"{public}{self.qualifiers(value['header'])} {path}{params}{self.signature(value['sig'])}{where}")
        elif kind in ("struct", "union", "enum"):
            params, where = self.generics(value["generics"])
            marks = "#[non_exhaustive] " if "non_exhaustive" in str(item["attrs"]) else ""
            self.emit(f"{marks}{public}{kind} {path}{params}{where}")
            self.fields(value.get("kind", value), path)
            for variant in value.get("variants", []):
                self.variant(self.item(variant), path)
            self.impls(value["impls"], path)
        elif kind == "trait":
            params, where = self.generics(value["generics"])
            bounds = f": {self.bounds(value['bounds'])}" if value["bounds"] else ""
            unsafe = "unsafe " if value["is_unsafe"] else ""
            self.emit(f"{public}{unsafe}trait {path}{params}{bounds}{where}")
            for member in value["items"]:
                self.declare(self.item(member), f"{path}::{self.item(member)['name']}", "trait")
        elif kind == "type_alias":
            params, where = self.generics(value["generics"])
            self.emit(f"{public}type {path}{params} = {self.type(value['type'])}{where}")
        elif kind == "constant":
            self.emit(f"{public}const {path}: {self.type(value['type'])}")
        elif kind == "static":
            self.emit(f"{public}static {path}: {self.type(value['type'])}")
        elif kind == "assoc_const":
            self.emit(f"{public}const {path}: {self.type(value['type'])}")
        elif kind == "assoc_type":
            bounds = f": {self.bounds(value['bounds'])}" if value["bounds"] else ""
            default = f" = {self.type(value['type'])}" if value.get("type") else ""
            self.emit(f"{public}type {path}{bounds}{default}")
        elif kind == "macro":
            self.emit(f"pub macro {path}!")

    def fields(self, kind, path):
        if not isinstance(kind, dict):
            return
        plain = kind.get("plain", kind)
        for field in plain.get("fields", []):
            item = self.item(field)
            if item:
                self.emit(f"pub {path}::{item['name']}: {self.type(item['inner']['struct_field'])}")
        if plain.get("has_stripped_fields"):
            self.emit(f"{path}: has private fields")
        for i, field in enumerate(kind.get("tuple", [])):
            item = self.item(field) if field is not None else None
            self.emit(f"pub {path}::{i}: {self.type(item['inner']['struct_field'])}" if item else f"{path}: has private fields")

    def variant(self, item, path):
        path, kind = f"{path}::{item['name']}", item["inner"]["variant"]["kind"]
        self.emit(f"pub {path}")
        if isinstance(kind, dict):
            self.fields({"plain": kind["struct"]} if "struct" in kind else kind, path)

    def impls(self, impls, path):
        for impl_id in impls:
            item = self.item(impl_id)
            if item is None:
                continue
            impl = item["inner"]["impl"]
            if impl["is_synthetic"] or impl["blanket_impl"]:
                continue
            params, where = self.generics(impl["generics"])
            if impl["trait"]:
                if impl["trait"]["path"].endswith("StructuralPartialEq") or self.is_elsewhere(impl["for"], path):
                    continue
                negative = "!" if impl["is_negative"] else ""
                self.emit(f"impl{params} {negative}{self.path(impl['trait'])} for {self.at(impl['for'], path)}{where}")
                continue
            for member_id in impl["items"]:
                member = self.item(member_id)
                if member:
                    arguments = self.type(impl["for"])
                    special = "" if "<" not in arguments or self.is_general(impl) else arguments[arguments.index("<") :]
                    self.declare(member, f"{path}{special}::{member['name']}")

    def is_elsewhere(self, type_, path):
        """Whether another type of the crate lists the implementation too."""
        own = type_.get("resolved_path")
        return own and str(own["id"]) in self.index and own["path"].rsplit("::", 1)[-1] != path.rsplit("::", 1)[-1]

    def at(self, type_, path):
        """The type of an implementation, with its whole path."""
        own = type_.get("resolved_path")
        if own and own["path"].rsplit("::", 1)[-1] == path.rsplit("::", 1)[-1]:
            return path + self.args(own.get("args"))
        return self.type(type_)

    @staticmethod
    def is_general(impl):
        """Whether the implementation is for every argument of its type."""
        args = (impl["for"].get("resolved_path", {}).get("args") or {}).get("angle_bracketed", {}).get("args", [])
        return all("lifetime" in arg or "generic" in arg.get("type", {}) for arg in args)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        crate = json.load(file)
    listing = Listing(crate)
    name = listing.item(listing.root)["name"]
    listing.homes[str(listing.root)] = name
    listing.module(listing.root, name)
    for line in sorted(listing.lines, key=lambda line: (line.replace("#[non_exhaustive] ", "").replace("pub ", ""), line)):
        print(line)


main()
