package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// Projection is principal components that a table's encoded rows are taken to: what a run
// of algorithm.kind pca found and released before. It is as public as that release.
type Projection struct {
	Inputs      []string    `json:"inputs"`     // of the encoding before
	Directions  [][]float64 `json:"directions"` // one a component, each as long as Inputs
	ModelSHA256 string      `json:"model_sha256"`
	// Claim is what the release that it comes from is said to keep.
	Claim event.Claim `json:"claim"`
}

// modelFile is where a folder describes its models: artifact.DescriptionFile.
const modelFile = "model.json"

// mostProjected bounds the bytes of a description with directions in it.
const mostProjected = 1 << 28

// ReadProjection is that of a model folder.
func ReadProjection(folder string) (*Projection, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("data.projection: %s: %w", folder, fmt.Errorf(format, args...))
	}
	path := filepath.Join(folder, modelFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("there is no %s in it; coterie run with algorithm.kind pca on a table makes such a folder", modelFile)
	case err != nil:
		return nil, wrong("%w", err)
	case info.Size() > mostProjected:
		return nil, wrong("%s has %d bytes; allowed: %d", modelFile, info.Size(), mostProjected)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, wrong("%w", err)
	}
	var file struct {
		Encoding    *Encoding        `json:"encoding"`
		Directions  [][]float64      `json:"directions"`
		ModelSHA256 string           `json:"model_sha256"`
		Privacy     *event.Statement `json:"privacy"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, wrong("%s cannot be read: %w", modelFile, err)
	}
	switch {
	case len(file.Directions) == 0:
		return nil, wrong("its models are no projection of a table for everybody; algorithm.kind pca makes one")
	case file.Encoding == nil || file.Encoding.Projection != nil:
		return nil, wrong("its projection is not of a table's own columns")
	}
	p := &Projection{Inputs: file.Encoding.Inputs, Directions: file.Directions, ModelSHA256: file.ModelSHA256, Claim: event.ClaimNone}
	if file.Privacy != nil {
		p.Claim = file.Privacy.Claim
	}
	if err := p.check(p.Inputs); err != nil {
		return nil, wrong("%w", err)
	}
	return p, nil
}

// check holds the projection against the inputs that it is to take.
func (p *Projection) check(inputs []string) error {
	if !slices.Equal(p.Inputs, inputs) {
		return fmt.Errorf("it takes the inputs %q, but the columns make %q: data.features must be those that it was found with", p.Inputs, inputs)
	}
	if len(p.Directions) == 0 || len(p.Directions) > len(inputs) {
		return fmt.Errorf("it has %d directions of %d inputs; allowed: 1 to %d", len(p.Directions), len(inputs), len(inputs))
	}
	for k, direction := range p.Directions {
		if len(direction) != len(inputs) {
			return fmt.Errorf("direction %d has %d values for %d inputs", k+1, len(direction), len(inputs))
		}
		for _, v := range direction {
			if !(math.Abs(v) <= 1+1e-9) {
				return fmt.Errorf("direction %d has the value %v; allowed: -1 to 1", k+1, v)
			}
		}
	}
	return nil
}

// Uncovered is what the projection leaves out of every number about the rows that it was
// found with. Of no projection it is nothing.
func (p *Projection) Uncovered() []string {
	if p == nil || p.Claim == event.ClaimProved {
		return nil
	}
	return []string{fmt.Sprintf("the projection of rows (data.projection): it was found under the claim %s, and tells of its rows", p.Claim)}
}

// names are those of the components.
func (p *Projection) names() []string {
	var out []string
	for k := range p.Directions {
		out = append(out, fmt.Sprintf("component %d", k+1))
	}
	return out
}

// ranges are those of the components, from the inputs': no row lies outside.
func (p *Projection) ranges(centre, scale []float64) (middle, half []float64) {
	for _, direction := range p.Directions {
		var m, h float64
		for j, v := range direction {
			m, h = m+v*centre[j], h+math.Abs(v)*scale[j]
		}
		middle, half = append(middle, m), append(half, max(h, 1e-9))
	}
	return middle, half
}

// Rows replaces encoded rows, one after another, by their parts along the directions, in
// the same memory.
func (p *Projection) Rows(x []float64) []float64 {
	d, k := len(p.Inputs), len(p.Directions)
	parts := make([]float64, k)
	rows := len(x) / d
	for i := range rows {
		row := x[i*d : (i+1)*d]
		for c, direction := range p.Directions {
			parts[c] = 0
			for j, v := range direction {
				parts[c] += v * row[j]
			}
		}
		copy(x[i*k:], parts) // never beyond what was read
	}
	return x[:rows*k]
}

// Project has the encoding's rows taken to the components of a projection.
func (e *Encoding) Project(p *Projection) error {
	if err := p.check(e.Inputs); err != nil {
		return fmt.Errorf("data.projection: %w", err)
	}
	e.Projection, e.Inputs = p, p.names()
	return nil
}

// Width is how many inputs the columns make, before they are projected.
func (e *Encoding) Width() int {
	if e.Projection != nil {
		return len(e.Projection.Inputs)
	}
	return len(e.Inputs)
}
