package participant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
)

// fuzzer draws plans, broadcasts and records that an attacker might choose.
type fuzzer struct{ *rand.Rand }

func pick[T any](f fuzzer, of ...T) T { return of[f.IntN(len(of))] }

// magnitude is of any size that a float64 can have, small ones and round ones often.
func (f fuzzer) magnitude() float64 {
	switch f.IntN(4) {
	case 0:
		return pick(f, 0, 1, 1e3, 1e9, 1e150, 1e160, 1e305, math.MaxFloat64, math.SmallestNonzeroFloat64)
	case 1:
		return math.Exp(f.NormFloat64() * 5)
	case 2:
		return math.Pow(10, f.Float64()*600-300)
	}
	return f.Float64()
}

func (f fuzzer) value() float64 { return f.magnitude() * pick(f, -1.0, 1.0) }

// plan is a run file, and how many features its rows have.
func (f fuzzer) plan() (text string, features int, group bool) {
	step := pick(f, 0.01, 0.5, 10, 1e6)
	if f.IntN(3) == 0 {
		return fmt.Sprintf(`seed: %d
data: {kind: synthetic, users: 3, samples: 5}
algorithm: {kind: group-private, mode: sound, hypotheses: %d, rounds: %d, clients_per_round: 3, local: {epochs: %d, step: %v}}
privacy: {noise_multiplier: %v, radius: %v, radius_decay: %v, noise: exact}
`, f.IntN(100), 1+f.IntN(4), 1+f.IntN(3), 1+f.IntN(4), step, pick(f, 1.0, 5, 50), pick(f, 1e-6, 0.3, 1e3), pick(f, 1, 0.9)), 2, true
	}
	kind := pick(f, "fedavg", "ifca", "mr-mtl", "ditto", "mocha", "finetune", "mr-mtl", "fedavg")
	features, standardise := 3, "none"
	if f.IntN(3) == 0 {
		features, standardise = 28, "paid"
	}
	relation := pick(f, "relation: add-remove, public_size: 20", "relation: replace-one")
	extra := ""
	switch {
	case kind == "ifca":
		extra = ", hypotheses: 3"
	case kind == "mr-mtl":
		extra = ", lambda: " + pick(f, "0.1", "auto", "1") + ", prox: " + pick(f, "outside", "inside", "server")
		step = pick(f, 0.01, 0.5)
	case kind == "ditto" || kind == "mocha":
		extra, step = ", lambda: 0.5", pick(f, 0.01, 0.5)
	}
	network := ""
	if standardise == "none" && f.IntN(3) == 0 {
		network = "model: {kind: network, layers: [" + f.layers() + "]}\n"
	}
	return fmt.Sprintf(`seed: %d
data: {kind: school, standardise: %s}
%salgorithm: {kind: %s, mode: sound, rounds: %d, weights: equal%s, local: {epochs: 1, step: %v, batch: %d}}
privacy: {%s, epsilon: %v, delta: 1.0e-4, clip: %v, noise: exact}
`, f.IntN(100), standardise, network, kind, 1+f.IntN(2), extra, step, pick(f, 5, 20), relation, pick(f, 0.5, 3, 100), pick(f, 1e-3, 1, 1e3)), features, false
}

// layers are those of a network, which may be one that cannot read every row.
func (f fuzzer) layers() string {
	var all []string
	if f.IntN(2) == 0 {
		all = append(all, fmt.Sprintf("{kind: embedding, vocabulary: %d, units: %d}", words, 1+f.IntN(3)))
	}
	for range f.IntN(3) {
		all = append(all, pick(f, "{kind: tanh}", "{kind: relu}", "{kind: gelu}", "{kind: linear, units: 4}, {kind: layer-norm}", "{kind: linear, units: 2, each: true}",
			"{kind: residual, inner: [{kind: linear, units: 3, each: true}], shortcut: [{kind: linear, units: 3, each: true, no_bias: true}]}"))
	}
	return strings.Join(append(all, "{kind: linear, units: 1}"), ", ")
}

// words is how many a network that reads words knows.
const words = 2

// rows are ordinary ones, or some that an attacker might hope for.
func (f fuzzer) rows(n, features int, odd bool) *data.Client {
	r := data.Rows{Features: features}
	for range n {
		for range features {
			if odd {
				r.X = append(r.X, f.value())
			} else {
				r.X = append(r.X, f.NormFloat64())
			}
		}
		if odd {
			r.Y = append(r.Y, f.value())
		} else {
			r.Y = append(r.Y, f.Float64())
		}
	}
	return &data.Client{Rows: r}
}

// neighbours are two datasets between which the plan's claim must hide: one record
// more or replaced by another, or, where updates are protected, any two at all.
func (f fuzzer) neighbours(text string, features int, group bool) (a, b *data.Client) {
	if group {
		return f.rows(5+f.IntN(5), features, true), f.rows(5+f.IntN(5), features, true)
	}
	a = f.rows(22, features, f.IntN(3) == 0)
	if strings.Contains(text, "embedding") && f.IntN(3) > 0 {
		for i := range a.X {
			a.X[i] = float64(f.IntN(words))
		}
	}
	one := f.rows(1, features, true)
	b = &data.Client{Rows: data.Rows{Features: features, X: append([]float64(nil), a.X...), Y: append([]float64(nil), a.Y...)}}
	if strings.Contains(text, "add-remove") {
		b.X, b.Y = append(b.X, one.X...), append(b.Y, one.Y...)
	} else {
		copy(b.X[7*features:], one.X)
		b.Y[7] = one.Y[0]
	}
	return a, b
}

// broadcasts are what the rounds begin with: mostly what a participant would accept,
// with values as the attacker likes them; sometimes not.
func (f fuzzer) broadcasts(a *fl.Algorithm, rounds int) [][]byte {
	var out [][]byte
	for round := range rounds {
		st := a.Start()
		st.Round = round
		small := f.IntN(4) > 0
		for i := range st.Hypotheses {
			v := f.value()
			if small { // within what participants take
				v = math.Remainder(v, 1e9)
			}
			if f.IntN(3) > 0 {
				st.Hypotheses[i] = v
			}
		}
		b, err := a.Broadcast(st) // rounded to the lattice, as an honest server does
		if err != nil {
			b = fl.Broadcast{Round: round, Hypotheses: st.Hypotheses, Memory: st.Memory}
		}
		for i := range b.Memory {
			if f.IntN(4) == 0 {
				b.Memory[i] = f.value()
			}
		}
		switch f.IntN(30) {
		case 0:
			b.Radius = f.magnitude()
		case 1:
			b.Hypotheses = b.Hypotheses[1:]
		case 2:
			b.Memory = append(b.Memory, f.value())
		case 3:
			b.Hypotheses[0] = math.NaN()
		case 4:
			b.Round += 1 - f.IntN(3)
		}
		out = append(out, transfer.EncodeBroadcast(b))
	}
	return out
}
