package data

import "github.com/coterie-fl/coterie/config"

// everybody is the name of the one client that holds a public data set as a whole.
const everybody = "all"

// centralKind is a public data set that one client holds, with the set's own test part
// held out: paper 001, chapter 3, trains on such data, and so does whoever has all of
// them in one place. Size is how many examples there are to train on: a public count of
// a public file, and so no participant's secret. Own are settings of the data set itself.
func centralKind(name string, size int, own func(r *config.Run), keys ...string) config.DataKind {
	return config.DataKind{Name: name, Method: "central", OwnTest: true, Keys: append(keys, "train_limit"), Settings: func(r *config.Run) {
		a, p := &r.Algorithm, &r.Privacy
		a.Rounds, a.ClientsPerRound, a.Stop = 10, 0, config.Stop{Return: "last", Every: 1}
		a.Local.Batch, a.Local.Loss, a.Local.Remainder = 512, "cross-entropy", "drop"
		a.Empty, a.Clustering, a.Weights = "keep", "declared", "equal"
		p.Protects, p.Epsilon, p.Delta, p.Clip = "example", 3, 1e-5, 0.1
		if a.Mode == "sound" {
			p.PublicSize = size
		}
		r.Judge.By = "test"
		own(r)
	}}
}

// settleCentral is what follows from the rest of a file. Layers stand instead of the usual
// network's name. Where gradients are not clipped, the step is another one: what is right
// for gradients of length 0.1 and less is far too long for whole ones.
func settleCentral(unclipped float64) func(r *config.Run, given func(path string) bool) {
	return func(r *config.Run, given func(path string) bool) {
		if r.Privacy.Protects != "example" && !given("algorithm.local.step") {
			r.Algorithm.Local.Step = unclipped
		}
		if given("model.layers") && !given("model.name") {
			r.Model.Name = ""
		}
	}
}

// heldByOne is the federation of one client with everything. The examples stay whose
// they are: nothing is copied.
func heldByOne(d config.Data, seed uint64, classes int, report LoadReport, train, test Client) (*Federation, error) {
	train.Name, test.Name = everybody, everybody
	train.Held = &test
	whole := Silos{All: []Client{train}, Features: train.Features, Classes: classes, Report: report}
	f, err := whole.Federation(SiloOptions{Seed: seed, TrainLimit: d.TrainLimit, Standardise: Unscaled, Consume: true})
	if err == nil {
		f.Report.Kept = f.Train[0].Len() + f.Train[0].Held.Len()
	}
	return f, err
}
