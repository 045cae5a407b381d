// How many elements a dispatch covers: all that it holds or, LIMITED, as many of them as the device says there are.
//
//     #put extent(params.n, 0u)    `fn extent() -> u32`: of params.n elements, behind 0 of earlier dispatches
#if LIMITED
const LENGTH_BINDING: u32 = 3u;
@group(0) @binding(LENGTH_BINDING) var<storage, read> length_of_all: array<u32>;
#endif

#block extent(held, before)
#if LIMITED
fn extent() -> u32 { return min({held}, max(length_of_all[0], {before}) - {before}); }
#else
fn extent() -> u32 { return {held}; }
#endif
#end
