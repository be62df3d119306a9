// Package adding_test holds a data set, a method and a protection that nothing else
// knows, each in one file: docs/architecture.md shows how to add one.
package adding_test

import (
	"math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// A data set: its name and the papers' settings for runs on it, the keys of the data block
// that it reads, what is known of its examples beforehand, a loader, and words for a report.
func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{
			Name: "lines", Method: "fedavg", Keys: []string{"users", "samples"},
			Settings: func(r *config.Run) { r.Data.Users, r.Algorithm.Rounds, r.Algorithm.ClientsPerRound = 6, 7, 0 },
		},
		Shape:   func(config.Data) (data.Shape, bool) { return data.Shape{Features: 1}, true },
		Clients: func(d config.Data) (train, validation int) { return d.Users, 2 },
		Load:    loadLines,
		Words:   func(config.Data) string { return "Clients whose points lie on a line" },
	})
}

// loadLines draws y = 2*x - 1 for everybody. A data set from a file would ask the folder
// for its path.
func loadLines(_ *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
	source := rand.New(rand.NewPCG(seed, 0))
	clients := make([]data.Client, d.Users+2)
	for i := range clients {
		clients[i].Features = 1
		for range d.Samples {
			x := source.NormFloat64()
			clients[i].X, clients[i].Y = append(clients[i].X, x), append(clients[i].Y, 2*x-1)
		}
	}
	return &data.Federation{Features: 1, Train: clients[:d.Users], Validation: clients[d.Users:]}, nil
}
