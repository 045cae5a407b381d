// Converts a word of the elementwise walks to f32 and back.
#if VEC4
alias Floats = vec4<f32>;
#else
alias Floats = f32;
#endif
fn floats(x: Word) -> Floats { return bitcast<Floats>(x); }
fn word(x: Floats) -> Word { return bitcast<Word>(x); }
