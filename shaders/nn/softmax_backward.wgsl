// The gradient of softmax: dx = y (dy - sum(y dy)).
fn term(y: Item, g: Item) -> Item { return y * g; }
fn result(y: Item, g: Item, total: f32) -> Item { return y * (g - Item(total)); }
