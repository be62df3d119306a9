package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
)

// ErrFolder marks a folder whose models cannot be used.
var ErrFolder = errors.New("no usable model")

// Model is an opened model folder. It is safe for concurrent use.
type Model struct {
	Description
	Path string

	model      model.Model
	loss       model.Loss
	parameters int
	choices    []Choice       // by entry
	clients    map[string]int // places in choices
	workers    sync.Pool      // of *worker
}

// mostValues bounds what a file of models may hold, and mostDescription the bytes of
// its description.
const (
	mostValues      = 1 << 28
	mostDescription = 1 << 28
)

// Open reads a run directory, or the out folder of a federation's server or participant.
// Models that are not those of their description are refused.
func Open(dir string) (*Model, error) {
	m := &Model{Path: dir}
	if err := m.open(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", dir, ErrFolder, err)
	}
	return m, nil
}

func (m *Model) open() error {
	text, err := os.ReadFile(filepath.Join(m.Path, DescriptionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m.notDescribed()
	}
	if err != nil {
		return err
	}
	if len(text) > mostDescription {
		return fmt.Errorf("%s has %d bytes; allowed: %d", DescriptionFile, len(text), mostDescription)
	}
	if err := json.Unmarshal(text, &m.Description); err != nil {
		return fmt.Errorf("%s cannot be read: %w", DescriptionFile, err)
	}
	if m.Format != Format {
		return fmt.Errorf("%s is of the format %.40q; this program reads %q: use the program that wrote it (version %.40q)", DescriptionFile, m.Format, Format, m.Version)
	}
	if err := m.build(); err != nil {
		return fmt.Errorf("%s: %w", DescriptionFile, err)
	}
	files := map[string]map[string][]float64{}
	for _, f := range []struct{ name, sha256 string }{{ModelFile, m.ModelSHA256}, {PersonalFile, m.PersonalSHA256}} {
		if f.sha256 == "" {
			continue
		}
		if files[f.name], err = m.readTensors(f.name, f.sha256); err != nil {
			return err
		}
	}
	return m.place(files)
}

// notDescribed says what a folder without a description is.
func (m *Model) notDescribed() error {
	if _, err := os.Stat(m.Path); err != nil {
		return err
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(m.Path, name))
		return err == nil
	}
	switch {
	case has(ModelFile) && has("result.json"), has(PersonalFile):
		return fmt.Errorf("it was written before models described themselves, and has no %s: train again with this version (coterie run, coterie serve and join)", DescriptionFile)
	case has("run.yaml") && has("checkpoint"):
		return fmt.Errorf("the run in it has not ended; go on with: coterie run --resume %s", m.Path)
	}
	return fmt.Errorf("there is no %s in it; coterie run FILE --out FOLDER makes one, and so do coterie serve and join in their out folders", DescriptionFile)
}

// build checks the description and makes what its parameters belong to.
func (m *Model) build() error {
	if m.Encoding != nil {
		if err := m.Encoding.Check(); err != nil {
			return err
		}
		if own := m.Encoding.Shape(); own != m.Shape {
			return fmt.Errorf("its encoding makes rows of %d inputs and %d classes, its shape says %d and %d", own.Features, own.Classes, m.Shape.Features, m.Shape.Classes)
		}
	}
	if len(m.Labels) != m.Shape.Classes || m.Encoding != nil && !slices.Equal(m.Labels, m.Encoding.Classes) {
		return fmt.Errorf("its classes are %q, which are not the %d of its encoding or shape", m.Labels, m.Shape.Classes)
	}
	run := config.Run{Model: m.Description.Model}
	run.Algorithm.Local.Loss, run.Algorithm.Components = m.Loss, m.Components
	if m.projects() && m.Components < 1 {
		return fmt.Errorf("its projection has %d components; allowed: 1 or more", m.Components)
	}
	var err error
	if m.loss, err = model.ParseLoss(m.Loss); err != nil {
		return err
	}
	if m.model, err = model.Of(run, m.Shape); err != nil {
		return err
	}
	m.parameters = m.model.Parameters()
	if m.parameters > mostValues {
		return fmt.Errorf("its model has %d parameters; allowed: %d", m.parameters, mostValues)
	}
	return nil
}

