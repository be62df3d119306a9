package participant

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// vectorOf are the values of an upload.
func vectorOf(upload []byte) []float64 {
	out := make([]float64, len(upload)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(upload[8*i:]))
	}
	return out
}

// TestOneRowBlanksNothing: the model is the server's, and it may be one that cannot read every row. One
// row that is no word counts for nothing, and does not keep all the others from being trained on: that
// would be seen in a single release, whatever its noise.
func TestOneRowBlanksNothing(t *testing.T) {
	const run = `seed: 3
data: {kind: school, standardise: none}
model: {kind: network, layers: [{kind: embedding, vocabulary: 2, units: 1}, {kind: linear, units: 1}]}
algorithm: {kind: fedavg, mode: sound, rounds: 1, weights: equal, local: {epochs: 1, step: 1, batch: 2000}}
privacy: {protects: example, relation: add-remove, public_size: 2000, epsilon: 1, delta: 1.0e-5, clip: 1, noise: exact}
`
	w := newHostileWorld(t)
	h, a, ok := w.ask(run, data.Shape{Features: 3})
	if !ok {
		t.Fatal("the plan is refused")
	}
	b, err := a.Broadcast(a.Start())
	if err != nil {
		t.Fatal(err)
	}
	h.broadcasts = [][]byte{transfer.EncodeBroadcast(b)}
	r := rand.New(rand.NewPCG(1, 2))
	rows := data.Rows{Features: 3}
	for range 2000 {
		for range 3 {
			rows.X = append(rows.X, float64(r.IntN(2)))
		}
		rows.Y = append(rows.Y, 1)
	}
	more := data.Rows{Features: 3, X: append(rows.X[:len(rows.X):len(rows.X)], 0, 0.5, 1), Y: append(rows.Y[:2000:2000], 1)}
	for name, rows := range map[string]data.Rows{"without": rows, "with": more} {
		w.observe(h, &data.Client{Rows: rows})
		if len(h.uploads) != 1 || w.blank != 0 {
			t.Fatalf("%s the row: %d releases, %d blank: %v", name, len(h.uploads), w.blank, w.err)
		}
		moved := 0.0
		for i, v := range vectorOf(h.uploads[0]) {
			moved += (v - b.Hypotheses[i]) * (v - b.Hypotheses[i])
		}
		if moved = math.Sqrt(moved); moved < 0.3 { // 0.57 with the rows, 0.005 with none
			t.Errorf("%s the row the release is %.4f from the broadcast", name, moved)
		}
	}
}

// TestOneRowLessChoosesNothing: hypotheses at which rounding decides a row's class, and rows that are all
// alike. If what is said of a row followed from how many there are, one row less would turn the choice,
// whatever it was charged. A false alarm, fewer than 20 of 80 choices for one of two equals, has chance 7e-6.
func TestOneRowLessChoosesNothing(t *testing.T) {
	const run = `seed: 3
data: {kind: table, target: y, task: yes/no, features: [{name: a, type: number, range: [0, 1]}, {name: b, type: number, range: [0, 1]}]}
model: {kind: network, layers: [{kind: linear, units: 1, no_bias: true}]}
algorithm: {kind: ifca, hypotheses: 2, mode: sound, rounds: 1, weights: equal, clustering: declared, selection: {rule: private, score: error, epsilon_share: 0.5}, local: {epochs: 1, step: 0.1, batch: 10, loss: cross-entropy}}
privacy: {protects: example, relation: add-remove, public_size: 10, epsilon: 2, delta: 1.0e-5, clip: 1, noise: exact}
`
	w := newHostileWorld(t)
	h, a, ok := w.ask(run, data.Shape{Features: 2, Classes: 2})
	if !ok {
		t.Fatal("the plan is refused")
	}
	x := 1 - 0x1p-30
	state := a.Start()
	copy(state.Hypotheses, []float64{-(x * x), x, 0, 1})
	b, err := a.Broadcast(state)
	if err != nil {
		t.Fatal(err)
	}
	h.broadcasts = [][]byte{transfer.EncodeBroadcast(b)}
	const trials = 80
	for _, n := range []int{10, 11} {
		c, first := &data.Client{Rows: data.Rows{Features: 2}}, 0
		for range n {
			c.X, c.Y = append(c.X, 1, x), append(c.Y, 1)
		}
		for range trials {
			w.observe(h, c)
			if len(h.uploads) != 1 {
				t.Fatal(w.err, h.seen)
			}
			if out := vectorOf(h.uploads[0]); out[2+1] == 0 { // the declared cluster
				first++
			}
		}
		if first < trials/4 || first > trials*3/4 {
			t.Errorf("%d rows: the first of two models that are equally good is declared in %d of %d rounds", n, first, trials)
		}
	}
}
