package participant

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/model"
)

// lastRowRun is a run file on a table, with its task, method, local settings and
// standardisation open.
const lastRowRun = `seed: 4
data:
  kind: table
  target: y
  %s
  standardise: %s
  features: [{name: a, type: number, range: [0, 1000]}, {name: b, type: category, values: [x, z]}]
model: %s
algorithm: {mode: sound, rounds: 2, weights: equal, %s, local: {epochs: 1, step: 0.1, batch: 10, %s}}
privacy: {relation: add-remove, public_size: 20, epsilon: 2, delta: 1.0e-4, clip: 1, noise: exact}
`

const (
	yesNoTask   = "task: yes/no"
	classesTask = "task: classes\n  classes: [no, yes, maybe]"
	numberTask  = "task: number\n  target_range: [0, 1]"
	linearModel = "{kind: linear}"
	hidden      = "{kind: network, layers: [{kind: linear, units: 3}, {kind: tanh}, {kind: linear, units: %d}]}"
)

// rowFor finds a value of the column a with which a row is held out, or trains.
func rowFor(t *testing.T, run config.Run, label string, held bool) string {
	t.Helper()
	k, err := data.KindOf(run.Data)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "one.csv")
	for a := range 100 {
		row := fmt.Sprintf("%d,x,%s\n", a, label)
		if err := os.WriteFile(path, []byte("a,b,y\n"+row), 0o600); err != nil {
			t.Fatal(err)
		}
		d := run.Data
		d.Source.Path = path
		f, err := k.One(d, run.Seed, "north")
		if err != nil {
			t.Fatal(err)
		}
		if (f.Train[0].Held.Len() == 1) == held {
			return row
		}
	}
	t.Fatal("no row is dealt so: the draw does not depend on the row")
	return ""
}

