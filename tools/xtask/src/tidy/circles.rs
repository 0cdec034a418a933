//! No two files of a crate need each other, through others neither.
//!
//! A file needs another if it names something that the other defines. What a file imports or hands on counts as the file that defines
//! it. A module and its tests are one. A method that a type calls on itself is needed of the file that defines it for this type, if that is
//! one; the types of other receivers are not known, and their methods are not followed. A crate's `error.rs` may name the errors of its
//! stages, which return what it makes of them.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

use crate::workspace::{Finding, Source};

/// Circles that stay because a type calls its own methods: the first file of each, and why. Those of names never stay.
const ALLOWED: &[(&str, &str)] = &[
    (
        "dialect/ir/src/part_checks.rs",
        "parts of one check, whose error is that of the whole",
    ),
    ("dialect/mlir/src/apply.rs", "tiles are applied by the same walk"),
    (
        "dialect/onnx-mlir/src/body.rs",
        "operations stand in blocks, and blocks in operations",
    ),
    ("dialect/onnx/src/export.rs", "a model exports itself"),
    (
        "dialect/onnx/src/import/mod.rs",
        "graphs stand in nodes, and nodes in graphs",
    ),
    (
        "passes/dtr/src/runtime/mod.rs",
        "running, evicting and banishing call each other",
    ),
    (
        "passes/fission-check/src/lib.rs",
        "the walk, and what it does at each op",
    ),
    (
        "passes/onnxruntime/deploy/src/deploy/judging.rs",
        "the states of one machine",
    ),
    (
        "passes/planner/src/place/search/descend.rs",
        "a part of a search is a search",
    ),
    ("passes/solve/src/descent.rs", "rounds of the search call each other"),
    ("tools/testing/src/evaluate/mod.rs", "operators that are made of others"),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    circles(sources, ALLOWED)
}

fn circles(sources: &[Source], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust() && !source.is_test()) {
        let Some(folder) = source.crate_folder() else { continue };
        let Some(path) = source.path[folder.len()..].strip_prefix("/src/") else {
            continue;
        };
        // What does not parse is not told here: the compiler says it better.
        if let Ok(file) = syn::parse_file(&source.text) {
            let module = Module::of(module_path(path), source, &file);
            // A program beside a library is a crate of its own: the library stands first.
            crates
                .entry(folder)
                .or_default()
                .entry(module.path.clone())
                .or_insert(module);
        }
    }
    let names = crates.values().flat_map(|modules| circles_of(modules, false));
    let mut findings: Vec<Finding> = names.collect();
    if findings.is_empty() {
        findings.extend(crates.values().flat_map(|modules| circles_of(modules, true)));
        findings.retain(|finding| allowed.iter().all(|(file, _)| finding.path != *file));
    }
    findings
}

/// The circles of one crate, by names alone or by methods as well.
fn circles_of(modules: &Modules<'_>, by_methods: bool) -> Vec<Finding> {
    let ids: Vec<&Path> = modules.keys().collect();
    let mut graph = DiGraphMap::<usize, String>::new();
    let homes = methods(modules);
    let stages = |module: &Module<'_>| module.path == ["error"];
    for (from, module) in modules.values().enumerate().filter(|(_, module)| !stages(module)) {
        for path in &module.needs {
            let Some((home, name)) = home(modules, path) else {
                continue;
            };
            if let Ok(to) = ids.binary_search(&&home)
                && to != from
            {
                graph.add_edge(from, to, name);
            }
        }
        for method in module.calls.iter().filter(|_| by_methods) {
            if let Some(&Some(to)) = homes.get(method)
                && to != from
            {
                graph.add_edge(from, to, format!("{}::{}", method.0, method.1));
            }
        }
    }
    let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
    let finding = |mut circle: Vec<usize>| {
        circle.sort_unstable();
        let file = |id: usize| modules[ids[id]].source;
        let edges = graph
            .all_edges()
            .filter(|(a, b, _)| circle.contains(a) && circle.contains(b));
        let edge =
            |(a, b, name): (usize, usize, &String)| format!("{} needs `{name}` of {}", file(a).path, file(b).path);
        let edges: Vec<String> = edges.map(edge).collect();
        Finding::new(file(circle[0]), 1, format!("a circle of files: {}", edges.join("; ")))
    };
    circles.map(finding).collect()
}

