use super::{Attention, AttentionBackward, CoopTile, FlashTile, KvAppend, KvType, ScoreStage};
use crate::attention::Paging;
use crate::element::fp8_code;
use crate::program::prelude::*;

pub(super) const ATTENTION_INPUTS: &[Input] = &[
    Input::new("q", "(B, H, T, D)"),
    Input::new("k", "(B, G, S, D)"),
    Input::new("v", "(B, G, S, E)"),
    Input::optional("mask", "f32 (T, S)"),
];

pub(super) const ATTENTION_OPTIONS: &[Setting] = &[
    Setting::flag("causal"),
    Setting::number("window", ""),
    Setting::number("scale", ""),
    Setting::number("softcap", ""),
    Setting::text("scores", "products/capped/masked/weights", ""),
    KV_TYPE,
    Setting::text("page", "TOKENS", ""),
    Setting::array("lengths", "u32 (B)"),
    TILE,
    Setting::flag("ahead"),
    COOP_TILE,
    Setting::flag("logsumexp"),
];

pub(super) const BACKWARD_INPUTS: &[Input] = &[
    Input::new("q", "(B, H, T, D)"),
    Input::new("k", "(B, G, S, D)"),
    Input::new("v", "(B, G, S, E)"),
    Input::new("dy", "(B, H, T, E)"),
    Input::optional("output", "as dy"),
    Input::optional("logsumexp", "f32 (B, H, T)"),
];

pub(super) const BACKWARD_OPTIONS: &[Setting] =
    &[Setting::flag("causal"), Setting::number("window", ""), Setting::number("scale", "")];

pub(super) const APPEND_INPUTS: &[Input] = &[
    Input::new("new_k", "(B, G, N, D)"),
    Input::new("new_v", "(B, G, N, E)"),
    Input::new("lengths", "u32 (B)"),
    Input::new("k", "(B, G, S, D); (pages, G, tokens, D) with table"),
    Input::new("v", "as k, of E"),
];

pub(super) const APPEND_OPTIONS: &[Setting] =
    &[KV_TYPE, Setting::array("table", "u32 (B, S / tokens)"), Setting::array("scales", "f32 (2, rows of k)")];

/// The type of keys and values. The default is that of the first input.
const KV_TYPE: Setting = Setting::text("kv-type", "f32/f16/int8/fp8", "");

fn kv_type(asked: &Asked<'_>, own: DType) -> Result<KvType> {
    let name = asked.settings().word(KV_TYPE.name).unwrap_or(own.name());
    KvType::ALL.into_iter().find(|kv| kv.name() == name).ok_or_else(|| {
        let (op, names) = (asked.name(), KvType::ALL.map(KvType::name).join(", "));
        err!(InvalidArgument, "{op}: --kv-type is {name}; it must be one of {names}")
    })
}

/// The tile of `flash`, except for `ahead`.
const TILE: Setting = Setting::text("tile", "ROWS,KEYS,LANES,THREAD-ROWS,DIMS,WEIGHTS,VALUES", "");

const COOP_TILE: Setting = Setting::text("coop-tile", "TEAMS,ROWS,KEYS", "");

fn tiled(mut op: Attention, asked: &Asked<'_>) -> Result<Attention> {
    let settings = asked.settings();
    let ahead = settings.has("ahead");
    if let Some([rows, keys, lanes, thread_rows, dims, weights, values]) = settings.given_numbers(&TILE)? {
        op = op.tile(FlashTile { rows, keys, lanes, thread_rows, dims, weights, values, ahead });
    } else if ahead {
        return Err(err!(InvalidArgument, "attention: --ahead needs --tile"));
    }
    if let Some([teams, rows, keys]) = settings.given_numbers(&COOP_TILE)? {
        op = op.coop_tile(CoopTile { teams, rows, keys });
    }
    Ok(op)
}

