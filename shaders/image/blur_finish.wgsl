// Converts sums of windows to means.
#import image/blur_mean

fn finish(p: vec3<u32>, group: Group) -> Group { return mean(p, Total(group)); }
