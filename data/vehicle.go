package data

import (
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
)

// The Vehicle data of paper 002, appendix B.1: 23 sensors along a road, 100
// acoustic and seismic features, two kinds of vehicles.
const vehicleFeatures = 100

// vehicleScaledBefore is what the stored part brings with it.
const vehicleScaledBefore = "standardisation (the stored part of Vehicle was scaled at its source, by every sensor's full data)"

func init() {
	kind := SiloKind("vehicle", func(r *config.Run) {
		r.Data.TestShare, r.Algorithm.Rounds, r.Algorithm.Local.Batch = 0.25, 400, 64
		r.Algorithm.Local.Loss = "hinge"
		r.Privacy.Clip, r.Privacy.Delta = 6, 1e-7
	})
	Register(rowSilos(kind, "Acoustic and seismic measurements of two kinds of vehicles: every sensor is a silo",
		"the archive of paper 002's authors: vehicle/vehicle.mat; a part from litian96/ditto: vehicle/vehicle_ditto_train.csv.gz", Shape{Features: vehicleFeatures, Classes: 2}, nil, LoadVehicle))
}

// LoadVehicle reads vehicle/vehicle.mat, the whole data as the paper's authors
// hand it out, or else vehicle/vehicle_ditto_train.csv.gz, a part of it in which
// most sensors have fewer rows than one batch of the paper.
func LoadVehicle(folder string) (*Silos, error) {
	whole := filepath.Join(folder, "vehicle", "vehicle.mat")
	if _, err := os.Stat(whole); err == nil {
		return loadCells(whole, cellLayout{silo: "sensor", features: vehicleFeatures, classes: 2, value: signValue})
	}
	layout := siloLayout{silo: "sensor", features: vehicleFeatures, target: "label", classes: 2, value: signCell}
	s, err := readFile(filepath.Join(folder, "vehicle", "vehicle_ditto_train.csv.gz"), layout.read)
	if err != nil {
		return nil, err
	}
	s.NotCovered = []string{vehicleScaledBefore}
	s.Report.Notes = append(s.Report.Notes, "a part of Vehicle: its figures cannot be compared with paper 002's")
	return s, nil
}

func signCell(r row, column int) (float64, error) {
	v, err := r.integer(column, -1, 1)
	if err == nil && v == 0 {
		err = r.faultf(column, "the label 0; allowed: -1 and 1")
	}
	return float64(v+1) / 2, err
}
