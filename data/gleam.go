package data

import (
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
)

// gleamFeatures are head movements of wearers of Google Glass: paper 002, appendix
// B.1 (38 wearers, 180 features, eating or not).
const gleamFeatures = 180

func init() {
	kind := SiloKind("gleam", func(r *config.Run) {
		r.Data.TestShare, r.Algorithm.Local.Batch = 0.25, 64
		r.Algorithm.Local.Loss = "hinge"
		r.Privacy.Clip, r.Privacy.Delta = 6, 1e-4
	})
	Register(rowSilos(kind, "Head movements of people who eat or do not: every wearer is a silo",
		"the archive of paper 002's authors (non-commercial use): gleam/gleam.mat", Shape{Features: gleamFeatures, Classes: 2}, nil, LoadGLEAM))
}

// LoadGLEAM reads gleam/gleam.mat as the paper's authors hand it out: the cell
// arrays X and Y, one cell a wearer, labels -1 and 1.
func LoadGLEAM(folder string) (*Silos, error) {
	return loadCells(filepath.Join(folder, "gleam", "gleam.mat"), cellLayout{silo: "wearer", features: gleamFeatures, classes: 2, value: signValue})
}
