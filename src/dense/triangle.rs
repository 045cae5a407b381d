use super::DenseLayout;
use super::product::Product;
use crate::program::prelude::*;

/// Rows of a block. An element of a matrix whose row and column are multiples of it begins at a multiple of 256 bytes,
/// whatever the leading dimension, so that blocks can be bound.
pub(super) const BLOCK: usize = 64;

/// How a square matrix A and the other factor B, m x n, are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Triangle {
    /// A stands on the right of B.
    pub(crate) right: bool,
    pub(crate) upper: bool,
    pub(crate) trans: bool,
    pub(crate) unit: bool,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) lda: Option<usize>,
    pub(crate) ldb: Option<usize>,
    /// Of a result apart from B.
    pub(crate) ldc: Option<usize>,
}

impl Triangle {
    pub(crate) fn new(m: usize, n: usize) -> Self {
        Self { m, n, ..Self::default() }
    }

    pub(crate) fn side(&self) -> usize {
        if self.right { self.n } else { self.m }
    }

    /// The rows (columns) of B that A is applied to one by one.
    pub(crate) fn others(&self) -> usize {
        if self.right { self.m } else { self.n }
    }

    pub(crate) fn layout_a(&self) -> DenseLayout {
        let n = self.side();
        DenseLayout { rows: n, cols: n, ld: self.lda.unwrap_or(n) }
    }

    pub(crate) fn layout_b(&self) -> DenseLayout {
        DenseLayout { rows: self.m, cols: self.n, ld: self.ldb.unwrap_or(self.n) }
    }

    pub(crate) fn layout_c(&self) -> DenseLayout {
        DenseLayout { ld: self.ldc.unwrap_or(self.n), ..self.layout_b() }
    }

    /// Where element (i, j) of op(A) is stored, if it is.
    pub(crate) fn at(&self, i: usize, j: usize) -> Option<usize> {
        let [i, j] = if self.trans { [j, i] } else { [i, j] };
        let stored = if self.upper { i <= j } else { i >= j };
        stored.then(|| i * self.layout_a().ld + j)
    }

    /// Says if the first rows (columns) of B reach the others, rather than the last ones: op(A) is lower and on the
    /// left, or upper and on the right.
    pub(super) fn forward(&self) -> bool {
        self.upper ^ self.trans ^ self.right ^ true
    }

    /// Elements from one row to the next that A is applied to, and from one of the other kind, with rows `ld` apart.
    pub(super) fn strides(&self, ld: usize) -> [u32; 2] {
        if self.right { [1, ld as u32] } else { [ld as u32, 1] }
    }

    /// The first byte of the block number `block` of rows that A is applied to.
    pub(super) fn place(&self, block: usize, ld: usize) -> u64 {
        4 * (block * BLOCK) as u64 * u64::from(self.strides(ld)[0])
    }

    pub(super) fn rows(&self, [begin, end]: [usize; 2]) -> usize {
        self.side().min(end * BLOCK) - begin * BLOCK
    }

    /// Cuts a range of blocks in two: the half that reaches the other, and the other. `None` for one block.
    pub(super) fn halves(&self, [begin, end]: [usize; 2]) -> Option<[[usize; 2]; 2]> {
        let count = end - begin;
        let middle = begin + count.next_power_of_two() / 2;
        let [low, high] = [[begin, middle], [middle, end]];
        (count > 1).then_some(if self.forward() { [low, high] } else { [high, low] })
    }

    /// Adds the product of A's block that leads from some rows of `x` to others of `c`, both with leading dimensions.
    pub(super) fn append_share(
        &self, program: &mut Program, [from, to]: [[usize; 2]; 2], [(x, ldx), (c, ldc)]: [(Resource, usize); 2],
        [alpha, beta]: [f32; 2], (profile, shared): (&DeviceProfile, &mut Vec<usize>),
    ) -> Result<()> {
        let lda = self.layout_a().ld;
        let [row, column] = if self.right ^ self.trans { [from[0], to[0]] } else { [to[0], from[0]] };
        let a = (Resource::Operand(0), 4 * BLOCK as u64 * (row * lda + column) as u64);
        let x = (x, self.place(from[0], ldx));
        let c = (c, self.place(to[0], ldc));
        let (k, rows, others) = (self.rows(from), self.rows(to), self.others());
        let ([m, n], [first, second], [ld_first, ld_second]) = match self.right {
            true => ([others, rows], [x, a], [ldx, lda]),
            false => ([rows, others], [a, x], [lda, ldx]),
        };
        let product = Product {
            alpha,
            beta,
            trans_a: self.trans && !self.right,
            trans_b: self.trans && self.right,
            lda: Some(ld_first),
            ldb: Some(ld_second),
            ldc: Some(ldc),
            ..Product::new(m, n, k)
        };
        program.append_at(product.lower(DType::F32, profile)?, &[first, second, c], shared);
        Ok(())
    }

