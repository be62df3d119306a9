// Package artifact is the model folder: models that describe themselves, and their use
// on new rows.
package artifact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// The files of a model folder. The personal one is a participant's own model, beside
// those of its federation.
const (
	DescriptionFile = "model.json"
	ModelFile       = "model.safetensors"
	PersonalFile    = "personal.safetensors"
	MergesFile      = "merges.bpe" // of words: the pairs that they are made of
)

// Format is the first line of every description.
const Format = "coterie model 1"

// Description is what a model folder says about its models: model.json. All of it is
// public where the models are: nothing in it was counted or hashed from anybody's rows.
// Its keys are stable: docs/json.md.
type Description struct {
	Format   string         `json:"format"`
	Name     string         `json:"name"`
	Task     string         `json:"task"`
	Encoding *data.Encoding `json:"encoding"` // null: the data are no table
	Labels   []string       `json:"classes"`  // names of the classes, in the order of the outputs; null for numbers
	Shape    data.Shape     `json:"shape"`
	Model    config.Model   `json:"model"`
	// Components is how many directions a projection has; 0: the models are none.
	Components int `json:"components,omitempty"`
	// Directions are those of a table's projection for everybody, so that others can take
	// rows to them: data.projection.
	Directions [][]float64 `json:"directions,omitempty"`
	Loss       string      `json:"loss"`
	Precision  string      `json:"precision"` // of the arithmetic; tensors are float64
	// Standardise is where the constants come from that inputs are scaled by before they
	// reach the model: data.standardise.
	Standardise string      `json:"standardise"`
	Method      string      `json:"method"`
	Protects    string      `json:"protects"`
	Privacy     *fl.Privacy `json:"privacy"` // null: whoever wrote the folder does not know
	Models      []Entry     `json:"models"`
	Newcomer    Role        `json:"newcomer"` // what a client gets that was not there
	ModelSHA256 string      `json:"model_sha256"`
	// PersonalSHA256 is of the participant's own model, where there is one.
	PersonalSHA256 string `json:"personal_sha256,omitempty"`
	// MergesSHA256 is of the pairs that words are made of, where there are words.
	MergesSHA256 string `json:"merges_sha256,omitempty"`
	Kernel       string `json:"kernel"`
	Version      string `json:"version"`

	merges []byte // to be written
}

// Role is what a model is for.
type Role string

// The roles of models. Means of personal models are those that the server keeps; where
// it keeps none, newcomers get the mean of what the folder holds.
const (
	RoleGlobal  Role = "global"
	RoleCluster Role = "cluster"
	RoleMean    Role = "mean"
	RoleClient  Role = "client"
)

// Entry is one model: where its parameters lie, and whose it is.
type Entry struct {
	File    string `json:"file"`
	Tensor  string `json:"tensor"`
	Role    Role   `json:"role"`
	Client  string `json:"client,omitempty"`
	Cluster *int   `json:"cluster,omitempty"`
	// Centre and Scale are tensors of the same file that the client's inputs are scaled
	// by, (x - centre)/scale, before they reach the model; empty: they are not.
	Centre string `json:"centre,omitempty"`
	Scale  string `json:"scale,omitempty"`
}

// Describe is the description of a run's models, without the models themselves: Server
// and Client add those. The encoding is nil for data that are no table.
func Describe(run config.Run, shape data.Shape, encoding *data.Encoding, privacy *fl.Privacy) (Description, error) {
	d := Description{
		Format: Format, Name: run.Name, Encoding: encoding, Shape: shape, Model: run.Model, Loss: run.Algorithm.Local.Loss,
		Precision: "float64", Standardise: cmp.Or(run.Data.Standardise, string(data.Unscaled)), Method: run.Algorithm.Kind,
		Protects: run.Privacy.Protects, Privacy: privacy, Kernel: model.Kernel(), Version: Version(), Models: []Entry{},
	}
	if name := d.Model.Name; name != "" { // a reader needs the layers, not the paper
		network, err := model.NamedNetwork(name)
		if err != nil {
			return d, err
		}
		d.Model.Name, d.Model.Layers = "", network.Layers
	}
	d.Labels = labels(run, shape, encoding)
	if d.Model.Kind == "transformer" { // likewise
		layers, err := model.TransformerLayers(d.Model, shape.Vocabulary)
		if err != nil {
			return d, err
		}
		d.Model = config.Model{Kind: "network", Layers: layers}
	}
	if shape.Pictures() || shape.Vocabulary > 0 {
		d.Precision = "float32"
	}
	switch {
	case run.Model.Kind == "projection":
		m, err := model.NewProjection(shape, run.Algorithm.Components)
		if err != nil {
			return d, err
		}
		d.Task, d.Components, d.Precision = taskProjection, m.Components, "float64"
	case encoding != nil:
		d.Task = encoding.Task
	case shape.Vocabulary > 0:
		d.Task = data.TaskWords
	case shape.Reconstruct:
		d.Task = data.TaskReconstruct
	case shape.Classes == 0:
		d.Task = data.TaskNumber
	case shape.Classes == 2:
		d.Task = data.TaskYesNo
	default:
		d.Task = data.TaskClasses
	}
	return d, nil
}

// taskProjection is that of models that give parts along directions, and no answers.
const taskProjection = "projection"

// projects says that the models are projections.
func (d *Description) projects() bool { return d.Model.Kind == "projection" }

