//! What the formulas of [`analysis`](crate::analysis) say of a program, family by family.

use crate::analysis::{
    Axis, brent_kung_operations, brent_kung_steps, divergence, kogge_stone_operations, reduction_operations,
    segments,
};
use crate::program::{Dispatch, Kernel, Program};
use crate::shader::Interface;
use std::fmt;

/// A number that a formula of [`analysis`](crate::analysis) gives for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What it is, in a few words.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Of what, or in what unit.
    pub of: String,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, of } = self;
        let whole = value.fract() == 0.0;
        let decimals = if whole { 0 } else { 2 };
        write!(f, "{name} {value:.decimals$} ({of})")
    }
}

/// Bytes that memory moves at once.
const SEGMENT: u64 = 128;

/// A program under the formulas.
struct Subject<'a> {
    program: &'a Program,
    interfaces: &'a [&'a Interface],
    /// Invocations of a subgroup.
    subgroup: u32,
}

/// What is known of the program beyond its cost; of most ops nothing but the bytes that they ask for.
pub(super) fn facts(program: &Program, interfaces: &[&Interface], subgroup: u32) -> Vec<Fact> {
    let subject = Subject { program, interfaces, subgroup };
    let mut facts: Vec<_> = subject.asked().into_iter().collect();
    facts.extend(
        match program.op {
            "gemm" => subject.product(),
            "conv1d" | "conv2d" | "conv3d" => subject.stencil(),
            "reduce" => subject.reduction(),
            "scan" | "segmented-scan" => subject.scan(),
            "histogram" => subject.histogram(),
            "transpose" => subject.transpose(),
            _ => None,
        }
        .unwrap_or_default(),
    );
    facts
}

fn fact(name: &'static str, value: f64, of: impl Into<String>) -> Fact {
    Fact { name, value, of: of.into() }
}