// TestLastRowIsNotSeen: a participant whose rows are all held out joins, trains and
// answers as one with a single row to train on does, whatever is trained.
func TestLastRowIsNotSeen(t *testing.T) {
	for name, c := range map[string]struct{ task, standardise, model, method, local string }{
		"logistic":   {yesNoTask, "none", linearModel, "kind: fedavg", "loss: cross-entropy"},
		"hinge":      {yesNoTask, "none", linearModel, "kind: fedavg", "loss: hinge"},
		"focal":      {yesNoTask, "none", linearModel, "kind: mr-mtl, lambda: 0.1", "loss: focal"},
		"weighted":   {yesNoTask, "none", linearModel, "kind: mr-mtl, lambda: auto", "class_weights: [1, 5]"},
		"inside":     {yesNoTask, "none", linearModel, "kind: mr-mtl, lambda: 0.1, prox: inside", "loss: cross-entropy"},
		"server":     {yesNoTask, "none", linearModel, "kind: mr-mtl, lambda: 0.1, prox: server", "loss: cross-entropy"},
		"paid":       {yesNoTask, "paid", linearModel, "kind: mr-mtl, lambda: 0.1", "loss: cross-entropy"},
		"ditto":      {yesNoTask, "none", linearModel, "kind: ditto, lambda: 0.5", "loss: cross-entropy"},
		"mocha":      {yesNoTask, "none", linearModel, "kind: mocha, lambda: 0.5", "loss: cross-entropy"},
		"finetune":   {yesNoTask, "none", linearModel, "kind: finetune", "loss: cross-entropy"},
		"by error":   {yesNoTask, "none", linearModel, "kind: ifca, hypotheses: 2, selection: {score: error}", "loss: cross-entropy"},
		"by loss":    {yesNoTask, "none", linearModel, "kind: ifca, hypotheses: 2, selection: {score: loss}", "loss: cross-entropy"},
		"number":     {numberTask, "none", linearModel, "kind: mr-mtl, lambda: 0.1", "loss: half-squared-error"},
		"softmax":    {classesTask, "none", linearModel, "kind: mr-mtl, lambda: 0.1", "loss: cross-entropy"},
		"network":    {classesTask, "none", fmt.Sprintf(hidden, 3), "kind: fedavg", "loss: cross-entropy"},
		"one output": {yesNoTask, "none", fmt.Sprintf(hidden, 1), "kind: fedavg", "loss: focal"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(lastRowRun, c.task, c.standardise, c.model, c.method, c.local)
			run, err := plan.Resolve([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			label := "yes"
			if run.Data.Task == data.TaskNumber {
				label = "0.7"
			}
			held := rowFor(t, run, label, true)
			rows := "a,b,y\n" + held
			sameSeen(t, text, ownTable(t, text, rows), ownTable(t, text, rows+rowFor(t, run, label, false)))
		})
	}
}

// ownTable reads a participant's table.
func ownTable(t *testing.T, run, rows string) *Own {
	t.Helper()
	s := ownFiles(t, rows)
	if err := os.WriteFile(s.Run, []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := ReadOwn(s, "north", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// sameSeen lets participants with nothing and with one example to train on meet a server.
func sameSeen(t *testing.T, text string, none, one *Own) {
	t.Helper()
	if none.examples.Len() != 0 || one.examples.Len() != 1 {
		t.Fatalf("%d and %d examples to train on; want 0 and 1", none.examples.Len(), one.examples.Len())
	}
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	shape, _ := data.ShapeOf(run.Data)
	w := newHostileWorld(t)
	h, a, ok := w.ask(text, shape)
	if !ok {
		t.Fatal("the plan is refused")
	}
	st := a.Start()
	for round := range run.Algorithm.Rounds + 1 { // and what the run ends with
		st.Round = round
		b, err := a.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		h.broadcasts = append(h.broadcasts, transfer.EncodeBroadcast(b))
	}
	m, err := model.Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	models, err := transfer.ModelFile(st.Hypotheses, m.Parameters())
	if err != nil {
		t.Fatal(err)
	}
	last := len(h.broadcasts) - 1
	h.end, h.broadcasts = [][]byte{h.broadcasts[last], models}, h.broadcasts[:last]
	want := strings.Join(w.observe(h, one.examples), "\n")
	if w.err != nil {
		t.Error(w.err)
	}
	blank := w.blank
	got := strings.Join(w.observe(h, none.examples), "\n")
	if got != want || strings.Count(got, "offer of round") != run.Algorithm.Rounds {
		t.Errorf("without a row:\n%s\nwith one:\n%s", got, want)
	}
	if w.err != nil {
		t.Error(w.err)
	}
	if blank != 0 || w.blank != 0 {
		t.Errorf("%d releases are blank with a row, %d without: training does not work on so few", blank, w.blank)
	}
}

// TestLastPictureIsNotSeen is the same of pictures.
func TestLastPictureIsNotSeen(t *testing.T) {
	const text = `seed: 4
data: {kind: pictures, height: 2, width: 2, channels: 1, classes: [cat, dog]}
model: {kind: network, layers: [{kind: linear, units: 2}]}
algorithm: {kind: fedavg, mode: sound, rounds: 2, weights: equal, local: {epochs: 1, step: 0.1, batch: 10}}
privacy: {relation: add-remove, public_size: 20, epsilon: 2, delta: 1.0e-4, clip: 1, noise: exact}
`
	read := func(shades ...uint8) *Own {
		s := ownFiles(t, "")
		s.Source.Path = filepath.Join(filepath.Dir(s.Run), "pictures")
		for _, class := range []string{"cat", "dog"} {
			if err := os.MkdirAll(filepath.Join(s.Source.Path, class), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for i, shade := range shades {
			grey := image.NewGray(image.Rect(0, 0, 2, 2))
			grey.SetGray(0, 0, color.Gray{shade})
			file, err := os.Create(filepath.Join(s.Source.Path, "cat", fmt.Sprintf("%d.png", i)))
			if err != nil {
				t.Fatal(err)
			}
			if err := png.Encode(file, grey); err != nil {
				t.Fatal(err)
			}
			file.Close()
		}
		if err := os.WriteFile(s.Run, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		own, err := ReadOwn(s, "north", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
	var held, trains []uint8
	for shade := range uint8(100) {
		if read(shade).examples.Len() == 0 {
			held = append(held, shade)
		} else {
			trains = append(trains, shade)
		}
		if len(held) > 0 && len(trains) > 0 {
			break
		}
	}
	sameSeen(t, text, read(held[0]), read(held[0], trains[0]))
}
