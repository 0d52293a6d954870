//! The core's modules depend on each other in one direction, and on the standard library only in tests.
//!
//! `stream → model → ops → kernels → host`, read from the sources themselves: an import against an arrow fails here.

use std::path::{Path, PathBuf};
use std::{fs, iter};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Macro, UseTree};

/// What each top-level module may use besides itself.
const MAY_USE: [(&str, &[&str]); 13] = [
    ("error", &[]),
    ("host", &[]),
    ("config", &[]),
    ("kernels", &["host"]),
    ("ops", &["kernels", "config"]),
    ("checkpoint", &["host", "config", "kernels"]),
    ("model", &["ops", "kernels", "host", "config", "checkpoint::names"]),
    ("stream", &["model", "kernels", "host", "config", "checkpoint"]),
    ("tokenizer", &["host"]),
    ("chat", &["tokenizer"]),
    ("sample", &["ops", "kernels"]),
    ("report", &["kernels", "sample"]),
    ("generate", &["model", "ops", "report", "sample"]),
];

/// What belongs to the crate as a whole.
const OF_ALL: [&str; 3] = ["error", "Error", "Result"];

/// The modules of a crate, read one after the other as their parents declare them.
#[derive(Default)]
struct Reader {
    /// The module that is being read, from the crate's root on.
    module: Vec<String>,
    /// Files of modules that were declared and not read yet.
    declared: Vec<Vec<String>>,
    faults: Vec<String>,
}

impl Reader {
    /// Notes the faults of a module's source text.
    fn read(&mut self, module: &[String], source: &str) {
        self.module = module.to_vec();
        self.visit_file(&syn::parse_file(source).unwrap());
    }

    /// Judges a path as it is written in the current module.
    fn judge(&mut self, written: &[String]) {
        let first = written.first().map_or("", String::as_str);
        let up = written.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match first {
            "std" => {
                self.faults.push(format!("{} uses std outside tests", self.module.join("::")));
                return;
            }
            "crate" => (&[][..], &written[1..]),
            "self" => (&self.module[..], &written[1..]),
            "super" => (&self.module[..self.module.len() - up], &written[up..]),
            _ => return,
        };
        self.judge_absolute(&[base, rest].concat());
    }

    fn judge_absolute(&mut self, used: &[String]) {
        let Some(layer) = self.module.first() else { return };
        let used = used.join("::");
        let is_in = |module: &str| used == module || used.starts_with(&format!("{module}::"));
        let Some((_, may_use)) = MAY_USE.iter().find(|(module, _)| module == layer) else {
            self.faults.push(format!("{layer} is not in the table of layers"));
            return;
        };
        if !may_use.iter().chain(&OF_ALL).any(|module| is_in(module)) && !is_in(layer) {
            self.faults.push(format!("{} may not use {used}", self.module.join("::")));
        }
    }

    /// Judges every path of a use tree that stands after `prefix`.
    fn judge_tree(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |name: String| prefix.iter().cloned().chain(iter::once(name)).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.judge_tree(&with(path.ident.to_string()), &path.tree),
            UseTree::Name(name) => self.judge(&with(name.ident.to_string())),
            UseTree::Rename(rename) => self.judge(&with(rename.ident.to_string())),
            UseTree::Glob(_) => self.judge(prefix),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.judge_tree(prefix, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_only) {
            return;
        }
        match item {
            Item::Mod(module) => {
                self.module.push(module.ident.to_string());
                match module.content {
                    None => self.declared.push(self.module.clone()),
                    Some(_) => visit::visit_item(self, item),
                }
                self.module.pop();
            }
            Item::ExternCrate(linked) => self.judge(&[linked.ident.to_string()]),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.judge_tree(&[], &item.tree);
    }

    /// `pub(crate)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.judge(&written);
        visit::visit_path(self, path);
    }

    /// The arguments of a macro are only tokens: paths are words with `::` between them.
    fn visit_macro(&mut self, macro_: &'ast Macro) {
        let tokens = macro_.tokens.to_string();
        for path in tokens.replace(" :: ", "::").split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let written: Vec<String> = path.split("::").map(str::to_string).collect();
            if written.len() > 1 {
                self.judge(&written);
            }
        }
        visit::visit_macro(self, macro_);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test_only(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|option| option == "test")
}

/// The file of a module: `a/b.rs` or `a/b/mod.rs`.
fn file_of(root: &Path, module: &[String]) -> PathBuf {
    let folder = module.iter().fold(root.to_path_buf(), |path, part| path.join(part));
    let file = folder.with_extension("rs");
    if file.exists() { file } else { folder.join("mod.rs") }
}

#[test]
fn imports_follow_the_arrows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut reader = Reader::default();
    reader.read(&[], &fs::read_to_string(root.join("lib.rs")).unwrap());
    let mut files = 1;
    while let Some(module) = reader.declared.pop() {
        reader.read(&module, &fs::read_to_string(file_of(&root, &module)).unwrap());
        files += 1;
    }
    assert!(files > 40, "only {files} files were found");
    assert!(reader.faults.is_empty(), "{:#?}", reader.faults);
}

/// The faults of one source text as the module `ops::norm`.
fn faults_in_ops(source: &str) -> Vec<String> {
    let mut reader = Reader::default();
    reader.read(&["ops".into(), "norm".into()], source);
    reader.faults
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    for source in [
        "use crate::model::Model;",
        "use crate::{Error, kernels::{Kernels, math}, model::Model as M};",
        "use super::super::model::Model;",
        "fn f() { let m = crate::model::Model::load(); }",
        "fn f(m: &super::super::model::Model) {}",
        "fn f() { assert!(crate::model::Model::load()); }",
        "mod inner { pub use super::super::super::model::Model; }",
    ] {
        let found = faults_in_ops(source);
        assert!(matches!(&found[..], [one] if one.contains("may not use model::Model")), "{source}: {found:?}");
    }
    assert_eq!(faults_in_ops("use std::vec::Vec;"), ["ops::norm uses std outside tests"]);
    assert_eq!(faults_in_ops("extern crate std;"), ["ops::norm uses std outside tests"]);
}

#[test]
fn what_is_allowed_is_not_a_fault() {
    for source in [
        "use super::softmax::softmax; use crate::kernels::{Kernels, math}; use alloc::vec::Vec; use core::fmt;",
        "#[cfg(test)] mod tests { use std::vec; use crate::model::Model; }",
        "/// Not crate::model::Model, nor std::vec.\nfn f() -> crate::Result<()> { Err(crate::Error::BrokenState) }",
    ] {
        assert_eq!(faults_in_ops(source), [""; 0], "{source}");
    }
}
