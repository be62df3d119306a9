package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// writeIDXSet writes a set of pictures of 28 by 28 as four idx files: picture i of a part
// has the value i in its first pixel, and the class i%10.
func writeIDXSet(t *testing.T, folder, set string, train, test int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, set), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, n := range map[string]int{"train": train, "t10k": test} {
		images := append([]byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 28, 0, 0, 0, 28}, make([]byte, n*784)...)
		labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
		for i := range n {
			images[16+i*784] = byte(i)
			labels = append(labels, byte(i%10))
		}
		for name, raw := range map[string][]byte{"-images-idx3-ubyte.gz": images, "-labels-idx1-ubyte.gz": labels} {
			if err := os.WriteFile(filepath.Join(folder, set, part+name), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOneClientHoldsAll: everything to train on is one client's, the test part is what it
// holds out, a limit takes a part by the seed, and no pixel is copied.
func TestOneClientHoldsAll(t *testing.T) {
	for _, kind := range []string{"mnist", "fashion-mnist"} {
		folder := t.TempDir()
		writeIDXSet(t, folder, kind, 40, 20)
		files := NewFolder(folder)
		d := config.Default(kind, "", "sound").Data
		f, err := files.Load(d, 1)
		if err != nil {
			t.Fatal(err)
		}
		all := &f.Train[0]
		if len(f.Train) != 1 || len(f.Validation) != 0 || all.Name != "all" || all.Len() != 40 || all.Held.Len() != 20 || f.Classes != 10 || f.Report.Kept != 60 {
			t.Fatalf("%s: %d clients, %q with %d and %d of %d classes; %s", kind, len(f.Train), all.Name, all.Len(), all.Held.Len(), f.Classes, f.Report)
		}
		if shape, whole := ShapeOf(d); !whole || shape.Height != f.Shape().Height || shape.Classes != f.Classes {
			t.Errorf("%s: announced %+v, has %+v", kind, shape, f.Shape())
		}
		for i, at := range all.Index {
			if at != i || all.Images.picture(at)[0] != byte(i) || all.Images.Labels[at] != i%10 {
				t.Fatalf("%s: example %d is picture %d of class %d", kind, i, all.Images.picture(at)[0], all.Images.Labels[at])
			}
		}
		again, err := files.Load(d, 2)
		if err != nil || &again.Train[0].Images.Pixels[0] != &all.Images.Pixels[0] || &again.Train[0].Held.Images.Pixels[0] != &all.Held.Images.Pixels[0] {
			t.Errorf("%s: a second run has pixels of its own: %v", kind, err)
		}
		d.TrainLimit = 7
		one, two := limited(t, files, d, 1), limited(t, files, d, 2)
		if len(one) != 7 || !slices.IsSorted(one) || slices.Equal(one, two) || !slices.Equal(one, limited(t, files, d, 1)) {
			t.Errorf("%s: of a limit of 7 there are %v with seed 1, %v with seed 2", kind, one, two)
		}
	}
}

// limited are the examples that are left, by their places.
func limited(t *testing.T, files *Folder, d config.Data, seed uint64) []int {
	t.Helper()
	f, err := files.Load(d, seed)
	if err != nil {
		t.Fatal(err)
	}
	c := &f.Train[0]
	if c.Held.Len() != 20 || f.Report.Kept != c.Len()+20 || f.Report.Count(leftOverLimit) != 40-c.Len() {
		t.Errorf("a limit of %d: %d held out; %s", d.TrainLimit, c.Held.Len(), f.Report)
	}
	return c.Index
}

// TestPicturesThatAreTheirOwnTargets: there are no classes then, neither in the shape nor
// in the summary, and no value stands in for them.
func TestPicturesThatAreTheirOwnTargets(t *testing.T) {
	folder := t.TempDir()
	writeIDXSet(t, folder, "fashion-mnist", 12, 4)
	d := config.Data{Kind: "fashion-mnist", Task: TaskReconstruct}
	f, err := NewFolder(folder).Load(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	announced, whole := ShapeOf(d)
	announced.Channels = 0
	if got := f.Shape(); !whole || got != announced || !got.Reconstruct || got.Classes != 0 {
		t.Errorf("announced %+v, has %+v", announced, got)
	}
	if s := f.Summary(d).Clients[0]; s.Rows != 16 || s.HeldOut != 4 || s.Classes != nil || s.Mean != nil || s.SD != nil {
		t.Errorf("%+v", s)
	}
}

// TestCentralSettings: what a file on such data need not say, by protection and mode.
func TestCentralSettings(t *testing.T) {
	for _, v := range []struct {
		text string
		step float64
		size int
	}{
		{"data: {kind: mnist}", 30, 0},
		{"data: {kind: mnist}\nalgorithm: {mode: sound}", 30, 60000},
		{"data: {kind: mnist}\nprivacy: {protects: nothing}", 0.03, 0},
		{"data: {kind: mnist}\nprivacy: {protects: nothing}\nalgorithm: {local: {step: 0.5}}", 0.5, 0},
	} {
		run, err := config.Resolve([]byte(v.text), nil, Check)
		if err != nil {
			t.Fatalf("%s: %v", v.text, err)
		}
		p := run.Privacy
		if run.Algorithm.Local.Step != v.step || p.PublicSize != v.size || p.Epsilon != 3 || p.Delta != 1e-5 || run.Judge.By != "test" || run.Data.TestShare != 0 {
			t.Errorf("%s: step %v, public size %d, epsilon %v, delta %v, judged by %s, test share %v", v.text, run.Algorithm.Local.Step, p.PublicSize, p.Epsilon, p.Delta, run.Judge.By, run.Data.TestShare)
		}
	}
	text := "data: {kind: fashion-mnist, task: reconstruct}\n"
	run, err := config.Resolve([]byte(text+"model: {kind: network}\n"), nil, Check)
	if err != nil || run.Algorithm.Kind != "central" || run.Model.Name != "autoencoder" || run.Algorithm.Local.Loss != "squared-error" {
		t.Errorf("%s: %+v, loss %s, %v", text, run.Model, run.Algorithm.Local.Loss, err)
	}
	text += "model: {kind: network, layers: [{kind: linear, units: 784}]}\nalgorithm: {local: {loss: half-squared-error}}\n"
	run, err = config.Resolve([]byte(text), nil, Check)
	if err != nil || run.Model.Name != "" || len(run.Model.Layers) != 1 || run.Algorithm.Local.Loss != "half-squared-error" {
		t.Errorf("%s: %+v, loss %s, %v", text, run.Model, run.Algorithm.Local.Loss, err)
	}
	for text, says := range map[string]string{
		"data: {kind: fashion-mnist, task: number}":     "allowed for fashion-mnist: classes, reconstruct",
		"data: {kind: mnist, task: reconstruct}":        "data.task: is set, but data of the kind mnist do not read it",
		"data: {kind: fashion-mnist, task: reconstuct}": "data.task",
	} {
		if _, err := config.Resolve([]byte(text), nil, Check); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, wanted %q", text, err, says)
		}
	}
	_, err = config.Resolve([]byte("data: {kind: mnist, test_share: 0.2}"), nil, Check)
	if err == nil || !strings.Contains(err.Error(), "data.test_share: is set, but data of the kind mnist do not read it") {
		t.Errorf("a share of MNIST held out: %v", err)
	}
}

// TestRealCentralSets: the public sizes that noise follows from are those of the files.
func TestRealCentralSets(t *testing.T) {
	folder := NewFolder(realData(t))
	for kind, classes := range map[string]int{"mnist": 10, "fashion-mnist": 10, "agnews": 4} {
		run := config.Default(kind, "", "sound")
		f, err := folder.Load(run.Data, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := &f.Train[0]
		if c.Len() != run.Privacy.PublicSize || c.Held.Len() < 7600 || f.Classes != classes || f.Report.Kept != c.Len()+c.Held.Len() {
			t.Errorf("%s: %d and %d examples of %d classes, public size %d; %s", kind, c.Len(), c.Held.Len(), f.Classes, run.Privacy.PublicSize, f.Report)
		}
	}
}
