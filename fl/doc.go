// Package fl is federated learning itself: a method under a protection, and the round as a state machine.
//
// A run is data x model x method x protection. This package joins the last two: a
// [Method] says how participants train together, a [Protection] what their releases
// may tell, and an [Algorithm] is one of each. Neither knows the other's name. There is
// no clock, no network, no disk and no goroutine here, so that a simulation (package
// sim) and a real federation (package federation) drive the same code, and a round can
// be made again byte by byte.
//
// # What to read first
//
// algorithm.go, with [Algorithm.Broadcast], [Algorithm.Respond] and
// [Algorithm.Aggregate]: these three are a round. Then method.go and protection.go, and
// then one method (fl/method/fedavg.go with centres.go) and one protection
// (fl/protect/nothing.go). docs/architecture.md walks through two whole rounds.
//
// # The main types
//
// An [Algorithm] is what whoever carries the messages calls. At the server: Start,
// Broadcast, Aggregate. At a participant: Prepare once, Respond in every round, and Adopt
// when the model is used. Price, PriceAhead and Spend say what rounds cost and have cost.
//
// A [Method] is one way of training together, with both its halves: what a participant
// does with a broadcast (Respond) and what the server does with the releases
// (Aggregate). It never touches a participant's data itself. Its [Outline] is all that a
// protection has to know of it.
//
// A [Protection] says what is kept from whom. It prices a round from public numbers
// (Price, PriceAhead), tells what was spent (Spend), and makes a [Guard] for every
// worker.
//
// A [Guard] does a participant's private work for the method: it opens a round, chooses
// among the server's models, trains, and sends. A method can reach data only through it,
// so what leaves depends on the data through paid mechanisms alone, whatever the method.
//
// A [Participant] is what stays with one client between rounds: its data, its own model
// and cluster, its [Plan] (batches, steps and noise, settled before training), what it
// has paid, and in a real federation its [Purse], which makes a charge durable before
// noise is drawn.
//
// A [State] is what the server keeps, a [Broadcast] what everybody is sent, and a [Round]
// collects the answers, in whatever order they come, and gives them on in the order of
// the participants. A [Sampler] draws who is asked.
//
// A [Privacy] is the statement about a finished run: numbers, with what they protect, from
// whom, under which relation, how far they can be trusted, and what they leave out.
//
// # How to add one
//
// A method or a protection is one new file that calls [RegisterMethod] or
// [RegisterProtection] from an init function. docs/architecture.md shows one of each.
package fl