impl Subject<'_> {
    /// The kernel with this entry point, and what its workgroups are.
    fn kernel(&self, entry: &str) -> Option<(&Kernel, &Interface)> {
        let at = self.program.kernels.iter().position(|k| k.entry == entry)?;
        Some((&self.program.kernels[at], self.interfaces.get(at)?))
    }

    /// A parameter of the first dispatch that has it.
    fn param(&self, name: &str) -> Option<u64> {
        self.program.dispatches.iter().find_map(|d| d.param(name)).map(u64::from)
    }

    fn element_bytes(&self) -> u64 {
        self.program.operands.first().map_or(4, |o| o.dtype.size() as u64)
    }

    /// Segments that a subgroup touches whose lanes access these elements.
    fn transactions(&self, name: &'static str, element_of: impl Fn(u64) -> u64) -> Fact {
        let bytes = self.element_bytes();
        let addresses = (0..u64::from(self.subgroup)).map(|lane| element_of(lane) * bytes);
        fact(name, segments(addresses, bytes, SEGMENT) as f64, self.of_accesses())
    }

    fn of_accesses(&self) -> String {
        format!("segments of {SEGMENT} bytes for an access of {} invocations", self.subgroup)
    }

    fn asked(&self) -> Option<Fact> {
        let Program { cost, traffic, .. } = self.program;
        let times = (*traffic)? / cost.bytes;
        times
            .is_finite()
            .then(|| fact("asked", times, "times the bytes at the least, of memory and its caches"))
    }

    /// Elements of A and B that are loaded, against those of the definition.
    fn product(&self) -> Option<Vec<Fact>> {
        let [m, n, k] = ["m", "n", "k"].map(|name| self.param(name));
        let (m, n, k) = (m?, n?, k?);
        let once = (m * k + k * n) as f64;
        let loaded = (self.program.traffic? - self.program.cost.bytes) / self.element_bytes() as f64 + once;
        let mut facts = vec![fact("reuse", 2.0 * (m * n * k) as f64 / loaded, "uses of an element loaded")];
        // How lanes lie in a tile of C, where each loads for itself.
        let (width, spec) = match self.program.variant {
            "naive" => self.kernel("gemm_naive").map(|(k, i)| (u64::from(i.workgroup_size[0]), &k.spec))?,
            "register-direct" => self.kernel("gemm_register_direct").map(|(k, _)| (1, &k.spec))?,
            _ => return Some(facts),
        };
        let trans_a = spec.is_set("TRANS_A");
        let lda = self.param("lda")?;
        facts.push(self.transactions("loads of A", |lane| {
            let row = (lane / width).min(m - 1);
            if trans_a { row } else { row * lda }
        }));
        if self.program.variant == "naive" {
            let (trans_b, ldb) = (spec.is_set("TRANS_B"), self.param("ldb")?);
            facts.push(self.transactions("loads of B", |lane| {
                let column = (lane % width).min(n - 1);
                if trans_b { column * ldb } else { column }
            }));
        }
        Some(facts)
    }

    fn stencil(&self) -> Option<Vec<Fact>> {
        let spec = &self.program.kernels.first()?.spec;
        let filter = ["FILTER_X", "FILTER_Y", "FILTER_Z"].map(|name| spec.number(name));
        let [x, y, z] = [filter[0]?, filter[1]?, filter[2]?];
        let taps = u64::from(x) * u64::from(y) * u64::from(z);
        let [input, output] = [0, 1].map(|i| self.program.operands.get(i).map_or(0.0, |o| o.bytes() as f64));
        let loaded = (self.program.traffic? - output) / input;
        let mut facts = vec![fact("reuse", taps as f64 / loaded, "uses of an element loaded")];
        if self.program.variant == "strategy2" {
            // Invocations are counted over the tile with its halo, and those of the tile compute.
            let tile = ["TILE_X", "TILE_Y", "TILE_Z"].map(|name| spec.number(name));
            let tile = [tile[0]?, tile[1]?, tile[2]?];
            let block = [tile[0] + x - 1, tile[1] + y - 1, tile[2] + z - 1];
            let inside = |[x, y, z]: [u32; 3]| u32::from(x < tile[0] && y < tile[1] && z < tile[2]);
            let d = divergence([1; 3], block, self.subgroup, inside);
            facts.push(fact(
                "divergent",
                d.divergent as f64,
                format!("of {} subgroups that compute", d.warps),
            ));
            let axes: Vec<_> =
                [0, 1, 2].map(|i| Axis::inside(tile[i].into(), [x, y, z][i].into())).into_iter().collect();
            let busy = axes.iter().map(|a| a.tile).product::<u64>() as f64;
            let all = axes.iter().map(Axis::loads).product::<u64>() as f64;
            facts.push(fact("computing", 100.0 * busy / all, "% of invocations"));
        }
        Some(facts)
    }

    /// Of the trees: how many subgroups run both sides of the branch, over all steps.
    fn reduction(&self) -> Option<Vec<Fact>> {
        let n = self.program.operands.first()?.len as u64;
        let rows = self.program.operands.get(1)?.len as u64;
        let mut facts =
            vec![fact("joins", (rows * reduction_operations(n.checked_div(rows)?)) as f64, "at the least")];
        let Some((_, interface)) = self.kernel("reduce_tiles") else { return Some(facts) };
        let threads = interface.workgroup_size[0];
        let steps = threads.checked_ilog2()?;
        let divergent = |works: &dyn Fn(u32, u32) -> bool| {
            let of_step =
                |i| divergence([1; 3], [threads, 1, 1], self.subgroup, |[t, ..]| u32::from(works(t, i)));
            (0..steps).map(|i| of_step(i).divergent).sum::<u64>() as f64
        };
        let of =
            format!("of {} subgroups, over {steps} steps of a tree", threads.div_ceil(self.subgroup) * steps);
        match self.program.variant {
            "interleaved" => facts.push(fact("divergent", divergent(&|t, i| t % (2 << i) == 0), of)),
            "sequential" | "shared" => {
                facts.push(fact("divergent", divergent(&|t, i| t < threads >> (i + 1)), of));
            }
            _ => {}
        }
        Some(facts)
    }

    /// Of the trees: joins for a tile, against those of one after the other.
    fn scan(&self) -> Option<Vec<Fact>> {
        let (_, interface) = self.kernel("scan_tiles")?;
        let n = u64::from(interface.workgroup_size[0]);
        let (joins, steps): (u64, u64) = match self.program.variant {
            "kogge-stone" | "kogge-stone-double" => (kogge_stone_operations(n), n.checked_ilog2()?.into()),
            "brent-kung" => (brent_kung_operations(n), brent_kung_steps(n)),
            _ => return None,
        };
        let of = format!("for a tile of {n} words; one after the other it is {}", reduction_operations(n));
        Some(vec![
            fact("joins", joins as f64, of),
            fact("steps", steps as f64, "of the tree, one after the other"),
        ])
    }

    fn histogram(&self) -> Option<Vec<Fact>> {
        let (_, interface) = self.kernel("count_elements")?;
        // Before it the counts are cleared.
        let of_counting = |d: &&Dispatch| self.program.kernels[d.kernel].entry == "count_elements";
        let counting = self.program.dispatches.iter().find(of_counting)?;
        let (n, parts) = (u64::from(counting.param("n")?), u64::from(counting.param("parts")?));
        let share = n.div_ceil((parts * u64::from(interface.workgroup_size[0])).max(1));
        let apart = if self.program.variant == "global-contiguous" { share } else { 1 };
        Some(vec![self.transactions("loads", |lane| lane * apart)])
    }

    fn transpose(&self) -> Option<Vec<Fact>> {
        let (m, n) = (self.param("m")?, self.param("n")?);
        match self.program.variant {
            "naive" if self.element_bytes() >= 4 => Some(vec![
                self.transactions("loads", |lane| lane % m * n + lane / m),
                self.transactions("stores", |lane| lane),
            ]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::program::{DeviceProfile, Op};
    use crate::shader::Target;
    use crate::{Conv2d, Gemm, Histogram, Map, MapFn, Reduce, Scan, Sum, Transpose};

    /// Names and numbers of what is known of the op.
    fn of<T: Element>(op: &impl Op<T>) -> Vec<(&'static str, f64)> {
        let program = op.lower(&DeviceProfile::h100()).unwrap();
        let modules = program.kernels.iter().map(|k| k.expand(Target::Naga).unwrap().validate().unwrap());
        let modules: Vec<_> = modules.collect();
        let interfaces: Vec<_> =
            program.kernels.iter().zip(&modules).map(|(k, m)| m.interface(k.entry).unwrap()).collect();
        let facts = facts(&program, &interfaces.iter().collect::<Vec<_>>(), 32);
        facts.into_iter().map(|f| (f.name, f.value)).collect()
    }

    #[test]
    fn products_reuse_by_tiles() {
        let gemm = |variant| Gemm::new(256, 256, 256).variant(variant);
        let reuse = |op: &Gemm| of::<f32>(op).into_iter().find(|(name, _)| *name == "reuse").unwrap().1;
        assert_eq!(reuse(&gemm("naive")), 1.0);
        assert_eq!(reuse(&gemm("tiled").tile(16, 16, 16)), 16.0);
        assert_eq!(reuse(&gemm("coarsened").tile(16, 32, 16).thread_tile(1, 2)), 2.0 * 256.0 / 24.0);
        let loads = |op: &Gemm| {
            of::<f32>(op).into_iter().filter(|(name, _)| name.starts_with("loads")).collect::<Vec<_>>()
        };
        // 16 x 16 invocations: two rows of A in a subgroup, and two times the same 16 columns of B.
        let tile = gemm("naive").tile(16, 16, 1);
        assert_eq!(loads(&tile), [("loads of A", 2.0), ("loads of B", 1.0)]);
        assert_eq!(loads(&tile.trans_a(true).trans_b(true)), [("loads of A", 1.0), ("loads of B", 16.0)]);
        assert_eq!(loads(&gemm("register-direct")), [("loads of A", 32.0)]);
        assert_eq!(loads(&gemm("tiled")), []);
    }

    #[test]
    fn trees_diverge_as_their_strides_go() {
        let divergent = |variant: &str| {
            let known = of::<f32>(&Reduce::new(Sum, 1 << 20).variant(variant));
            assert_eq!(known[0], ("joins", ((1 << 20) - 1) as f64), "{variant}");
            known.get(1).copied()
        };
        // 256 invocations are 8 subgroups of 32.
        assert_eq!(divergent("interleaved"), Some(("divergent", f64::from(8 * 5 + 4 + 2 + 1))));
        assert_eq!(divergent("sequential"), Some(("divergent", 5.0)));
        assert_eq!(divergent("coarsened"), None);
    }

    #[test]
    fn scans_work_as_their_trees_do() {
        let joins = |variant: &str| of::<u32>(&Scan::new(Sum, 10_000).variant(variant)).first().copied();
        assert_eq!(joins("kogge-stone"), Some(("joins", f64::from(256 * 8 - 255))));
        assert_eq!(joins("brent-kung"), Some(("joins", f64::from(2 * 255 - 8))));
        assert_eq!(joins("lookback"), None);
    }

    #[test]
    fn stencils_reuse_and_idle() {
        let known = |variant: &str| of::<f32>(&Conv2d::new(256, 256, [9, 9], &[1.0; 81]).variant(variant));
        let reuse = |variant| known(variant)[1];
        assert_eq!(reuse("naive"), ("reuse", 1.0));
        assert_eq!(reuse("strategy1"), ("reuse", 36.0));
        // 1024 invocations for the tile with its halo.
        let second = known("strategy2");
        assert_eq!((second[1], second[3]), (("reuse", 81.0 * 576.0 / 1024.0), ("computing", 56.25)));
        assert_eq!(second[2], ("divergent", 24.0));
    }

    #[test]
    fn neighbours_load_neighbours_or_not() {
        let histogram = |variant| of::<u32>(&Histogram::new(1 << 24, 64).variant(variant));
        assert_eq!(histogram("global-contiguous"), [("loads", 32.0)]);
        assert_eq!(histogram("global"), [("loads", 1.0)]);
        let transpose = |variant| of::<f32>(&Transpose::new(1000, 1000).variant(variant));
        assert_eq!(transpose("naive"), [("loads", 32.0), ("stores", 1.0)]);
        assert_eq!(transpose("tiled"), []);
    }

    #[test]
    fn of_other_ops_and_of_nothing_nothing_is_said() {
        assert_eq!(of::<f32>(&Map::new(MapFn::Neg, 100)), []);
        assert_eq!(of::<f32>(&Gemm::new(0, 5, 5)), []);
        assert_eq!(of::<f32>(&Gemm::new(5, 5, 0)), []);
        assert_eq!(of::<f32>(&Transpose::new(0, 7)), []);
        assert_eq!(of::<f32>(&Reduce::rows(Sum, 0, 7)), []);
        assert_eq!(of::<u32>(&Histogram::new(0, 7)).len(), 0);
    }
}
