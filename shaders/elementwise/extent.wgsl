// The elements that a walk covers. If the device counts them, the importer's Params have `first`, the elements of
// earlier dispatches.
#import dispatch/extent
#put extent(params.n, params.first)
