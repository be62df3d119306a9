package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// crowd is people whose first input is their place; every seventh has been ill.
type crowd int

func (c crowd) Persons() int                                        { return int(c) }
func (c crowd) ID(i int) int64                                      { return int64(10 * i) }
func (c crowd) Inputs() int                                         { return 2 }
func (c crowd) Windows() int                                        { return 1 }
func (c crowd) Under(data.NodeRule) (data.People, int, bool, error) { return c, 0, false, nil }
func (c crowd) holder(name string, labels []float64) *data.Client {
	return &data.Client{Name: name, People: c, Rows: data.Rows{Y: labels, Features: 2}}
}

func (c crowd) Input(dst []float32, i, _ int) int {
	dst[0], dst[1] = float32(i), 1
	if i%7 == 0 {
		return -1
	}
	return 0
}

func peopleFolder(t *testing.T) *Model {
	t.Helper()
	run := config.Run{Name: "test", Data: config.Data{Kind: "pandemic"}, Model: config.Model{Kind: "linear", Bias: -6}}
	run.Algorithm.Kind, run.Algorithm.Local.Loss, run.Privacy.Protects = "central", "cross-entropy", "nothing"
	d, err := Describe(run, data.Shape{Features: 2, Classes: 2, Windows: 5}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Newcomer, d.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	return folder(t, d, vector("hypothesis.0", 1e-4, -6))
}

// TestRisksOfMany: everybody has a line of its own, in order, whatever the number of people
// that are answered at once; those who were ill have no risk.
func TestRisksOfMany(t *testing.T) {
	m := peopleFolder(t)
	people := crowd(2*batchChunks*chunkRows + 5)
	labels := make([]float64, people)
	labels[people-1] = 1
	var out bytes.Buffer
	made, err := m.PredictPeople(t.Context(), &out, People{Clients: []*data.Client{people.holder("all", labels)}, Known: true})
	if err != nil || made.Rows != int(people) || len(made.Models) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != int(people)+2 || lines[0] != "pid,risk,infected" {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	for i := range int(people) {
		var risk float64
		if i%7 != 0 {
			risk = 1 / (1 + math.Exp(6-1e-4*float64(float32(i))))
		}
		if want := fmt.Sprintf("%d,%.6g,%d", 10*i, risk, int(labels[i])); lines[i+1] != want {
			t.Fatalf("line %d is %q, want %q", i+1, lines[i+1], want)
		}
	}
}

// TestRisksRefused: people of other inputs, models of others, a stop, a writer that fails.
func TestRisksRefused(t *testing.T) {
	m := peopleFolder(t)
	some := People{Clients: []*data.Client{crowd(9).holder("all", nil)}}
	if _, err := meanFolder(t, nil).PredictPeople(t.Context(), &bytes.Buffer{}, some); err == nil || !strings.Contains(err.Error(), "no models of people") {
		t.Error(err)
	}
	if _, err := m.PredictPeople(t.Context(), &bytes.Buffer{}, People{Clients: some.Clients, Known: true}); err == nil || !strings.Contains(err.Error(), "holds no people of 2 inputs") {
		t.Error(err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := m.PredictPeople(gone, &bytes.Buffer{}, some); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := m.PredictPeople(t.Context(), full{}, some); err == nil || !strings.Contains(err.Error(), "write the predictions") {
		t.Error(err)
	}
}

// full is a writer without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }
