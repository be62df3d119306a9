package data

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
)

// The School data of paper 002, appendix B.1: 139 schools of the Inner London
// Education Authority, 15,362 pupils with 28 features, and an exam score from 1 to
// 70, which is scaled to 0…1 by these public bounds.
const (
	schoolFeatures  = 28
	schoolLowScore  = 1
	schoolHighScore = 70
)

func init() {
	kind := SiloKind("school", func(r *config.Run) {
		r.Privacy.Delta = 1e-3
		r.Algorithm.Selection.Score = "loss" // answers are values
	})
	Register(rowSilos(kind, "Exam scores of the pupils of 139 schools in London: every school is a silo",
		"repository kenziyuliu/private-cross-silo-fl: school/school.mat, or the same rows as school/school.csv.gz", Shape{Features: schoolFeatures}, SchoolRanges, LoadSchool))
}

// LoadSchool reads school/school.csv.gz of the folder of real data, or, without
// it, school/school.mat, which the paper's authors hand out.
func LoadSchool(folder string) (*Silos, error) {
	path, original := filepath.Join(folder, "school", "school.csv.gz"), filepath.Join(folder, "school", "school.mat")
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat(original); err == nil {
			return loadCells(original, cellLayout{silo: "school", features: schoolFeatures, value: schoolValue})
		}
	}
	return readFile(path, siloLayout{silo: "school", features: schoolFeatures, target: "score", value: schoolScore}.read)
}

func schoolScore(r row, column int) (float64, error) {
	y, err := r.integer(column, schoolLowScore, schoolHighScore)
	if err != nil {
		return 0, err
	}
	return schoolValue(float64(y))
}

// schoolValue scales a score to 0…1.
func schoolValue(score float64) (float64, error) {
	if !(score >= schoolLowScore && score <= schoolHighScore) {
		return 0, fmt.Errorf("score %v; allowed: %d to %d", score, schoolLowScore, schoolHighScore)
	}
	return (score - schoolLowScore) / (schoolHighScore - schoolLowScore), nil
}

// SchoolRanges are public constants for School's features: columns 3 and 4 are
// percentages (pupils with free meals, pupils in the first verbal reasoning band),
// the others are indicators; the last one is 1 always. Each range is mapped to
// -1…1, the constant to 0.
func SchoolRanges() (centre, scale []float64) {
	centre, scale = make([]float64, schoolFeatures), make([]float64, schoolFeatures)
	for j := range centre {
		centre[j], scale[j] = 0.5, 0.5
	}
	for _, percentage := range []int{3, 4} {
		centre[percentage], scale[percentage] = 50, 50
	}
	centre[schoolFeatures-1], scale[schoolFeatures-1] = 1, 1
	return centre, scale
}
