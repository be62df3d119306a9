// Package contacts holds populations: persons in households, whom they meet where and for how long, and an epidemic among them.
//
// A population is generated ([Generate]) or read from the eight CSV files of the pandemic
// challenge ([Read]), and both end in one [Graph], which training and judging read.
//
//   - The graph: graph.go, rows.go (how contacts become compressed sparse rows),
//     figures.go (what it looks like in numbers).
//   - The generator: households.go (who lives together), generate.go, persons.go (where),
//     visits.go (who goes where when), meet.go (who meets whom there), epidemic.go.
//     Every draw is a hash of the seed, a stream and what is drawn for (draw.go), so any
//     part can be drawn again, in any order, by any number of workers: contacts are
//     counted in one pass and filled in by a second, and never stored twice.
//   - Files: files.go (their names and columns), places.go (where things lie on the map),
//     write*.go, read*.go, faults.go.
//   - kind.go registers the kind of data pandemic.
package contacts
