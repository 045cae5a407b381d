// Of a layer or its gradient by x: weights times windows of x.
#import conv/conv_product_windows
#import conv/conv_product_weights

alias T = f32;
