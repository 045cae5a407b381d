//! A validated module, and its reflection.

use super::expand::Expanded;
use super::lexical::without_comments;
use super::users::TextFacts;
use super::{chain, contained, depth};
use crate::error::{Result, err};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Barrier, Block, Statement, StorageAccess, TypeInner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use xxhash_rust::xxh3::xxh3_128;

/// Maximum of 4-byte words for a thread's variables and values: those of `var<private>`, of functions, and arrays
/// and structs that an expression gives. Drivers take up to 240 bytes for each word.
pub(crate) const MAX_THREAD_WORDS: u32 = 1 << 20;

/// How a shader uses a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// `var<uniform>`.
    Uniform,
    /// `var<storage, read>`.
    Read,
    /// `var<storage, read_write>`.
    ReadWrite,
}

/// A member of a bound struct: name, byte offset, size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name in the shader.
    pub name: String,
    /// Byte offset in the struct.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// One binding of group 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingInfo {
    /// Number of the binding.
    pub index: u32,
    /// Name of the variable.
    pub name: String,
    /// How it is bound.
    pub kind: BindingKind,
    /// Minimum size in bytes of a buffer bound here.
    pub min_size: u64,
    /// The members, if the type is a struct.
    pub members: Vec<Member>,
}

/// The interface of an entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the entry point.
    pub entry: String,
    /// Threads of a workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Barriers in its text and in the functions that it calls; each call counts.
    pub barriers: u32,
    /// Those of them in loops, which may run often.
    pub barriers_in_loops: u32,
    /// Bindings of group 0 that the entry point uses, by number.
    pub bindings: Vec<BindingInfo>,
}

/// A parsed and validated module.
#[derive(Debug, Clone)]
pub struct Module {
    pub(crate) naga: naga::Module,
    info: ModuleInfo,
    name: String,
    text_hash: u128,
    has_users: bool,
    users_are_contained: bool,
}

impl Expanded {
    /// Parses and validates the text with naga, with all optional capabilities allowed.
    ///
    /// # Errors
    /// With the line of the original file, and for a user's text the line itself:
    /// [`Shader`](crate::ErrorKind::Shader) for invalid text, or for text over which naga would recurse too deeply
    /// (1000 operators in one expression, 250 `else if` in a row, or a chain of 1000 declarations that each use the
    /// next); [`TooLarge`](crate::ErrorKind::TooLarge) for more than 2^20 words (4 MiB) of variables and values of
    /// a thread.
    pub fn validate(&self) -> Result<Module> {
        // The text may be anything, and compilers have panicked on less.
        catch_unwind(AssertUnwindSafe(|| self.parse())).unwrap_or_else(|_| {
            let file = self.origin(1).0;
            Err(err!(Shader, "{file}: the WGSL compiler panicked; please report the text to naga's authors"))
        })
    }

