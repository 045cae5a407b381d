//! Random kernels that use all of WGSL. They are correct by construction: the simulator matches the device bit for bit
//! and reports nothing.

use crate::support::Random;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ty {
    U,
    I,
    /// Small integers, so that nothing is rounded.
    F,
    B,
    V3,
}

const TYPES: [Ty; 5] = [Ty::U, Ty::I, Ty::F, Ty::B, Ty::V3];

impl Ty {
    fn name(self) -> &'static str {
        match self {
            Ty::U => "u32",
            Ty::I => "i32",
            Ty::F => "f32",
            Ty::B => "bool",
            Ty::V3 => "vec3<u32>",
        }
    }

    /// Expressions of this type, each after its frequency.
    fn forms(self) -> &'static str {
        match self {
            Ty::U => {
                "7 ($U $(+ - * & | ^) $U)
                 1 ($U / ($U | 1u))
                 1 ($U % ($U | 1u))
                 1 ($U << ($U & 31u))
                 1 ($U >> ($U & 31u))
                 1 u32($I)
                 1 u32($F)
                 1 u32($B)
                 1 select($U, $U, $B)
                 1 $(countOneBits countLeadingZeros countTrailingZeros reverseBits firstLeadingBit firstTrailingBit ~ abs)($U)
                 1 $(min max dot4U8Packed)($U, $U)
                 1 $V[$U % 3u]
                 1 $V.$(x y z zx.y yyz.z)
                 1 dot($V, $V)
                 1 extractBits($U, $U % 40u, $U % 40u)
                 1 insertBits($U, $U, $U % 40u, $U % 40u)
                 1 unpack4xU8($U)[$U % 4u]
                 1 pack4xU8(vec4($V, $U))
                 1 array<u32, 3>($U, $U, lane)[$U % 3u]
                 1 input[$U % 256u]
                 1 deep[id.x].inner[$U % 3u].a[$U % 3u]
                 1 kept[$U % 8u]
                 1 clamp($U, $U & 255u, 1000u)
                 1 bitcast<u32>($I)"
            }
            Ty::I => {
                "5 ($I $(+ - * & | ^) $I)
                 1 ($I / (($I & 63i) + 1i))
                 1 ($I % (($I & 63i) + 1i))
                 1 ($I >> ($U & 31u))
                 1 ($I << ($U & 31u))
                 1 i32($U)
                 1 i32($F)
                 1 select($I, $I, $B)
                 1 $(abs sign - ~ firstLeadingBit countOneBits)($I)
                 1 $(min max)($I, $I)
                 1 extractBits($I, $U % 40u, $U % 40u)
                 1 deep[id.x].inner[$U % 3u].c[$U & 1u]
                 1 dot4I8Packed($U, $U)"
            }
            Ty::F => {
                "1 f32($U & 255u)
                 1 f32($I & 127i)
                 1 f32(($U & 15u) + 1u) * 0.5
                 1 $(floor ceil trunc round abs saturate sign -)($F)
                 1 $(min max step)($F, $F)
                 1 select($F, $F, $B)
                 1 (f32($U & 255u) * f32($U & 255u) + f32($I & 31i))
                 1 unpack2x16float(pack2x16float(vec2(f32($U & 1023u), 3.0))).x
                 1 (mat2x3<f32>(1.0, 2.0, 3.0, f32($U & 15u), 5.0, 6.0) * vec2(f32($U & 15u), 2.0))[$U % 3u]"
            }
            Ty::B => {
                "2 ($U $(< <= > >= == !=) $U)
                 1 ($I $(< <= > >= == !=) $I)
                 1 ($F $(< <= > >= == !=) $F)
                 1 ($B $(&& || & | == !=) $B)
                 1 !$B
                 1 $(all any)($V < $V)
                 1 bool($U & 4u)"
            }
            Ty::V3 => {
                "1 vec3<u32>($U, $U, $U)
                 1 vec3<u32>($U)
                 2 ($V $(+ - * & | ^) $V)
                 1 ($V + $U)
                 1 $V.$(zyx xxy yzx)
                 1 select($V, $V, $V > $V)
                 1 deep[id.x].inner[$U % 3u].a
                 1 max($V, $V)"
            }
        }
    }
}