/// For each method the file that defines it, if that is one.
fn methods<'a>(modules: &'a Modules<'_>) -> BTreeMap<&'a Method, Option<usize>> {
    let mut homes = BTreeMap::new();
    for (id, module) in modules.values().enumerate() {
        for method in &module.defines {
            let home = homes.entry(method).or_insert(Some(id));
            *home = home.filter(|&home| home == id);
        }
    }
    homes
}

/// A module's path in its crate: empty for the root.
type Path = Vec<String>;

/// The name of a type, and of a method of it.
type Method = (String, String);

type Modules<'a> = BTreeMap<Path, Module<'a>>;

/// A file, its definitions left out.
struct Module<'a> {
    path: Path,
    source: &'a Source,
    /// Paths from the root of the crate that the file names.
    needs: BTreeSet<Path>,
    /// What it imports or hands on: a name, and the path that it stands for.
    names: BTreeMap<String, Path>,
    /// Methods that it defines, and those that they call on themselves.
    defines: BTreeSet<Method>,
    calls: BTreeSet<Method>,
    /// The type whose methods are read.
    own: Option<String>,
}

/// The module that a file in `src` is.
fn module_path(path: &str) -> Path {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let root = ["lib", "main", "mod"].contains(&path);
    path.split('/').filter(|_| !root).map(str::to_owned).collect()
}

impl<'a> Module<'a> {
    fn of(path: Path, source: &'a Source, file: &syn::File) -> Self {
        let mut module = Self {
            path,
            source,
            needs: BTreeSet::new(),
            names: BTreeMap::new(),
            defines: BTreeSet::new(),
            calls: BTreeSet::new(),
            own: None,
        };
        module.visit_file(file);
        module
    }

    /// The path from the root of the crate, where it begins in the crate.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let mut base = self.path.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            _ => {}
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The paths of a `use`, each with the name that it is known by.
    fn imports(prefix: &mut Path, tree: &UseTree, found: &mut Vec<(String, Path)>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                Self::imports(prefix, &path.tree, found);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| Self::imports(prefix, tree, found)),
            UseTree::Name(name) if name.ident == "self" => {
                found.push((prefix.last().cloned().unwrap_or_default(), prefix.clone()));
            }
            UseTree::Name(name) => {
                let path = prefix.iter().cloned().chain([name.ident.to_string()]).collect();
                found.push((name.ident.to_string(), path));
            }
            UseTree::Rename(name) => {
                let path = prefix.iter().cloned().chain([name.ident.to_string()]).collect();
                found.push((name.rename.to_string(), path));
            }
            UseTree::Glob(_) => found.push((String::from("*"), prefix.clone())),
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(test)
}

impl<'ast> Visit<'ast> for Module<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(module) if is_for_tests(&module.attrs) => {}
            Item::Use(import) if is_for_tests(&import.attrs) => {}
            Item::Use(import) => {
                let mut found = Vec::new();
                Self::imports(&mut Vec::new(), &import.tree, &mut found);
                let public = !matches!(import.vis, syn::Visibility::Inherited);
                for (name, path) in found {
                    let Some(path) = self.absolute(&path) else { continue };
                    if !public {
                        self.needs.insert(path.clone());
                    }
                    self.names.insert(name, path);
                }
            }
            item => syn::visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let own = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let before = std::mem::replace(&mut self.own, own);
        // What a trait asks for is defined once for each trait.
        if let (None, Some(own)) = (&item.trait_, &self.own) {
            let names = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                _ => None,
            });
            self.defines.extend(names.map(|name| (own.clone(), name)));
        }
        syn::visit::visit_item_impl(self, item);
        self.own = before;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let (syn::Expr::Path(receiver), Some(own)) = (&*call.receiver, &self.own)
            && receiver.path.is_ident("self")
        {
            self.calls.insert((own.clone(), call.method.to_string()));
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let parts: Path = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.needs.extend(self.absolute(&parts));
        }
        syn::visit::visit_path(self, path);
    }

    /// Most macros take expressions, and what these name counts.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let list = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        for expression in call.parse_body_with(list).into_iter().flatten() {
            self.visit_expr(&expression);
        }
        syn::visit::visit_macro(self, call);
    }
}