    fn parse(&self) -> Result<Module> {
        let at = |line: Option<u32>| {
            let (file, line) = self.origin(line.unwrap_or(1));
            format!("{file}:{line}")
        };
        let (code, _) = without_comments(self.text());
        if let Some(line) = depth::too_deep(&code) {
            return Err(err!(
                Shader,
                "{}: more than {} operators in one expression, or a fourth as many `else if` in a row; naga recurses over \
                 them, and the stack would overflow: name parts of the expression by `let`, take a `switch`",
                at(Some(line)),
                depth::MAX
            ));
        }
        if let Some(line) = chain::too_long(&code) {
            return Err(err!(
                Shader,
                "{}: a chain of more than {} declarations begins here, each of which names the next; naga recurses over \
                 them, and the stack would overflow: write values and types where they are used",
                at(Some(line)),
                chain::MAX
            ));
        }
        let naga = naga::front::wgsl::parse_str(self.text()).map_err(|e| {
            let spans: Vec<_> = e.labels().filter_map(|(span, _)| span.to_range()).collect();
            self.blame(&spans, e.message())
        })?;
        let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&naga).map_err(|e| {
            // They range from the function down to the expression at fault.
            let mut spans: Vec<_> = e.spans().filter_map(|(span, _)| span.to_range()).collect();
            spans.sort_by_key(|range| range.len());
            self.blame(&spans, &with_causes(e.as_inner()))
        })?;
        self.check_thread_words(&naga, &info)?;
        let users_are_contained = contained::are_contained(&self.users, self.text(), &naga);
        let name = self.origin(self.text().lines().count() as u32).0.to_owned();
        let (text_hash, has_users) = (xxh3_128(self.text().as_bytes()), !self.users.is_empty());
        Ok(Module { naga, info, name, text_hash, has_users, users_are_contained })
    }

    /// Returns an error if a thread's variables and values exceed [`MAX_THREAD_WORDS`].
    fn check_thread_words(&self, module: &naga::Module, info: &ModuleInfo) -> Result<()> {
        let context = module.to_ctx();
        let mut words = 0u64;
        let mut add = |ty: &TypeInner, name: Option<&str>, span: naga::Span| {
            let size = u64::from(ty.size(context).div_ceil(4));
            words = words.saturating_add(size);
            if words <= u64::from(MAX_THREAD_WORDS) {
                return Ok(());
            }
            let line = span.to_range().map_or(1, |_| span.location(self.text()).line_number);
            let (file, line) = self.origin(line);
            let what = name.map_or_else(|| "a value".to_owned(), |name| format!("`{name}`"));
            Err(err!(
                TooLarge,
                "{file}:{line}: {what} of {size} words brings the variables and values of a thread to {words} words; the limit \
                 is {MAX_THREAD_WORDS}: make it smaller, or keep it in a storage buffer"
            ))
        };
        let private = module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::Private);
        for (handle, var) in private {
            let span = module.global_variables.get_span(handle);
            add(&module.types[var.ty].inner, var.name.as_deref(), span)?;
        }
        let functions = module.functions.iter().map(|(handle, f)| (f, &info[handle]));
        let points = module.entry_points.iter().enumerate();
        for (function, info) in functions.chain(points.map(|(i, p)| (&p.function, info.get_entry_point(i)))) {
            for (handle, var) in function.local_variables.iter() {
                let span = function.local_variables.get_span(handle);
                add(&module.types[var.ty].inner, var.name.as_deref(), span)?;
            }
            for (handle, _) in function.expressions.iter() {
                let ty = info[handle].ty.inner_with(&module.types);
                if matches!(ty, TypeInner::Array { .. } | TypeInner::Struct { .. }) {
                    add(ty, None, function.expressions.get_span(handle))?;
                }
            }
        }
        Ok(())
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl Module {
    /// Returns an error if the module uses a capability of `missing`.
    pub(crate) fn check_without(&self, missing: Capabilities) -> Result<()> {
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all() - missing);
        let checked = validator.validate(&self.naga);
        checked.map_err(|e| err!(Unsupported, "{}: {}", self.name, with_causes(e.as_inner()))).map(drop)
    }

    /// What compiling an entry point needs to know.
    pub(crate) fn facts(&self, entry: &str) -> Result<TextFacts> {
        Ok(TextFacts {
            interface: self.interface(entry)?,
            hash: self.text_hash,
            has_users: self.has_users,
            users_are_contained: self.users_are_contained,
        })
    }

    /// Returns whether users' fragments only compute, so that the kernel runs without runtime checks. True without
    /// users' fragments.
    pub fn users_are_contained(&self) -> bool {
        self.users_are_contained
    }

    /// Returns the module and its validation, for a naga back end.
    pub fn naga(&self) -> (&naga::Module, &ModuleInfo) {
        (&self.naga, &self.info)
    }

    /// Names of the compute entry points.
    pub fn entries(&self) -> Vec<&str> {
        self.naga.entry_points.iter().map(|e| e.name.as_str()).collect()
    }

    /// Reflects the entry point `entry`.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) if there is no such compute entry point, or if it uses anything but
    /// buffers of group 0.
    pub fn interface(&self, entry: &str) -> Result<Interface> {
        let file = &self.name;
        let index = self.naga.entry_points.iter().position(|e| e.name == entry).ok_or_else(|| {
            err!(Shader, "{file}: no entry point `{entry}`; there are: {}", self.entries().join(", "))
        })?;
        let point = &self.naga.entry_points[index];
        if point.stage != naga::ShaderStage::Compute {
            return Err(err!(Shader, "{file}: the entry point `{entry}` is not a @compute function"));
        }
        let info = self.info.get_entry_point(index);
        let gctx = self.naga.to_ctx();
        let mut bindings = Vec::new();
        let mut workgroup_bytes = 0u32;
        for (handle, var) in self.naga.global_variables.iter() {
            if info[handle].is_empty() {
                continue;
            }
            let name = var.name.clone().unwrap_or_default();
            let ty = &self.naga.types[var.ty].inner;
            let kind = match var.space {
                AddressSpace::WorkGroup => {
                    workgroup_bytes = workgroup_bytes.saturating_add(ty.size(gctx));
                    continue;
                }
                AddressSpace::Private => continue,
                AddressSpace::Uniform => BindingKind::Uniform,
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => BindingKind::ReadWrite,
                AddressSpace::Storage { .. } => BindingKind::Read,
                other => {
                    return Err(err!(Shader, "{file}: `{name}` is in {other:?}; kernels bind buffers only"));
                }
            };
            let place = var.binding.as_ref().filter(|b| b.group == 0);
            let Some(place) = place else {
                return Err(err!(Shader, "{file}: `{name}` must be bound in @group(0)"));
            };
            let members = match ty {
                TypeInner::Struct { members, .. } => members
                    .iter()
                    .map(|m| Member {
                        name: m.name.clone().unwrap_or_default(),
                        offset: m.offset,
                        size: self.naga.types[m.ty].inner.size(gctx),
                    })
                    .collect(),
                _ => Vec::new(),
            };
            let min_size = u64::from(ty.size(gctx));
            bindings.push(BindingInfo { index: place.binding, name, kind, min_size, members });
        }
        bindings.sort_by_key(|b| b.index);
        let mut of_functions: Vec<Barriers> = Vec::new();
        for (_, function) in self.naga.functions.iter() {
            // naga lists functions before their callers.
            of_functions.push(Barriers::of(&function.body, &of_functions));
        }
        let Barriers { all, in_loops } = Barriers::of(&point.function.body, &of_functions);
        Ok(Interface {
            entry: entry.to_owned(),
            workgroup_size: point.workgroup_size,
            workgroup_bytes,
            barriers: all,
            barriers_in_loops: in_loops,
            bindings,
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Barriers {
    pub(super) all: u32,
    pub(super) in_loops: u32,
}

impl Barriers {
    fn and(self, other: Self) -> Self {
        let [all, in_loops] =
            [(self.all, other.all), (self.in_loops, other.in_loops)].map(|(a, b)| a.saturating_add(b));
        Self { all, in_loops }
    }

    fn of(block: &Block, functions: &[Self]) -> Self {
        let within = |block: &Block| Self::of(block, functions);
        let of_statement = |statement: &Statement| match statement {
            // A barrier of a subgroup does not wait for the workgroup.
            Statement::ControlBarrier(kind) if *kind != Barrier::SUB_GROUP => Self { all: 1, in_loops: 0 },
            // One before it reads, and one after.
            Statement::WorkGroupUniformLoad { .. } => Self { all: 2, in_loops: 0 },
            Statement::Block(block) => within(block),
            Statement::If { accept, reject, .. } => within(accept).and(within(reject)),
            Statement::Switch { cases, .. } => {
                cases.iter().fold(Self::default(), |sum, case| sum.and(within(&case.body)))
            }
            Statement::Loop { body, continuing, .. } => {
                let all = within(body).and(within(continuing)).all;
                Self { all, in_loops: all }
            }
            Statement::Call { function, .. } => functions.get(function.index()).copied().unwrap_or_default(),
            _ => Self::default(),
        };
        block.iter().fold(Self::default(), |sum, statement| sum.and(of_statement(statement)))
    }
}

#[cfg(test)]
mod tests;
