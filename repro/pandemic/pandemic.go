// Package pandemic reproduces chapter 2 of paper 002: who falls ill next week, foretold
// from a network of contacts, and what protecting persons leaves of it.
package pandemic

import "github.com/coterie-fl/coterie/repro/lab"

// Experiments are listed in this order.
var Experiments = []lab.Experiment{losses, features, neighbours, privacy, silos}