pub(super) fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (q, [b, h, t, d]) = asked.array("q")?;
    let dtype = q.dtype();
    let (k, [_, g, s, _]) = asked.free("k", [b, h, t, d])?;
    asked.check("k", &k, &[b, g, s, d], dtype)?;
    let (v, [.., e]) = asked.free("v", [b, g, s, d])?;
    asked.check("v", &v, &[b, g, s, e], dtype)?;
    let kv = kv_type(asked, dtype)?;
    let op = Attention::new([b, h, t, d], [g, s]).value_size(e).variant(asked.variant()).kv(kv);
    let mut op = tiled(op, asked)?;
    if settings.has("causal") {
        op = op.causal();
    }
    if let Some(window) = settings.maybe("window")? {
        op = op.window(window);
    }
    if let Some(scale) = settings.maybe("scale")? {
        op = op.scale(scale);
    }
    if let Some(cap) = settings.maybe("softcap")? {
        op = op.softcap(cap);
    }
    if let Some(stage) = settings.word("scores") {
        let found = ScoreStage::ALL.into_iter().find(|known| known.name() == stage);
        op = op.scores(found.ok_or_else(|| {
            let names = ScoreStage::ALL.map(ScoreStage::name).join(", ");
            err!(InvalidArgument, "attention: --scores is {stage}; it must be one of {names}")
        })?);
    }
    if !dtype.is_float() {
        return Err(asked.no_type(dtype));
    }
    let mut caches = [k, v];
    let mut table = None;
    if let Some(tokens) = settings.maybe::<usize>("page")? {
        if !(16..=256).contains(&tokens) {
            return Err(err!(InvalidArgument, "attention: --page is {tokens}; pages must have 16 to 256 tokens"));
        }
        let each = s.div_ceil(tokens);
        let count = b.saturating_mul(each);
        op = op.paged(Paging { tokens, pages: count });
        // Contents are laid out in pages only if they are known.
        if caches.iter().all(|cache| cache.data().is_seen()) {
            let pages = shuffled(count)?;
            for (cache, size) in caches.iter_mut().zip([d, e]) {
                *cache = in_pages(cache, [b, g, s, size], tokens, &pages)?;
            }
            table = Some(HostArray::new(&[b, each], pages)?);
        } else {
            for (cache, size) in caches.iter_mut().zip([d, e]) {
                *cache = HostArray::unseen(&[count, g, tokens, size], cache.dtype())?;
            }
            table = Some(HostArray::unseen(&[b, each], DType::U32)?);
        }
    }
    let rows = caches[0].len() / d.max(1);
    let mut operands = vec![Role::Given(q)];
    let mut scales = Vec::new();
    for (cache, size) in caches.into_iter().zip([d, e]) {
        let (codes, factors) = encode(kv, cache.data(), size);
        operands.push(Role::Given(HostArray::new(&[rows, size], codes)?));
        scales.extend(factors);
    }
    if kv.is_scaled() {
        let shape = [2, rows];
        let seen = scales.len() == 2 * rows;
        let scales = if seen { HostArray::new(&shape, scales) } else { HostArray::unseen(&shape, DType::F32) };
        operands.push(Role::Given(scales?));
    }
    operands.extend(table.map(Role::Given));
    if let Some(lengths) = settings.array("lengths") {
        asked.check("lengths", lengths, &[b], DType::U32)?;
        op = op.lengths();
        operands.push(Role::Given(lengths.clone()));
    }
    if asked.has_more() {
        operands.push(Role::Given(asked.of("mask", &[t, s], DType::F32)?));
        op = op.masked([1, 1]);
    }
    operands.push(Role::Result(vec![b, h, t, e]));
    if op.scores.is_some() {
        operands.push(Role::Result(vec![b, h, t, s]));
    }
    if settings.has("logsumexp") {
        op = op.logsumexp();
        operands.push(Role::Result(vec![b, h, t]));
    }
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

