//! Memory of the host through which devices of one process exchange elements and sums by themselves, without a thread of
//! the host between.

use super::matrix::ShardedMatrix;
use super::rank::Rank;
use super::transport::Transport;
use crate::error::Result;
#[cfg(all(feature = "nccl", target_os = "linux"))]
use crate::gpu::HostWords;
use crate::gpu::{Buffer, Executable, Recorder, Slice};
#[cfg(all(feature = "nccl", target_os = "linux"))]
use std::sync::Arc;

/// What a rank needs to exchange elements and sums with devices of the others in its recorded work.
#[derive(Debug)]
pub(super) struct Mail {
    /// The number of the exchange.
    turn: Buffer<u32>,
    words: Buffer<u32>,
    step: Executable,
    send: Option<(Executable, Buffer<u32>)>,
    receive: Option<(Executable, [Buffer<u32>; 2])>,
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    memory: Arc<HostWords>,
}

/// A [`Mail`], or why there is none.
pub(super) type MaybeMail = std::result::Result<Mail, String>;

#[cfg(all(feature = "nccl", target_os = "linux"))]
impl Drop for Mail {
    fn drop(&mut self) {
        // Another group may get the memory.
        if self.turn.gpu().wait().is_err() {
            std::mem::forget(self.memory.clone());
        }
    }
}

impl Mail {
    /// Records that the elements of `r` that other ranks need leave, unless `state` has ended.
    pub(super) fn record_send(
        &self,
        rec: &mut Recorder,
        state: &Buffer<u32>,
        r: Slice<'_, f32>,
    ) -> Result<()> {
        let Some((send, places)) = &self.send else { return Ok(()) };
        let [state, turn, places, words] =
            [state, &self.turn, places, &self.words].map(|buffer| Slice::from(buffer).untyped());
        send.record(rec, &[state, turn, places, r.untyped(), words])
    }

    /// Records that the device waits for elements of other ranks and copies them into `r`.
    pub(super) fn record_receive(
        &self,
        rec: &mut Recorder,
        state: &Buffer<u32>,
        r: &Buffer<f32>,
    ) -> Result<()> {
        let Some((receive, [sources, places])) = &self.receive else { return Ok(()) };
        let [state, turn, sources, places, words] =
            [state, &self.turn, sources, places, &self.words].map(|buffer| Slice::from(buffer).untyped());
        receive.record(rec, &[state, turn, sources, places, words, Slice::from(r).untyped()])
    }

    /// Records the sum of partial sums of all ranks, and the step that follows from it.
    pub(super) fn record_step(
        &self,
        rec: &mut Recorder,
        partials: &Buffer<f32>,
        state: &Buffer<u32>,
    ) -> Result<()> {
        let [state, turn, words] =
            [state, &self.turn, &self.words].map(|buffer| Slice::from(buffer).untyped());
        self.step.record(rec, &[Slice::from(partials).untyped(), state, turn, words])
    }
}

#[cfg(not(all(feature = "nccl", target_os = "linux")))]
impl<L: Transport> Rank<L> {
    /// None: devices share memory of the host by the feature `nccl`, on Linux.
    pub(super) fn mail(&self, _: &ShardedMatrix) -> Result<MaybeMail> {
        Ok(Err("devices share memory of the host with the feature `nccl`, on Linux".into()))
    }
}

#[cfg(all(feature = "nccl", target_os = "linux"))]
mod opening {
    use super::*;
    use crate::error::err;
    use crate::sparse::shard_steps::{self, MAX_RANKS, SLOT, Shared, state};

    /// The maximum number of messages of a rank: more elements travel faster by the link.
    const MAX_MESSAGES: usize = 1 << 18;
    /// Elements of a message.
    const ELEMENTS: usize = 3;
    /// Messages that are read and written together.
    const TOGETHER: usize = 32;

    /// Messages for `n` elements.
    fn messages(n: usize) -> usize {
        n.div_ceil(ELEMENTS).next_multiple_of(TOGETHER)
    }

