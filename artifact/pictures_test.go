package artifact

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
)

// pictureFolder is one model for all of pictures of 1x2: each pixel is the score of a
// class, or of no class.
func pictureFolder(t *testing.T, classes int) *Model {
	t.Helper()
	run := config.Run{Name: "pictures"}
	run.Algorithm.Kind, run.Algorithm.Local.Loss = "fedavg", "cross-entropy"
	layer, theta := config.Layer{Kind: "linear", Units: 2, NoBias: true}, []float64{1, 0, 0, 1}
	if classes == 0 {
		run.Algorithm.Local.Loss = "squared-error"
		layer.Units, theta = 1, []float64{1, 1}
	} else {
		run.Data.Classes = []config.Cell{"left, or so", "right"}
	}
	run.Model = config.Model{Kind: "network", Layers: []config.Layer{layer}}
	d, err := Describe(run, data.Shape{Classes: classes, Height: 1, Width: 2, Channels: 1}, nil, &fl.Privacy{})
	if err != nil {
		t.Fatal(err)
	}
	d.Newcomer, d.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	return folder(t, d, vector("hypothesis.0", theta...))
}

// TestPictureAnswersByHand: pixels are shares of 255, scores become probabilities, and
// names of classes are quoted where they must be.
func TestPictureAnswersByHand(t *testing.T) {
	m := pictureFolder(t, 2)
	path := filepath.Join(t.TempDir(), "a-images-idx3-ubyte")
	if err := os.WriteFile(path, []byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 255, 0, 51, 204}, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	made, err := m.PredictPictures(t.Context(), &out, Pictures{Path: path, Client: "anybody"})
	if err != nil {
		t.Fatal(err)
	}
	want := "picture,\"probability left, or so\",probability right,predicted\n" +
		"0,0.731058579,0.268941421,\"left, or so\"\n" + // 1/(1+exp(-1))
		"1,0.354343708,0.645656292,right\n" // 1/(1+exp(0.8-0.2))
	if got := out.String(); strings.Count(got, "\n") != 3 || !closeTo(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if made.Rows != 2 || len(made.Models) != 1 || made.Models[0].Model != "global" || made.Models[0].Rows != 2 {
		t.Errorf("%+v", made)
	}
}

// writePair writes pictures of 1x2 and their labels as an idx pair.
func writePair(t *testing.T, pixels, labels []byte) string {
	t.Helper()
	n, dir := len(labels), t.TempDir()
	path := filepath.Join(dir, "a-images-idx3-ubyte")
	for file, text := range map[string][]byte{
		path: append([]byte{0, 0, 8, 3, 0, 0, byte(n >> 8), byte(n), 0, 0, 0, 1, 0, 0, 0, 2}, pixels...),
		filepath.Join(dir, "a-labels-idx1-ubyte"): append([]byte{0, 0, 8, 1, 0, 0, byte(n >> 8), byte(n)}, labels...),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestEvaluatePicturesByHand: of more pictures than a batch has, on all cores.
func TestEvaluatePicturesByHand(t *testing.T) {
	m := pictureFolder(t, 2)
	src := rand.New(rand.NewPCG(1, 2))
	const n = 700
	pixels, labels := make([]byte, 2*n), make([]byte, n)
	right, loss := 0, 0.0
	for i := range n {
		pixels[2*i], pixels[2*i+1], labels[i] = byte(src.IntN(128)), byte(128+src.IntN(128)), byte(src.IntN(2))
		margin := float64(pixels[2*i+1])/255 - float64(pixels[2*i])/255
		if labels[i] == 1 {
			right++
			margin = -margin
		}
		loss += math.Log1p(math.Exp(margin)) / n
	}
	got, err := m.EvaluatePictures(t.Context(), Pictures{Path: writePair(t, pixels, labels)})
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Metrics; got.Rows != n || float64(f.Accuracy.Value) != float64(right)/n || math.Abs(float64(f.LogLoss.Value)-loss) > 1e-6 {
		t.Errorf("%d pictures, accuracy %v and log loss %v; want %v and %v", got.Rows, f.Accuracy.Value, f.LogLoss.Value, float64(right)/n, loss)
	}
}

// TestPictureDoesNotChooseItsJudge: in two clusters, whose models score pixels and swapped
// pixels, one strong picture alone decides for the first, and 64 weak ones together would
// choose the second. So the strong one is judged by the second, the weak ones by the
// first, and all are wrong; a choice by all of them would have the strong one right.
func TestPictureDoesNotChooseItsJudge(t *testing.T) {
	d := pictureFolder(t, 2).Description
	zero, one := 0, 1
	d.Method, d.Newcomer = "ifca", RoleCluster
	d.Models = []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleCluster, Cluster: &zero}, {File: ModelFile, Tensor: "hypothesis.1", Role: RoleCluster, Cluster: &one}}
	m := folder(t, d, vector("hypothesis.0", 1, 0, 0, 1), vector("hypothesis.1", 0, 1, 1, 0))
	pixels, labels := bytes.Repeat([]byte{100, 103}, 65), make([]byte, 65)
	copy(pixels[2*40:], []byte{255, 0})
	p := Pictures{Path: writePair(t, pixels, labels), Client: "west"}
	got, err := m.EvaluatePictures(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != 65 || got.Metrics.Accuracy.Value != 0 || got.Clients[0].Model != "cluster 0" {
		t.Errorf("%d pictures, accuracy %v by %s", got.Rows, got.Metrics.Accuracy.Value, got.Clients[0].Model)
	}
	// Predictions are by the choice of all: the first cluster.
	for weak, want := range map[byte]string{103: "cluster 0", 105: "cluster 1"} {
		pixels := bytes.Repeat([]byte{100, weak}, 65)
		copy(pixels[2*40:], []byte{255, 0})
		made, err := m.PredictPictures(t.Context(), io.Discard, Pictures{Path: writePair(t, pixels, labels), Client: "west"})
		if err != nil || made.Models[0].Model != want {
			t.Errorf("weak pictures of %d: %+v (%v), want %s", weak, made, err, want)
		}
	}
	p.Path = writePair(t, []byte{1, 2}, []byte{0})
	if _, err := m.EvaluatePictures(t.Context(), p); err == nil || !strings.Contains(err.Error(), "west") || !strings.Contains(err.Error(), "one example each") {
		t.Errorf("a single picture: %v", err)
	}
}

// closeTo compares up to the last digits of 32-bit networks: the first 6 of each number.
func closeTo(got, want string) bool {
	for i, line := range strings.Split(want, "\n") {
		for j, cell := range strings.Split(line, ",") {
			others := strings.Split(strings.Split(got, "\n")[i], ",")
			if j >= len(others) {
				return false
			}
			if n := min(8, len(cell)); !strings.HasPrefix(others[j], cell[:n]) {
				return false
			}
		}
	}
	return true
}

// TestPicturesAndTablesAreNotMixed: each says what its models take.
func TestPicturesAndTablesAreNotMixed(t *testing.T) {
	ctx, nowhere := t.Context(), filepath.Join(t.TempDir(), "nothing")
	rows, pictures, values := meanFolder(t, nil), pictureFolder(t, 2), pictureFolder(t, 0)
	for words, do := range map[string]func() error{
		"take no pictures": func() error {
			_, err := rows.PredictPictures(ctx, io.Discard, Pictures{Path: nowhere})
			return err
		},
		"rows, and take no": func() error {
			_, err := rows.EvaluatePictures(ctx, Pictures{Path: nowhere})
			return err
		},
		"take no tables": func() error {
			_, err := pictures.PredictTable(ctx, io.Discard, Table{Source: config.Source{Path: nowhere}})
			return err
		},
		"only classes of pictures": func() error {
			_, err := values.PredictPictures(ctx, io.Discard, Pictures{Path: nowhere})
			return err
		},
		"keeps no clusters": func() error {
			_, err := pictures.EvaluatePictures(ctx, Pictures{Path: nowhere, Cluster: new(int)})
			return err
		},
		nowhere: func() error {
			_, err := pictures.EvaluatePictures(ctx, Pictures{Path: nowhere})
			return err
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if pictures.Outputs() != 2 || pictures.Examples() != "pictures" || rows.Examples() != "rows" {
		t.Errorf("%d outputs for %s, or %s", pictures.Outputs(), pictures.Examples(), rows.Examples())
	}
}
