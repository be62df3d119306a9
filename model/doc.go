// Package model holds linear models and networks with per-example gradients, their losses, and the one pass that trains them, on flat parameter vectors.
//
// # What to read first
//
// learner.go: a [Model] is what is trained, a [Learner] is the model with one worker's
// memory, a [Step] says how one gradient protects its examples. Then pass.go: a [Pass] is
// the whole local training of one client. The example of [Learner] trains a logistic
// regression with DP-SGD on plain arrays.
//
// # The main types
//
// A [Model] knows its number of parameters and how they are drawn at the start. All
// parameters lie in one vector of float64. [Of] builds the model of a run file from the
// model block, the loss and the shape of the data: simulations, federations, audits and
// sweeps have it from there, so that one run file trains one model. [Linear] can be
// written down directly.
//
// A [Learner] computes losses, outputs and gradients of one client's examples, and trains.
// Each worker has its own; none is safe for concurrent use. Its errors are about data
// that do not fit. A value that is not finite is no error: it would tell of the data.
//
// A [Step] is one gradient: without Paid and Clip the plain mean; with Clip, every example's
// gradient is clipped; with Paid (a mech.Steps) it is clipped and the sum is noised as it
// was paid for. No example's gradient of a large layer is ever stored: layers supply its
// norm, and then the weighted sum of all.
//
// A [Pass] is so many steps or epochs with a batch rule, a step size with its schedule, an
// [Optimiser] and, for personalised methods, a [Pull] towards another model.
//
// A [Network] is a chain of layers, described as a run file does ([Layer]); [NamedNetwork]
// has the papers' and a residual one. An [Engine] computes on it batch by batch, in single or double
// precision, on the workers of a [Runner] (nil: one after another). The sums do not depend
// on how many workers there are.
//
// # How to add a layer
//
// A layer is one new file: a type with the methods of layer and cell (layer.go), a builder,
// and registerLayer in an init function, which names the kind and the keys that it reads.
// See tanh in activation.go for the shortest, dense.go for one with parameters.
package model