    /// Where messages are in the memory of all ranks.
    struct MailLayout {
        /// For each rank, its messages, and their first word.
        counts: Vec<usize>,
        begins: Vec<usize>,
        shared: Shared,
    }

    impl MailLayout {
        /// The layout for ranks that send these numbers of messages.
        fn new(rank: usize, counts: Vec<usize>) -> Self {
            let ranks = counts.len();
            let mut end = (SLOT * ranks).next_multiple_of(TOGETHER);
            let begins = counts
                .iter()
                .map(|count| {
                    let begin = end;
                    end += (ELEMENTS + 1) * count;
                    begin
                })
                .collect();
            Self { counts, begins, shared: Shared { words: 2 * end, ranks, rank } }
        }
    }

    impl ShardedMatrix {
        /// Messages that this rank sends in a product.
        fn messages(&self) -> usize {
            self.sends().iter().map(|range| messages(range.len())).sum()
        }
    }

    impl<L: Transport> Rank<L> {
        /// Opens memory that the devices of all ranks read and write, if they can: each has another card, all belong to this
        /// process, and a first exchange works. All ranks call it, and get it or none does.
        pub(in crate::shard) fn mail(&self, a: &ShardedMatrix) -> Result<MaybeMail> {
            let layout = match self.mail_layout(a)? {
                Ok(layout) => layout,
                Err(why) => return Ok(Err(why)),
            };
            let opened = self.shared_memory(layout.shared.words)?;
            // One device may refuse what another takes.
            let all_opened = self.all_agree(opened.is_ok())?;
            let (memory, words) = match opened {
                Ok(opened) if all_opened => opened,
                Ok(_) => return Ok(Err("another device does not import memory of the host".into())),
                Err(e) => return Ok(Err(e.to_string())),
            };
            let mail = self.open_mail(a, &layout, memory, words)?;
            let found = mail.first_exchange(self, a.rows())?;
            if self.all_agree(found.is_none())? {
                return Ok(Ok(mail));
            }
            Ok(Err(found.unwrap_or_else(|| "another device did not see what this one wrote".into())))
        }

        fn all_agree(&self, here: bool) -> Result<bool> {
            Ok(self.gather_equal(&[u32::from(here)])?.iter().all(|there| *there == 1))
        }

