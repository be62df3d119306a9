package data

import "github.com/coterie-fl/coterie/config"

func init() {
	kind := centralKind("fashion-mnist", idxSize, func(r *config.Run) {
		pictured(r, "mnist")
		r.Algorithm.Local.Step = 30
	}, "task")
	kind.Settle = settleFashion
	Register(Kind{
		Get:      idxFiles("Fashion-MNIST", "fashion-mnist"),
		DataKind: kind,
		Check: func(c *config.Checker, d config.Data) {
			c.Require(d.Task == "" || d.Task == TaskClasses || d.Task == TaskReconstruct, "data.task", "is %q; allowed for fashion-mnist: classes, reconstruct", d.Task)
		},
		Shape: func(d config.Data) (Shape, bool) {
			s := Shape{Classes: digitClasses, Height: 28, Width: 28, Channels: 1}
			if d.Task == TaskReconstruct {
				s.Classes, s.Reconstruct = 0, true
			}
			return s, true
		},
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			whole, err := loadWholeIDX(f, d, seed, "fashion-mnist")
			if err == nil && d.Task == TaskReconstruct {
				whole.Classes, whole.Reconstruct = 0, true
			}
			return whole, err
		},
		Words: func(d config.Data) string {
			if d.Task == TaskReconstruct {
				return "Fashion-MNIST’s pictures of clothes, all in one place; each is its own target"
			}
			return "Fashion-MNIST’s pictures of clothes, all in one place"
		},
	})
}

// settleFashion is what follows from the task: pictures that are their own target are
// paper 001's auto-encoder's.
func settleFashion(r *config.Run, given func(path string) bool) {
	settleCentral(0.03)(r, given)
	if r.Data.Task != TaskReconstruct {
		return
	}
	if r.Model.Kind == "network" && !given("model.name") && !given("model.layers") {
		r.Model.Name = "autoencoder"
	}
	if !given("algorithm.local.loss") {
		r.Algorithm.Local.Loss = "squared-error"
	}
}