func (m *Model) readTensors(name, sha256 string) (map[string][]float64, error) {
	text, err := os.ReadFile(filepath.Join(m.Path, name))
	if err != nil {
		return nil, fmt.Errorf("the models are missing: %w", err)
	}
	sum, err := model.TensorsSHA256(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if sum != sha256 {
		return nil, fmt.Errorf("%s holds models with the hash %s, but %s describes those with %.64s: the two files do not belong together; copy both from one folder", name, sum, DescriptionFile, sha256)
	}
	tensors, err := model.ReadTensors[float64](bytes.NewReader(text), mostValues)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make(map[string][]float64, len(tensors))
	for _, t := range tensors {
		out[t.Name] = t.Values
	}
	return out, nil
}

// place finds every model's parameters.
func (m *Model) place(files map[string]map[string][]float64) error {
	m.clients = map[string]int{}
	for i, e := range m.Models {
		find := func(name string, length int) ([]float64, error) {
			v := files[e.File][name]
			if m.projects() && name == e.Tensor {
				v = slices.Concat(files[e.File][name+directions], files[e.File][name+eigenvalues])
			}
			if len(v) != length {
				return nil, fmt.Errorf("%s: model %d is the tensor %q of %s, which has %d values there; its model needs %d", DescriptionFile, i, name, e.File, len(v), length)
			}
			return v, nil
		}
		c := Choice{Entry: e}
		var err error
		if c.theta, err = find(e.Tensor, m.parameters); err != nil {
			return err
		}
		if (e.Centre == "") != (e.Scale == "") {
			return fmt.Errorf("%s: model %d has a centre or a scale alone", DescriptionFile, i)
		}
		if e.Scale != "" {
			if c.centre, err = find(e.Centre, m.Shape.Features); err != nil {
				return err
			}
			if c.scale, err = find(e.Scale, m.Shape.Features); err != nil {
				return err
			}
			if slices.ContainsFunc(c.scale, func(v float64) bool { return !(v > 0) }) {
				return fmt.Errorf("%s: the scale of model %d is not positive", e.File, i)
			}
		}
		if e.Role == RoleClient {
			if _, twice := m.clients[e.Client]; twice {
				return fmt.Errorf("%s: the client %q has two models", DescriptionFile, e.Client)
			}
			m.clients[e.Client] = i
		}
		m.choices = append(m.choices, c)
	}
	for k, direction := range m.Directions {
		if first := m.choices[0].theta; k*len(direction)+len(direction) > len(first) || !slices.Equal(direction, first[k*len(direction):(k+1)*len(direction)]) {
			return fmt.Errorf("%s: direction %d is not that of the projection in %s: the two files do not belong together; copy both from one folder", DescriptionFile, k+1, ModelFile)
		}
	}
	if len(m.choices) == 0 {
		return fmt.Errorf("%s lists no model: %s trains none at the server; participants have theirs in their own out folders", DescriptionFile, m.Method)
	}
	return nil
}

// Outputs is how many values Predict gives for a row: a probability for every class, the
// predicted number, or the parts along a projection's directions.
func (m *Model) Outputs() int {
	if m.projects() {
		return m.Components
	}
	return max(1, m.Shape.Classes)
}

// Examples is what the models take, in a word: rows, pictures or persons.
func (m *Model) Examples() string {
	switch {
	case m.Shape.Pictures():
		return "pictures"
	case m.ForPeople():
		return "persons"
	}
	return "rows"
}

// Clients are the names of those that have a model of their own, in order.
func (m *Model) Clients() []string {
	var names []string
	for _, c := range m.choices {
		if c.Role == RoleClient {
			names = append(names, c.Client)
		}
	}
	return names
}

// Metadata are what a file of the models says about itself, by key.
func (m *Model) Metadata() (map[string]string, error) { return m.metadata(m.ModelSHA256) }

// few is a list of names for people.
func few(names []string) string {
	if len(names) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), len(names)-8)
	}
	return strings.Join(names, ", ")
}

// reads says why the models cannot be used on a table; nil: they can.
func (m *Model) reads(t *Table) error {
	switch {
	case m.Shape.Vocabulary > 0:
		return fmt.Errorf("%s: its models are of words, and take no tables", m.Path)
	case m.Shape.Pictures():
		return fmt.Errorf("%s: its models are of pictures of %dx%d, and take no tables", m.Path, m.Shape.Height, m.Shape.Width)
	case m.ForPeople():
		return fmt.Errorf("%s: its models are of people with contacts, and take no tables; coterie predict writes people's risks, and a run's own report judges them", m.Path)
	case m.Encoding == nil:
		return fmt.Errorf("%s: its models were not trained on a table (data.kind: table), so that no encoding says how columns become their %d inputs; only encoded rows can be predicted, by the Go or the Python package", m.Path, m.Shape.Features)
	case t.Cluster != nil:
		_, err := m.Cluster(*t.Cluster)
		return err
	}
	return nil
}