// Server adds the models that the server keeps, hypothesis.0 and so on, and says by the
// method what a newcomer gets.
func (d *Description) Server(models int) {
	common := fl.CommonOf(d.Method)
	switch {
	case models > 1:
		d.Newcomer = RoleCluster
		for j := range models {
			d.Models = append(d.Models, Entry{File: ModelFile, Tensor: fmt.Sprintf("hypothesis.%d", j), Role: RoleCluster, Cluster: &j})
		}
	case common == fl.CommonNothing && d.projects():
		d.Newcomer = RoleClient // directions have no mean: nobody else gets any
	case common == fl.CommonNothing:
		d.Newcomer = RoleMean // of the clients' models: the server's has never been trained
	default:
		d.Newcomer = Role(common)
		d.Models = append(d.Models, Entry{File: ModelFile, Tensor: "hypothesis.0", Role: Role(common)})
	}
}

// Client adds the own model of a simulated client, with the tensors that scale its
// inputs where it has them. One without a name goes by its number.
func (d *Description) Client(i int, name string, cluster *int, scaled bool) {
	e := Entry{File: ModelFile, Tensor: fmt.Sprintf("client.%d", i), Role: RoleClient, Client: cmp.Or(name, strconv.Itoa(i)), Cluster: cluster}
	if scaled {
		e.Centre, e.Scale = e.Tensor+".centre", e.Tensor+".scale"
	}
	d.Models = append(d.Models, e)
}

// Personal adds the own model of a federation's participant.
func (d *Description) Personal(name string, scaled bool) {
	e := Entry{File: PersonalFile, Tensor: "personal.0", Role: RoleClient, Client: name}
	if scaled {
		e.Centre, e.Scale = "centre", "scale"
	}
	d.Models = append(d.Models, e)
}

// labels are the names of the target's classes: those of the run file where it has them,
// or else their numbers; nil for numbers.
func labels(run config.Run, shape data.Shape, encoding *data.Encoding) []string {
	if encoding != nil {
		return encoding.Classes
	}
	var out []string
	for k := range shape.Classes {
		if len(run.Data.Classes) == shape.Classes {
			out = append(out, string(run.Data.Classes[k]))
		} else {
			out = append(out, strconv.Itoa(k))
		}
	}
	return out
}

// claim is the privacy statement in one line.
func (d *Description) claim() string {
	p := d.Privacy
	if p == nil {
		return "not known to whoever wrote this file"
	}
	if p.Claim == event.ClaimNone {
		return string(p.Claim)
	}
	number := func(n event.Number) string { return strconv.FormatFloat(float64(n), 'g', 6, 64) }
	return fmt.Sprintf("%s: epsilon %s, delta %s, unit %s, relation %s, trust %s", p.Claim, number(p.Epsilon), number(p.Delta), p.Unit, p.Relation, p.Trust)
}

// metadata are what a file of tensors says about itself to readers that do not look for
// a description beside it.
func (d *Description) metadata(sha256 string) (map[string]string, error) {
	m := map[string]string{
		"format": Format, "task": d.Task, "intercept": strconv.FormatBool(d.Model.Intercept || d.Model.Kind == "network"), "method": d.Method,
		"privacy": d.claim(), "model_sha256": sha256, "version": d.Version,
	}
	lists := map[string][]string{"classes": d.Labels}
	if d.Encoding != nil {
		m["target"], lists["inputs"] = d.Encoding.Target, d.Encoding.Inputs
	}
	for key, list := range lists {
		if list == nil {
			continue
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("describe the models: %w", err)
		}
		m[key] = string(text)
	}
	return m, nil
}

// release is the version that a build without the repository's history was told, by
// -ldflags "-X github.com/coterie-fl/coterie/artifact.release=v1.2.3".
var release string

// Version is the program's release, or the commit's when built from a checkout.
func Version() string {
	v, _ := named()
	return v
}

// Released says that the version names the program's code: a release's, or a commit's that
// nothing was changed after.
func Released() bool {
	v, ok := named()
	return ok && !strings.Contains(v, "dirty")
}

func named() (version string, ok bool) {
	if release != "" {
		return release, true
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version, true
	}
	return "0.1.0-dev", false
}

// EncodingOf is the encoding that a run file states; nil: its data are no table.
func EncodingOf(run config.Run) (*data.Encoding, error) {
	if run.Data.Target == "" {
		return nil, nil
	}
	return data.NewEncoding(run.Data)
}

// Spent is the privacy object of a federation's models, from what participants say they
// have spent: that of the weakest claim with the largest epsilon. Nil: nobody said so.
func Spent(run config.Run, says string, spent ...event.Statement) *fl.Privacy {
	if len(spent) == 0 {
		return nil
	}
	strength := []event.Claim{event.ClaimNone, event.ClaimHeuristic, event.ClaimMetric, event.ClaimProved}
	worst, epsilons := spent[0], make([]float64, len(spent))
	for i, s := range spent {
		epsilons[i] = float64(s.Epsilon)
		if c := cmp.Compare(slices.Index(strength, s.Claim), slices.Index(strength, worst.Claim)); c < 0 || c == 0 && s.Epsilon > worst.Epsilon {
			worst = s
		}
	}
	median, most := fl.MedianAndMax(epsilons)
	return &fl.Privacy{
		Statement: worst, Protects: run.Privacy.Protects, NoiseMultiplier: event.Number(run.Privacy.NoiseMultiplier),
		MedianEpsilon: event.Number(median), MaxEpsilon: event.Number(most), Says: []string{says},
	}
}
