package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/model"
)

// Write leaves models and their description in a folder that is there, the description
// last: every file is whole, or as it was before. A participant's own tensors, which may
// be nil, are for their owner alone, and so is then what describes them. It returns the
// description with the tensors' hashes.
func Write(dir string, d Description, models, personal []model.Tensor[float64]) (Description, error) {
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
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return d, fmt.Errorf("describe the models: %w", err)
	}
	return d, durable.WriteFile(filepath.Join(dir, DescriptionFile), append(text, '\n'), mode)
}

func (d *Description) writeTensors(path string, tensors []model.Tensor[float64], sha256 string, mode os.FileMode) error {
	about, err := d.metadata(sha256)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := model.WriteTensors(&file, tensors, about); err != nil {
		return err
	}
	return durable.WriteFile(path, file.Bytes(), mode)
}
