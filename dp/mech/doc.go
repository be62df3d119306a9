// Package mech turns vectors into releases: clip, then noise; every mechanism names its own event.
//
// # What to read first
//
// clip.go, gaussian.go and paid.go, in this order. The package's example makes one release
// with them.
//
// # The main types
//
// A [Clipped] is a vector that carries the bound on its norm. Only [Clip] and [OwnRadius]
// make one, so nobody can type a sensitivity in by hand. A [ClippedSum] adds such vectors up
// in integers on a [Lattice]; [SimulatedSum] and [LaneSum] do so in floats, for simulations.
//
// A [Gaussian] and a [Laplace] are mechanisms: a noise multiplier, and the ways to draw. A
// [Selection] chooses one of several candidates by noised [Scores]. Each has an Event, the
// data that accountants read (package dp/event, package dp/account).
//
// A [Paid] is a release that was charged and has not been drawn yet. Mechanisms take from
// it before they draw. What is not listed there (one step more, less noise, another rate)
// is refused with [ErrUnpaid]: the noise that is drawn is the noise that was paid for.
//
// A [StepRule] says how gradient steps draw their batches, clip and noise. [Steps] are those
// that a release has paid for: they draw a batch, and noise the sum of its clipped
// gradients. Package model trains with them.
//
// An [Entropy] is where exact noise and batches come from: the system ([SystemEntropy]), or
// any reader, for tests. [Randomness] is either that or a keyed source of floats, which is
// fast and repeatable, and for simulations only: floats are not safe to release.
package mech