/// Shared by all programs: nested structs with padding, matrices, and functions that take pointers.
const HEAD: &str = "struct Inner { a: vec3<u32>, b: u32, c: vec2<i32> }
struct Outer { head: u32, inner: array<Inner, 3>, m: mat3x2<f32>, tail: vec3<u32> }
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<storage, read_write> deep: array<Outer>;
@group(0) @binding(3) var<storage, read_write> sums: array<atomic<u32>, 8>;
var<workgroup> wg_words: array<u32, 64>;
var<workgroup> wg_deep: array<Inner, 64>;
var<workgroup> wg_sums: array<atomic<i32>, 4>;
var<private> kept: array<u32, 8>;
var<private> pace: i32 = 3;
// Keeps expressions from being constant: constants must not overflow.
var<private> nought: u32 = 0u;
fn add_to(p: ptr<function, u32>, by: u32) -> u32 { let old = *p; *p = old * 3u + by; return old; }
fn set_inner(p: ptr<function, Inner>, at: u32, x: u32) { (*p).a[at % 3u] = x; (*p).c.y += i32(x); }
fn keep(p: ptr<private, array<u32, 8>>, x: u32) -> u32 { (*p)[x % 8u] ^= x; return (*p)[(x + 1u) % 8u]; }
";

/// A program under construction.
struct Writer<'a> {
    random: &'a mut Random,
    out: String,
    vars: Vec<(String, Ty, bool)>,
    names: usize,
    depth: usize,
    /// Remaining statements.
    fuel: usize,
    /// Whether the innermost enclosing statement is a loop or a switch.
    in_loop: bool,
    in_switch: bool,
    /// The type that `return` returns, in a function.
    result: Option<Ty>,
    functions: Vec<(String, Ty, Vec<Ty>)>,
}