        /// The layout of the memory, alike on all ranks, or why one of them cannot take part.
        fn mail_layout(&self, a: &ShardedMatrix) -> Result<std::result::Result<MailLayout, String>> {
            let (gpu, ranks) = (self.gpu(), self.size());
            let id = if gpu.profile().is_cpu() { None } else { gpu.identity().ok() };
            let uuid = id.filter(|_| self.transport().local().is_some()).map_or([0; 16], |id| id.uuid);
            let [first, last] = [0, 8]
                .map(|at| uuid[at..at + 8].iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte)));
            let all = self.gather_equal(&[a.messages() as u64, first, last])?;
            let of = |rank: usize| &all[3 * rank..3 * rank + 3];
            if ranks > MAX_RANKS {
                return Ok(Err(format!("{ranks} ranks; at most {MAX_RANKS} share memory")));
            }
            for rank in 0..ranks {
                if of(rank)[1..] == [0, 0] {
                    return Ok(Err(format!(
                        "rank {rank} is another process, or its device no card of Vulkan's"
                    )));
                }
                if let Some(other) = (0..rank).find(|&other| of(other)[1..] == of(rank)[1..]) {
                    return Ok(Err(format!("ranks {other} and {rank} share a device")));
                }
                if of(rank)[0] as usize > MAX_MESSAGES {
                    return Ok(Err(format!(
                        "rank {rank} sends {} messages of {ELEMENTS} elements",
                        of(rank)[0]
                    )));
                }
            }
            let counts = (0..ranks).map(|rank| of(rank)[0] as usize).collect();
            Ok(Ok(MailLayout::new(self.index(), counts)))
        }

        /// Memory of all ranks, and the same as a buffer of this rank's device. The inner error says why there is none.
        fn shared_memory(&self, words: usize) -> Result<Result<(Arc<HostWords>, Buffer<u32>)>> {
            let local = self.transport().local();
            let first = if self.index() == 0 { HostWords::new(words).ok() } else { None };
            if let (Some(local), Some(memory)) = (local, first) {
                local.lend(Some(Arc::new(memory)));
            }
            self.barrier()?;
            let memory = local.and_then(super::super::Local::lent);
            self.barrier()?;
            if let (Some(local), 0) = (local, self.index()) {
                local.lend(None);
            }
            let Some(memory) = memory else { return Ok(Err(err!(OutOfMemory, "no memory for all ranks"))) };
            Ok(self.gpu().import_host(&memory).map(|words| (memory, words)))
        }

        fn open_mail(
            &self,
            a: &ShardedMatrix,
            layout: &MailLayout,
            memory: Arc<HostWords>,
            words: Buffer<u32>,
        ) -> Result<Mail> {
            let (gpu, own) = (self.gpu(), self.index());
            let (profile, shared) = (gpu.profile(), layout.shared);
            let words = words.front_as::<u32>(shared.words)?;
            let padding = u32::MAX;
            // The elements of a message are as far apart as there are messages to the same rank.
            let mut places = vec![padding; ELEMENTS * layout.counts[own]];
            let mut begins = Vec::new();
            let mut begin = 0;
            for range in a.sends() {
                begins.push(begin);
                let count = messages(range.len());
                for (i, place) in a.sent_places()[range.clone()].iter().enumerate() {
                    places[i / count * layout.counts[own] + begin + i % count] = *place;
                }
                begin += count;
            }
            let begins = self.exchange_counts(&begins)?;
            let of_rank: Vec<usize> = a.receives().iter().map(|range| messages(range.len())).collect();
            let all: usize = of_rank.iter().sum();
            let (mut sources, mut targets) = (vec![0u32; 2 * all], vec![padding; ELEMENTS * all]);
            let mut begin = 0;
            for (rank, (range, count)) in a.receives().iter().zip(&of_rank).enumerate() {
                for i in 0..*count {
                    sources[begin + i] = (layout.begins[rank] + begins[rank] + i) as u32;
                    sources[all + begin + i] = layout.counts[rank] as u32;
                }
                for i in 0..range.len() {
                    targets[i / count * all + begin + i % count] = (a.rows() + range.start + i) as u32;
                }
                begin += count;
            }
            let send = (layout.counts[own] > 0).then(|| {
                let program =
                    shard_steps::send(a.rows(), layout.counts[own], layout.begins[own], shared, profile)?;
                Ok::<_, crate::Error>((gpu.prepare_lowered(program)?, gpu.upload(&places)?))
            });
            let receive = (all > 0).then(|| {
                let program = shard_steps::receive(a.vector_len(), all, shared, profile)?;
                let lists = [gpu.upload(&sources)?, gpu.upload(&targets)?];
                Ok::<_, crate::Error>((gpu.prepare_lowered(program)?, lists))
            });
            Ok(Mail {
                turn: gpu.upload(&[0u32])?,
                words,
                step: gpu.prepare_lowered(shard_steps::step(a.rows(), Some(shared), profile)?)?,
                send: send.transpose()?,
                receive: receive.transpose()?,
                memory,
            })
        }
    }

    impl Mail {
        /// Adds up a number of each rank. Returns what is wrong with the sum.
        fn first_exchange<L: Transport>(&self, rank: &Rank<L>, rows: usize) -> Result<Option<String>> {
            let gpu = rank.gpu();
            let mut sums = vec![0f32; shard_steps::partials_len(rows)];
            sums[0] = 1.0 + rank.index() as f32;
            let mut words = vec![0; state::WORDS];
            words[..8].copy_from_slice(&state::first(0.0, 0));
            let (partials, after) = (gpu.upload(&sums)?, gpu.upload(&words)?);
            rank.wait()?;
            rank.barrier()?;
            let mut rec = gpu.recorder();
            self.record_step(&mut rec, &partials, &after)?;
            rec.submit()?;
            let words = after.read()?;
            let (status, found) = (words[state::STATUS], f32::from_bits(words[state::HISTORY]));
            let p = rank.size();
            let right = status == state::LIMIT && found == (p * (p + 1) / 2) as f32;
            Ok((!right).then(|| format!("the first sum of {p} devices is {found}, its status {status}")))
        }
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used, reason = "a test")]
    mod tests {
        use super::*;
        use crate::shard::run;
        use crate::sparse::Csr;
        use crate::{Gpu, reference};
        use std::sync::Mutex;
        use std::time::Duration;

        /// Rows with entries at odd distances, so that ranks need elements of several others.
        fn rows(mine: std::ops::Range<usize>, n: usize) -> Csr {
            let mut a = Csr { rows: mine.len(), cols: n, row_ptrs: vec![0], ..Csr::default() };
            for row in mine {
                let mut columns: Vec<usize> =
                    [0, 1, 7, 150, 333].iter().map(|step| (row * 3 + step) % n).chain([row]).collect();
                columns.sort_unstable();
                columns.dedup();
                a.values.extend(columns.iter().map(|c| 1.0 + (c % 5) as f32));
                a.col_idxs.extend(columns.iter().map(|c| *c as u32));
                a.row_ptrs.push(a.col_idxs.len() as u32);
            }
            a
        }

        /// Ranks on one device share a buffer: all send, then all receive.
        #[test]
        fn elements_reach_the_ranks_that_need_them() {
            let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
            let n = 500;
            let x: Vec<f32> = (0..n).map(|i| (i % 13) as f32 - 6.0).collect();
            let want = reference::spmv(1.0, &rows(0..n, n), &x, 0.0, &vec![0.0; n]).unwrap();
            for cuts in [vec![0, 250, 500], vec![0, 100, 100, 420, 500]] {
                let p = cuts.len() - 1;
                let words = Mutex::new(None);
                let got = run(&vec![gpu.clone(); p], Duration::from_secs(60), |rank| {
                    let mine = cuts[rank.index()]..cuts[rank.index() + 1];
                    let a = rank.matrix(&rows(mine.clone(), n))?;
                    let counts = rank.gather_equal(&[a.messages() as u64])?;
                    let layout =
                        MailLayout::new(rank.index(), counts.iter().map(|count| *count as usize).collect());
                    let shared = {
                        let mut words = words.lock().unwrap();
                        words
                            .get_or_insert_with(|| gpu.alloc_zeroed::<u32>(layout.shared.words).unwrap())
                            .clone()
                    };
                    let mail = rank.open_mail(&a, &layout, Arc::new(HostWords::new(1)?), shared)?;
                    let (r, y) = (rank.alloc::<f32>(a.vector_len())?, gpu.alloc::<f32>(mine.len())?);
                    let going = gpu.alloc_zeroed::<u32>(state::WORDS)?;
                    if !mine.is_empty() {
                        r.slice(..mine.len())?.write(&a.permute(&x[mine])?)?;
                    }
                    let mut rec = gpu.recorder();
                    mail.record_send(&mut rec, &going, r.slice(..a.rows())?)?;
                    rec.submit()?;
                    rank.wait()?;
                    rank.barrier()?;
                    let mut rec = gpu.recorder();
                    mail.record_receive(&mut rec, &going, &r)?;
                    a.inner.record(&mut rec, &r, &y)?;
                    a.outer.record(&mut rec, &r, &y)?;
                    rec.submit()?;
                    assert_eq!(going.read()?[state::STATUS], state::GOING);
                    a.restore(&y.read()?)
                });
                let got: Vec<f64> = got.unwrap().concat().into_iter().map(f64::from).collect();
                assert_eq!(got, want);
            }
        }
    }
}