pub(super) fn make_backward(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (q, [b, h, t, d]) = asked.array("q")?;
    asked.check_type(&q)?;
    let dtype = q.dtype();
    let (k, [_, g, s, _]) = asked.free("k", [b, h, t, d])?;
    asked.check("k", &k, &[b, g, s, d], dtype)?;
    let (v, [.., e]) = asked.free("v", [b, g, s, d])?;
    asked.check("v", &v, &[b, g, s, e], dtype)?;
    let dy = asked.like("dy", &[b, h, t, e])?;
    let mut op = AttentionBackward::new([b, h, t, d], [g, s]).value_size(e).variant(asked.variant());
    if settings.has("causal") {
        op = op.causal();
    }
    if let Some(window) = settings.maybe("window")? {
        op = op.window(window);
    }
    if let Some(scale) = settings.maybe("scale")? {
        op = op.scale(scale);
    }
    let results = [[b, h, t, d], [b, g, s, d], [b, g, s, e]].map(|shape| Role::Result(shape.into()));
    let mut operands = Vec::from([q, k, v, dy].map(Role::Given));
    if asked.has_more() {
        op = op.saved();
        operands.push(Role::Given(asked.like("output", &[b, h, t, e])?));
        operands.push(Role::Given(asked.of("logsumexp", &[b, h, t], DType::F32)?));
    }
    operands.extend(results);
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

pub(super) fn make_append(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (new_k, [b, g, n, d]) = asked.array("new_k")?;
    let dtype = new_k.dtype();
    let (new_v, [.., e]) = asked.free("new_v", [b, g, n, d])?;
    asked.check("new_v", &new_v, &[b, g, n, e], dtype)?;
    let lengths = asked.indices("lengths", &[b], ROOM)?;
    let kv = kv_type(asked, dtype)?;
    let (k, [first, _, tokens, _]) = asked.free_of("k", [b, g, n.saturating_add(ROOM), d], kv.dtype())?;
    let v = asked.of("v", &[first, g, tokens, e], kv.dtype())?;
    let table = settings.array("table");
    let keys = match table {
        Some(table) => asked.dims::<2>("table", table)?[1].saturating_mul(tokens),
        None => tokens,
    };
    let of_sequences = if table.is_some() { first } else { b };
    asked.check("k", &k, &[of_sequences, g, tokens, d], kv.dtype())?;
    let mut op = KvAppend::new([b, g, n, d], keys).value_size(e).kv(kv).variant(asked.variant());
    let mut operands = vec![Role::Given(new_k), Role::Given(new_v)];
    if let Some(table) = table {
        asked.check("table", table, &[b, keys / tokens.max(1)], DType::U32)?;
        op = op.paged(Paging { tokens, pages: first });
        operands.push(Role::Given(table.clone()));
    }
    operands.push(Role::Given(lengths));
    let rows = k.len() / d.max(1);
    asked.set("rows", &[rows]);
    operands.extend([Role::Updated(k), Role::Updated(v)]);
    if kv.is_scaled() {
        let none = HostArray::zeros(&[2, rows], DType::F32)?;
        let scales = settings.array("scales").unwrap_or(&none);
        asked.check("scales", scales, &[2, rows], DType::F32)?;
        operands.push(Role::Updated(scales.clone()));
    }
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

/// Tokens that a generated cache holds besides the new ones.
const ROOM: usize = 64;

fn shuffled(n: usize) -> Result<Vec<u32>> {
    let mut pages = with_room("attention: the pages", n)?;
    pages.extend(0..n as u32);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..n).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pages.swap(i, (state >> 33) as usize % (i + 1));
    }
    Ok(pages)
}

/// Lays out the rows of (B, G, S, D) in the given pages: (pages, G, tokens, D).
fn in_pages(cache: &HostArray, [b, g, s, d]: [usize; 4], tokens: usize, pages: &[u32]) -> Result<HostArray> {
    let shape = [pages.len(), g, tokens, d];
    let (each, x) = (s.div_ceil(tokens), cache.data().to_f32());
    let len = [g, tokens, d].iter().fold(pages.len(), |n, extent| n.saturating_mul(*extent));
    let mut out = filled("attention: the pages", len, 0f32)?;
    for row in 0..b * g * s {
        let (pair, key) = (row / s, row % s);
        let page = pages[pair / g * each + key / tokens] as usize;
        let to = (page * g + pair % g) * tokens + key % tokens;
        out[to * d..][..d].copy_from_slice(&x[row * d..][..d]);
    }
    HostArray::new(&shape, out)
}

/// Encodes rows of `d` elements for a cache, with the scales of quantised rows.
fn encode(kv: KvType, cache: &HostData, d: usize) -> (HostData, Vec<f32>) {
    if !cache.is_seen() {
        return (HostData::Unseen(kv.dtype(), cache.len()), Vec::new());
    }
    let x = cache.to_f32();
    let factors = |max_code: f32| -> Vec<f32> {
        let largest = |row: &[f32]| row.iter().fold(0f32, |max, x| max.max(x.abs()));
        x.chunks(d.max(1)).map(|row| largest(row) / max_code).collect()
    };
    let quotient = |i: usize, factors: &[f32]| {
        let factor = factors[i / d.max(1)];
        if factor == 0.0 { 0.0 } else { x[i] / factor }
    };
    match kv {
        KvType::F32 => (x.into_owned().into(), Vec::new()),
        KvType::F16 => (x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>().into(), Vec::new()),
        KvType::Int8 => {
            let factors = factors(127.0);
            let code = |i| quotient(i, &factors).round_ties_even() as i8;
            ((0..x.len()).map(code).collect::<Vec<_>>().into(), factors)
        }
        KvType::Fp8 => {
            let factors = factors(448.0);
            let code = |i| fp8_code(quotient(i, &factors));
            ((0..x.len()).map(code).collect::<Vec<_>>().into(), factors)
        }
    }
}