impl Writer<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next() >> 8) as usize % n
    }

    /// One of these words.
    fn pick<'b>(&mut self, words: &'b str) -> &'b str {
        let words: Vec<_> = words.split(' ').collect();
        words[self.below(words.len())]
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(self.depth));
    }

    fn variable(&mut self, ty: Ty, assigned: bool) -> Option<String> {
        let fits: Vec<_> = self.vars.iter().filter(|v| v.1 == ty && (v.2 || !assigned)).collect();
        if fits.is_empty() {
            return None;
        }
        let n = fits.len();
        let names: Vec<_> = fits.into_iter().map(|v| v.0.clone()).collect();
        Some(names[self.below(n)].clone())
    }

    fn leaf(&mut self, ty: Ty) -> String {
        if self.below(4) > 0
            && let Some(name) = self.variable(ty, false)
        {
            return name;
        }
        let n = self.below(100);
        match ty {
            Ty::U => {
                let word = self.pick("0u 1u 7u 31u 255u 65537u 2147483648u 4294967295u id.x lane");
                format!("({word} + nought)")
            }
            Ty::I => {
                let word = self.pick("0i 1i -1i 9i -100i 2147483647i pace");
                format!("({word} - i32(nought))")
            }
            Ty::F => format!("({n}.0 + f32(nought))"),
            Ty::B => self.pick("(nought<1u) (nought>0u) (lane>20u) (lane%2u==0u)").into(),
            Ty::V3 => format!("vec3<u32>({n}u + nought, lane, 5u)"),
        }
    }

    fn call(&mut self, ty: Ty, depth: usize) -> Option<String> {
        let fits: Vec<_> = self.functions.iter().filter(|f| f.1 == ty).cloned().collect();
        if fits.is_empty() {
            return None;
        }
        let (name, _, arguments) = fits[self.below(fits.len())].clone();
        let arguments: Vec<_> = arguments.into_iter().map(|t| self.expr(t, depth)).collect();
        Some(format!("{name}(id, lane, {})", arguments.join(", ")))
    }

    fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.below(5) == 0 {
            return self.leaf(ty);
        }
        if self.below(8) == 0
            && let Some(call) = self.call(ty, depth - 1)
        {
            return call;
        }
        let forms = ty.forms().lines().map(|line| line.trim_start().split_once(' ').unwrap());
        let forms = forms.flat_map(|(often, form)| std::iter::repeat_n(form, often.parse().unwrap()));
        let forms: Vec<_> = forms.collect();
        let form = forms[self.below(forms.len())];
        self.fill(form, depth - 1)
    }

    /// Replaces `$(+ -)` by one of these words, and `$U` and the like by expressions of the type with this letter.
    fn fill(&mut self, form: &str, depth: usize) -> String {
        let mut form = form.to_owned();
        if let Some((before, rest)) = form.split_once("$(") {
            let (words, after) = rest.split_once(')').unwrap();
            form = format!("{before}{}{after}", self.pick(words));
        }
        let mut parts = form.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let ty = TYPES["UIFBV".find(&part[..1]).unwrap()];
            text += &self.expr(ty, depth);
            text += &part[1..];
        }
        text
    }

    fn condition(&mut self) -> String {
        self.expr(Ty::B, 2)
    }

    /// Statements in braces, with their own scope.
    fn block(&mut self, most: usize) {
        let known = self.vars.len();
        self.depth += 1;
        for _ in 0..1 + self.below(most) {
            if self.statement() {
                break;
            }
        }
        self.depth -= 1;
        self.vars.truncate(known);
    }

    /// Writes a statement; returns whether the code after it is unreachable.
    fn statement(&mut self) -> bool {
        if self.fuel == 0 {
            return false;
        }
        self.fuel -= 1;
        let ty = TYPES[self.below(5)];
        match self.below(if self.depth > 5 { 14 } else { 24 }) {
            0..=2 => {
                let (name, value, mutable) = (self.name("v"), self.expr(ty, 3), self.below(3) > 0);
                let word = if mutable { "var" } else { "let" };
                self.line(&format!("{word} {name} = {value};"));
                self.vars.push((name, ty, mutable));
            }
            3 => {
                let name = self.name("v");
                self.line(&format!("var {name}: {};", ty.name()));
                self.vars.push((name, ty, true));
            }
            4..=7 => {
                let value = self.expr(ty, 3);
                if let Some(name) = self.variable(ty, true) {
                    self.line(&format!("{name} = {value};"));
                }
            }
            8 => {
                let (value, op) = (self.expr(Ty::U, 3), self.pick("+= -= *= ^= |="));
                if let Some(name) = self.variable(Ty::U, true) {
                    self.line(&format!("{name} {op} {value};"));
                }
            }
            9 => {
                let (at, value) = (self.expr(Ty::U, 2), self.expr(Ty::U, 2));
                if let Some(name) = self.variable(Ty::V3, true) {
                    self.line(&format!("{name}[{at} % 3u] = {value};"));
                }
            }
            10 => {
                let (at, value) = (self.expr(Ty::U, 2), self.expr(Ty::U, 2));
                let (b, v3, m) = (self.expr(Ty::I, 2), self.expr(Ty::V3, 2), self.expr(Ty::U, 1));
                let text = match self.below(8) {
                    0 => format!("kept[{at} % 8u] += {value};"),
                    1 => format!("deep[id.x].inner[{at} % 3u].a[{m} % 3u] = {value};"),
                    2 => format!("deep[id.x].inner[{at} % 3u].c.y = {b};"),
                    3 => format!("deep[id.x].inner[{at} % 3u].a = {v3};"),
                    4 => format!("deep[id.x].inner[{at} % 3u] = Inner({v3}, {value}, vec2({b}));"),
                    5 => format!("deep[id.x].m[{m} % 3u][{at} & 1u] = f32({value} & 255u);"),
                    6 => format!(
                        "deep[id.x].tail = vec3<u32>((transpose(deep[id.x].m) * vec2<f32>(f32({m} & 7u), 1.0)));"
                    ),
                    _ => format!("pace ^= {b};"),
                };
                self.line(&text);
            }
            11 => {
                let value = self.expr(Ty::U, 2);
                if let Some(name) = self.variable(Ty::U, true) {
                    let got = self.name("v");
                    self.line(&format!("let {got} = add_to(&{name}, {value});"));
                    self.vars.push((got, Ty::U, false));
                }
            }
            12 => {
                let (at, value) = (self.expr(Ty::U, 2), self.expr(Ty::U, 2));
                let name = self.name("list");
                self.line(&format!("var {name} = array<Inner, 2>(deep[id.x].inner[1], deep[id.x].inner[2]);"));
                self.line(&format!("var {name}_one = {name}[{at} % 2u];"));
                self.line(&format!("set_inner(&{name}_one, {at}, {value});"));
                self.line(&format!("{{ let p = &{name}[{at} % 2u]; *p = {name}_one; (*p).b += {value}; }}"));
                self.line(&format!("deep[id.x].inner[{at} % 3u] = {name}[1];"));
                let got = self.name("v");
                self.line(&format!("let {got} = {name}[0].a + {name}_one.a.zyx + keep(&kept, {value});"));
                self.vars.push((got, Ty::V3, false));
            }
            13 => {
                let condition = self.condition();
                match self.below(4) {
                    0 if self.in_loop && !self.in_switch => {
                        self.line(&format!("if {condition} {{ continue; }}"));
                    }
                    1 if self.in_loop || self.in_switch => {
                        self.line(&format!("if {condition} {{ break; }}"));
                    }
                    2 if self.result.is_some() => {
                        let ty = self.result.unwrap_or(Ty::U);
                        let value = self.expr(ty, 2);
                        self.line(&format!("if {condition} {{ return {value}; }}"));
                    }
                    _ => {}
                }
            }
            14..=16 => {
                let condition = self.condition();
                self.line(&format!("if {condition} {{"));
                self.block(4);
                match self.below(3) {
                    0 => self.line("}"),
                    1 => {
                        self.line("} else {");
                        self.block(4);
                        self.line("}");
                    }
                    _ => {
                        let condition = self.condition();
                        self.line(&format!("}} else if {condition} {{"));
                        self.block(3);
                        self.line("} else {");
                        self.block(3);
                        self.line("}");
                    }
                }
            }
            17..=19 => self.any_loop(),
            20 | 21 => self.switch(),
            22 => {
                self.line("{");
                self.block(3);
                self.line("}");
            }
            _ => match self.result {
                Some(ty) if self.depth > 1 => {
                    let value = self.expr(ty, 2);
                    self.line(&format!("return {value};"));
                    return true;
                }
                None if self.in_loop && !self.in_switch && self.depth > 2 => {
                    let word = self.pick("break continue");
                    self.line(&format!("{word};"));
                    return true;
                }
                _ => {}
            },
        }
        false
    }

    fn any_loop(&mut self) {
        let around = (self.in_loop, self.in_switch);
        (self.in_loop, self.in_switch) = (true, false);
        let i = self.name("n");
        let (n, condition) = (1 + self.below(5), self.condition());
        match self.below(3) {
            0 => {
                self.line(&format!("for (var {i} = 0u; {i} < {n}u + lane % 3u; {i}++) {{"));
                self.vars.push((i, Ty::U, false));
                self.block(4);
                self.vars.pop();
                self.line("}");
            }
            1 => {
                self.line(&format!("var {i} = {n}u;"));
                self.line(&format!("while {i} > 0u && {condition} {{"));
                self.line(&format!("    {i} -= 1u;"));
                self.block(4);
                self.line("}");
            }
            _ => {
                self.line(&format!("var {i} = 0u;"));
                self.line("loop {");
                self.block(4);
                self.line("    continuing {");
                self.line(&format!("        {i} += 1u;"));
                let value = self.expr(Ty::U, 2);
                if let Some(name) = self.variable(Ty::U, true) {
                    self.line(&format!("        {name} ^= {value};"));
                }
                self.line(&format!("        break if {i} > {n}u || {condition};"));
                self.line("    }");
                self.line("}");
            }
        }
        (self.in_loop, self.in_switch) = around;
    }

    fn switch(&mut self) {
        let around = self.in_switch;
        let selector = self.expr(Ty::U, 2);
        self.line(&format!("switch {selector} % 6u {{"));
        self.in_switch = true;
        let default = self.below(3);
        for (number, values) in ["0u, 3u", "1u", "5u, 2u"].into_iter().enumerate() {
            let with_default = number == default && self.below(2) == 0;
            let head = if with_default { format!("case {values}, default: {{") } else { format!("case {values}: {{") };
            self.line(&head);
            self.block(3);
            self.line("}");
            if number == default && !with_default {
                self.line("default: {");
                self.block(3);
                self.line("}");
            }
        }
        self.line("}");
        self.in_switch = around;
    }

    fn function(&mut self) {
        let result = TYPES[self.below(5)];
        let name = self.name("f");
        let arguments: Vec<Ty> = (0..1 + self.below(3)).map(|_| TYPES[self.below(5)]).collect();
        let list: Vec<_> = arguments.iter().enumerate().map(|(i, t)| format!("a{i}: {}", t.name())).collect();
        // The names that leaves of expressions use.
        self.line(&format!("fn {name}_in(id: vec3<u32>, lane: u32, {}) -> {} {{", list.join(", "), result.name()));
        self.vars = arguments.iter().enumerate().map(|(i, t)| (format!("a{i}"), *t, false)).collect();
        (self.result, self.fuel, self.depth) = (Some(result), 12, 0);
        self.block(6);
        let value = self.expr(result, 2);
        self.line(&format!("    return {value};\n}}"));
        self.vars.clear();
        self.result = None;
        self.functions.push((format!("{name}_in"), result, arguments));
    }

    /// Work of the whole workgroup: barriers, subgroup operations, atomics.
    fn together(&mut self) {
        let (u, i, b) = (self.expr(Ty::U, 2), self.expr(Ty::I, 2), self.expr(Ty::B, 2));
        let (v3, got) = (self.expr(Ty::V3, 2), self.name("v"));
        match self.below(8) {
            0 => {
                self.line(&format!("wg_words[lane] = {u};\n    workgroupBarrier();"));
                self.line(&format!("let {got} = wg_words[({u}) % 64u];\n    workgroupBarrier();"));
            }
            1 => {
                self.line(&format!("wg_deep[lane] = Inner({v3}, {u}, vec2({i}, 1i));\n    workgroupBarrier();"));
                self.line(&format!(
                    "let {got} = wg_deep[63u - lane].a[lane % 3u] + wg_deep[lane ^ 1u].b;\n    workgroupBarrier();"
                ));
            }
            2 => {
                self.line("if lane < 4u { atomicStore(&wg_sums[lane], 5i); }\n    workgroupBarrier();");
                let f = self.pick("Add Sub Max Min And Or Xor");
                self.line(&format!("if {b} {{ atomic{f}(&wg_sums[{u} % 4u], {i}); }}\n    workgroupBarrier();"));
                self.line(&format!("let {got} = u32(atomicLoad(&wg_sums[lane % 4u]));\n    workgroupBarrier();"));
            }
            3 => {
                self.line(&format!("atomicAdd(&sums[{u} % 8u], {u});\n    let {got} = 1u;"));
            }
            4 => {
                self.line(&format!("wg_words[lane] = {u};"));
                self.line(&format!("let {got} = workgroupUniformLoad(&wg_words[{}u]);", self.names % 64));
            }
            5 => {
                let f = self.pick(
                    "Add Mul Max Min And Or Xor InclusiveAdd ExclusiveAdd InclusiveMul ExclusiveMul \
                     BroadcastFirst",
                );
                self.line(&format!("let {got} = subgroup{f}({u});"));
            }
            6 => {
                let f = self.pick(
                    "subgroupShuffleXor({},1u) subgroupBroadcast({},2u) quadSwapX({}) quadSwapY({}) \
                     quadSwapDiagonal({}) quadBroadcast({},3u) subgroupShuffle({},(lane+1u)%4u)",
                );
                self.line(&format!("let {got} = {};", f.replace("{}", &u)));
            }
            _ => self.line(&format!(
                "let {got} = subgroupBallot({b}).x + u32(subgroupAny({b})) + 2u * u32(subgroupAll({b}));"
            )),
        }
        self.vars.push((got, Ty::U, false));
    }
}