/// The module that defines what a path names, and the first name behind the module.
fn home(modules: &Modules<'_>, path: &[String]) -> Option<(Path, String)> {
    let depth = |path: &[String]| {
        (0..=path.len())
            .rev()
            .find(|&depth| modules.contains_key(&path[..depth]))
    };
    let mut path = path.to_vec();
    // A name may be handed on several times.
    for _ in 0..8 {
        let module = &path[..depth(&path)?];
        // Where the module itself is named, what is used of it is a path of its own.
        let name = path.get(module.len())?;
        match modules[module].names.get(name) {
            // A path that stays in the module is one of another crate, or of a type.
            Some(next) if next[..depth(next)?] != *module => {
                path = next.iter().chain(&path[module.len() + 1..]).cloned().collect();
            }
            _ => return Some((module.to_vec(), name.clone())),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| source(path, text)).collect();
        circles(&sources, &[("passes/b/src/x.rs", "a reason")])
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn files_that_need_each_other_are_found() {
        let files = [
            ("passes/a/src/lib.rs", "mod x; mod y; pub use x::X;"),
            ("passes/a/src/x.rs", "use crate::y::Y; pub struct X(Y);"),
            ("passes/a/src/y.rs", "pub struct Y; fn f(_: &crate::X) {}"),
        ];
        assert_eq!(
            found(&files),
            ["a circle of files: passes/a/src/x.rs needs `Y` of passes/a/src/y.rs; \
              passes/a/src/y.rs needs `X` of passes/a/src/x.rs"]
        );
    }

    #[test]
    fn tests_and_what_is_handed_on_make_no_circle() {
        let files = [
            ("passes/a/src/lib.rs", "mod x; mod y; pub use x::X; pub use y::Y;"),
            (
                "passes/a/src/x.rs",
                "pub struct X; #[cfg(test)] mod tests { use crate::Y; }",
            ),
            ("passes/a/src/y.rs", "use crate::X; pub struct Y(X);"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn names_behind_a_module_and_in_macros_count() {
        let files = [
            ("passes/a/src/lib.rs", "mod x; mod y;"),
            ("passes/a/src/x.rs", "use crate::y; pub fn f() { y::g(); }"),
            ("passes/a/src/y.rs", "pub fn g() { println!(\"{}\", crate::x::f()); }"),
        ];
        assert_eq!(found(&files).len(), 1);
    }

    #[test]
    fn methods_that_a_type_calls_on_itself_count() {
        let files = [
            ("passes/a/src/lib.rs", "mod x; mod y; pub struct X;"),
            (
                "passes/a/src/x.rs",
                "use crate::X; impl X { fn f(&self) { self.g(); } }",
            ),
            (
                "passes/a/src/y.rs",
                "use crate::X; impl X { fn g(&self, other: &X) { self.f(); } }",
            ),
        ];
        assert_eq!(
            found(&files),
            [
                "a circle of files: passes/a/src/x.rs needs `X::g` of passes/a/src/y.rs; \
              passes/a/src/y.rs needs `X::f` of passes/a/src/x.rs"
            ]
        );
        let others = files.map(|(path, text)| (path.to_owned(), text.replace("self.f()", "other.f()")));
        assert!(found(&others.each_ref().map(|(path, text)| (path.as_str(), text.as_str()))).is_empty());
        let allowed = files.map(|(path, text)| (path.replace("/a/", "/b/"), text));
        assert!(found(&allowed.each_ref().map(|(path, text)| (path.as_str(), *text))).is_empty());
    }

    #[test]
    fn a_module_and_its_parts_may_make_one() {
        let files = [
            ("passes/a/src/lib.rs", "mod x;"),
            ("passes/a/src/x/mod.rs", "mod y; pub struct X; fn f() { y::g(); }"),
            ("passes/a/src/x/y.rs", "use super::X; pub fn g() {}"),
        ];
        assert_eq!(found(&files).len(), 1);
    }
}
