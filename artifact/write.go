package artifact

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/model"
)

// Write leaves models and their description in a folder that is there, the description
// last: every file is whole, or as it was before. A participant's own tensors, which may
// be nil, are for their owner alone, and so is then what describes them. It returns the
// description with the tensors' hashes.
func Write(dir string, d Description, models, personal []model.Tensor[float64]) (Description, error) {
	d.direct(models)
	models, personal = d.parts(models), d.parts(personal)
	d.ModelSHA256 = model.HashTensors(models)
	if err := d.writeTensors(filepath.Join(dir, ModelFile), models, d.ModelSHA256, 0o644); err != nil {
		return d, err
	}
	mode := os.FileMode(0o644)
	if personal != nil {
		mode, d.PersonalSHA256 = 0o600, model.HashTensors(personal)
		if err := d.writeTensors(filepath.Join(dir, PersonalFile), personal, d.PersonalSHA256, mode); err != nil {
			return d, err
		}
	}
	if d.merges != nil {
		if err := durable.WriteFile(filepath.Join(dir, MergesFile), d.merges, 0o644); err != nil {
			return d, err
		}
	}
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return d, fmt.Errorf("describe the models: %w", err)
	}
	return d, durable.WriteFile(filepath.Join(dir, DescriptionFile), append(text, '\n'), mode)
}

// direct tells the directions of a table's projection for everybody, where there is one.
func (d *Description) direct(models []model.Tensor[float64]) {
	if !d.projects() || d.Encoding == nil || d.Newcomer != RoleGlobal {
		return
	}
	for _, t := range models {
		features := d.Shape.Features
		if t.Name != d.Models[0].Tensor || len(t.Values) != d.Components*(features+1) {
			continue
		}
		d.Directions = nil
		for k := range d.Components {
			d.Directions = append(d.Directions, t.Values[k*features:(k+1)*features])
		}
	}
}

// directions and eigenvalues are what a projection's tensor is written as, behind its name.
const directions, eigenvalues = ".directions", ".eigenvalues"

// parts are a projection's tensors as others read them: the directions as rows of a
// matrix, and their eigenvalues.
func (d *Description) parts(models []model.Tensor[float64]) []model.Tensor[float64] {
	if !d.projects() {
		return models
	}
	var out []model.Tensor[float64]
	for _, t := range models {
		features := len(t.Values)/d.Components - 1
		if len(t.Values) != d.Components*(features+1) || features < 1 || !slices.ContainsFunc(d.Models, func(e Entry) bool { return e.Tensor == t.Name }) {
			out = append(out, t) // a centre, or a scale; or of the server, which found nothing
			continue
		}
		at := d.Components * features
		out = append(out,
			model.Tensor[float64]{Name: t.Name + directions, Shape: []int{d.Components, features}, Values: t.Values[:at]},
			model.Tensor[float64]{Name: t.Name + eigenvalues, Shape: []int{d.Components}, Values: t.Values[at:]})
	}
	return out
}

func (d *Description) writeTensors(path string, tensors []model.Tensor[float64], sha256 string, mode os.FileMode) error {
	about, err := d.metadata(sha256)
	if err != nil {
		return err
	}
	return durable.Replace(path, mode, func(w io.Writer) error { // a copy in memory would be a second one
		if err := model.WriteTensors(w, tensors, about); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	})
}
