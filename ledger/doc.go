// Package ledger is the durable, append-only, hash-chained record of what a dataset has released: reserve, store, commit.
//
// A dataset's owner keeps it beside the data. It holds whatever the server, the run and the
// federation: one ceiling bounds all of them together, also after a crash at any point.
//
// # What to read first
//
// ledger.go and operations.go. The package's example opens a ledger, pays for rounds and is
// refused above the ceiling. docs/ledger.md is for the owner, docs/proofs/ledger.md says why
// it can be trusted.
//
// # The main types
//
// A [Policy] is a list of [Ceiling]: what all releases on the same [Terms] (unit, relation,
// claim, trust) may lose together. Terms that no ceiling names are refused.
//
// A [Ledger] is opened ([Open]) with a policy, and locked against other processes. The way
// of one release: [Ledger.Reserve] makes the charge durable, then noise is drawn;
// [Ledger.Store] makes the noised bytes durable, then they are sent; [Ledger.Commit] keeps
// the server's signed [Receipt]. A retry loads and sends the same bytes, and so does a
// repetition for a server that was restored from a backup, while [WithKept] has them.
// [Ledger.Abandon] gives a slot up; it stays spent. Package-level errors say why an operation failed;
// [ErrRefused] is the one that means "above the ceiling".
//
// A [Slot] is a release's identity: at most one in every round of a run. A [Charge] is what
// is to be paid for it, an [Entry] what became of it, a [Summary] all of it for people.
//
// A [Membership] is how the dataset takes part in a federation; [Ledger.Reconcile] holds the
// ledger against the last receipt that the server has, and so finds an old copy that was put
// back ([ErrRollback]). A witness ([WithWitness]) finds one without a server.
package ledger