    /// The operands `a` and `b`, which is updated, or `a`, `b` and `c`, which is written or updated; all checked.
    pub(super) fn operands(&self, op: &str, c: Option<Access>, profile: &DeviceProfile) -> Result<Vec<Operand>> {
        let of = |name, layout: DenseLayout, access| {
            let len = layout.span(op, name)?;
            elements(op, name, &[layout.rows, layout.ld])?;
            Ok(Operand { name, dtype: DType::F32, len, access })
        };
        let mut operands = vec![of("a", self.layout_a(), Access::Read)?];
        match c {
            None => operands.push(of("b", self.layout_b(), Access::ReadWrite)?),
            Some(access) => {
                operands.push(of("b", self.layout_b(), Access::Read)?);
                operands.push(of("c", self.layout_c(), access)?);
            }
        }
        profile.check_bindings(op, &operands, "take blocks in separate calls")?;
        Ok(operands)
    }

    /// Reads A, B and how they are read.
    pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(Self, [crate::array::HostArray; 2])> {
        let (op, settings) = (asked.name(), asked.settings());
        let right = settings.choice(SIDE.name)? == "right";
        let (a, [side, columns]) = asked.array("a")?;
        asked.check_type(&a)?;
        if side != columns {
            return Err(err!(Shape, "{op}: a is {a}; it must be square"));
        }
        let (b, [m, n]) = asked.free_of("b", if right { [33, side] } else { [side, 33] }, a.dtype())?;
        let triangle = Self {
            right,
            upper: asked_upper(op, settings)?,
            trans: settings.has(TRANS.name),
            unit: settings.has(UNIT.name),
            ..Self::new(m, n)
        };
        if triangle.side() != side {
            let (extent, side_name) = if right { ("columns", "right") } else { ("rows", "left") };
            return Err(err!(Shape, "{op}: b is {b}; with a ({a}) on the {side_name} it must have {side} {extent}"));
        }
        Ok((triangle, [a, b]))
    }
}

pub(super) fn asked_upper(op: &str, settings: &Settings) -> Result<bool> {
    let [lower, upper] = [LOWER, UPPER].map(|option| settings.has(option.name));
    if lower && upper {
        return Err(err!(InvalidArgument, "{op}: both --lower and --upper are given; give one of them"));
    }
    Ok(upper)
}

pub(super) const SIDE: Setting = Setting::word("side", || vec!["left", "right"]);
pub(super) const LOWER: Setting = Setting::flag("lower");
pub(super) const UPPER: Setting = Setting::flag("upper");
pub(super) const TRANS: Setting = Setting::flag("trans");
pub(super) const UNIT: Setting = Setting::flag("unit");

/// Writes builder methods of a descriptor with a `triangle`.
macro_rules! triangle_builders {
    ($($method:ident),*) => {
        $($crate::dense::triangle::triangle_builders!(@ $method);)*
    };
    (@ right) => {
        /// Takes A on the right of B; on the left by default.
        #[must_use]
        pub fn right(mut self) -> Self {
            self.triangle.right = true;
            self
        }
    };
    (@ upper) => {
        /// Reads the upper triangle of A; the lower one by default.
        #[must_use]
        pub fn upper(mut self) -> Self {
            self.triangle.upper = true;
            self
        }
    };
    (@ trans) => {
        /// Takes the transpose of A.
        #[must_use]
        pub fn trans(mut self) -> Self {
            self.triangle.trans = true;
            self
        }
    };
    (@ unit) => {
        /// Takes 1 for the diagonal of A, which is then not read.
        #[must_use]
        pub fn unit(mut self) -> Self {
            self.triangle.unit = true;
            self
        }
    };
    (@ lda) => {
        /// Sets the elements from one row of `a` to the next; the row length by default.
        #[must_use]
        pub fn lda(mut self, lda: usize) -> Self {
            self.triangle.lda = Some(lda);
            self
        }
    };
    (@ ldb) => {
        /// Sets the elements from one row of `b` to the next; n by default.
        #[must_use]
        pub fn ldb(mut self, ldb: usize) -> Self {
            self.triangle.ldb = Some(ldb);
            self
        }
    };
    (@ ldc) => {
        /// Sets the elements from one row of `c` to the next; n by default.
        #[must_use]
        pub fn ldc(mut self, ldc: usize) -> Self {
            self.triangle.ldc = Some(ldc);
            self
        }
    };
}
pub(super) use triangle_builders;