/// The text of a kernel `main` with 64 threads per workgroup.
pub(crate) fn program(seed: u64) -> String {
    let mut w = Writer {
        random: &mut Random::new(seed),
        out: HEAD.to_owned(),
        vars: Vec::new(),
        names: 0,
        depth: 0,
        fuel: 0,
        in_loop: false,
        in_switch: false,
        result: None,
        functions: Vec::new(),
    };
    for _ in 0..2 {
        w.function();
    }
    w.out.push_str(
        "@compute @workgroup_size(8, 4, 2)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let id = vec3<u32>(64u * group.x + lane, 0u, 0u);
    var u = input[2u * id.x];
    var i = bitcast<i32>(input[2u * id.x + 1u]);
    var f = f32(u & 255u);
    var v = vec3<u32>(u, lane, id.x);
    kept = array<u32, 8>();
    atomicAdd(&sums[lane % 8u], u);
    pace = 3;
",
    );
    w.depth = 1;
    w.vars = [("u", Ty::U), ("i", Ty::I), ("f", Ty::F), ("v", Ty::V3)].map(|(n, t)| (n.to_owned(), t, true)).to_vec();
    for _ in 0..4 {
        w.fuel = 14;
        for _ in 0..5 {
            w.statement();
        }
        if w.below(2) == 0 {
            w.together();
        } else {
            w.line("for (var turn = 0u; turn < 3u; turn++) {");
            let known = w.vars.len();
            w.vars.push(("turn".to_owned(), Ty::U, false));
            w.statement();
            w.together();
            w.line("u += turn;");
            let last = w.vars.last().map(|v| v.0.clone()).unwrap_or_default();
            w.line(&format!("v.y ^= {last};"));
            w.vars.truncate(known);
            w.line("}");
        }
    }
    let all: Vec<_> = w.vars.clone();
    w.line("var hash = u;");
    for (name, ty, _) in all {
        let word = match ty {
            Ty::U => name,
            Ty::I => format!("bitcast<u32>({name})"),
            Ty::F => format!("bitcast<u32>({name})"),
            Ty::B => format!("u32({name})"),
            Ty::V3 => format!("({name}.x + 3u * {name}.y + 7u * {name}.z)"),
        };
        w.line(&format!("hash = (hash ^ {word}) * 16777619u;"));
    }
    w.line("for (var at = 0u; at < 8u; at++) { hash = hash * 31u + kept[at]; }");
    w.line("output[id.x] = hash + bitcast<u32>(pace);");
    w.out.push_str("}\n");
    w.out
}
