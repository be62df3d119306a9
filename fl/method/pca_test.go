package method_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/fl/method"
	_ "github.com/coterie-fl/coterie/fl/protect"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// stretched draws rows whose first features vary the most: feature j with deviation
// 1/(j+1), turned so that no direction is a feature's own.
func stretched(seed uint64, rows, features int) data.Client {
	family := rng.NewFamily(seed, "stretched rows")
	s := family.Stream(0, 0)
	c := data.Client{Rows: data.Rows{Features: features, Y: make([]float64, rows)}}
	for range rows {
		x := make([]float64, features)
		for j := range x {
			x[j] = s.Normal() / float64(j+1)
		}
		for j := 1; j < features; j++ { // a turn by 45 degrees
			x[j-1], x[j] = (x[j-1]+x[j])/math.Sqrt2, (x[j-1]-x[j])/math.Sqrt2
		}
		c.X = append(c.X, x...)
	}
	return c
}

func pcaRun(kind, protects string) config.Run {
	run := config.Default("school", kind, "sound")
	run.Privacy.Protects, run.Privacy.Epsilon, run.Privacy.Delta, run.Privacy.Clip = protects, 1, 1e-5, 2
	run.Privacy.Relation, run.Data.Standardise, run.Algorithm.Components = "add-remove", "none", 2
	if protects == "nothing" {
		run.Privacy.Epsilon = 0
	}
	return run
}

// componentsOf has silos find components.
func componentsOf(t *testing.T, run config.Run, silos ...data.Client) (*fl.Algorithm, *fl.State, []fl.Participant) {
	t.Helper()
	m, err := model.NewProjection(data.Shape{Features: silos[0].Features}, run.Algorithm.Components)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, m, len(silos))
	if err != nil {
		t.Fatal(err)
	}
	st, r := a.Start(), fl.Releases{}
	ps := make([]fl.Participant, len(silos))
	for i := range silos {
		ps[i] = *fltest.Prepared(t, a, fl.Participant{ID: i, Name: fmt.Sprint("silo ", i), Data: &silos[i]})
		out, released := fltest.Respond(t, a, st, &ps[i])
		if !released {
			t.Fatalf("silo %d releases nothing", i)
		}
		r.Clients, r.Vectors = append(r.Clients, i), append(r.Vectors, out...)
	}
	if out := a.Aggregate(st, r); out.Err != nil {
		t.Fatal(out.Err)
	}
	return a, st, ps
}

// TestComponentsAreThoseOfAllRows: directions are at right angles, of length 1, and what
// power iteration finds on everybody's rows together, however these are dealt to silos.
func TestComponentsAreThoseOfAllRows(t *testing.T) {
	const d = 6
	all := stretched(1, 400, d)
	run := pcaRun("pca", "nothing")
	a, st, _ := componentsOf(t, run, all)
	p := a.Model().(model.Projection)
	w, values := p.Directions(st.Hypotheses), p.Eigenvalues(st.Hypotheses)
	times := func(v []float64) []float64 { // second moments times v
		out := make([]float64, d)
		for i := range all.Len() {
			x, along := all.X[i*d:(i+1)*d], 0.0
			for j := range x {
				along += x[j] * v[j]
			}
			for j := range x {
				out[j] += along * x[j]
			}
		}
		return out
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	for k := range 2 {
		v := w[k*d : (k+1)*d]
		image := times(v)
		if value := dot(v, image); math.Abs(value-values[k]) > 1e-9*values[0] || math.Abs(dot(v, v)-1) > 1e-12 {
			t.Errorf("direction %d has length %v and eigenvalue %v, said to be %v", k, dot(v, v), value, values[k])
		}
		for j := range image {
			if math.Abs(image[j]-values[k]*v[j]) > 1e-9*values[0] {
				t.Errorf("direction %d is turned by the matrix: %v to %v", k, v, image)
			}
		}
		if slices.Max(v) < -slices.Min(v) {
			t.Errorf("the largest part of %v is negative", v)
		}
	}
	if !(values[0] > values[1]) || math.Abs(dot(w[:d], w[d:2*d])) > 1e-12 {
		t.Errorf("eigenvalues %v, directions %v at right angles", values, dot(w[:d], w[d:2*d]))
	}
	top := make([]float64, d) // power iteration
	top[0] = 1
	for range 500 {
		top = times(top)
		for n, j := math.Sqrt(dot(top, top)), 0; j < d; j++ {
			top[j] /= n
		}
	}
	if math.Abs(math.Abs(dot(top, w[:d]))-1) > 1e-9 {
		t.Errorf("power iteration finds %v, pca %v", top, w[:d])
	}
	_, dealt, _ := componentsOf(t, run, all.Pick(upTo(0, 10)), all.Pick(upTo(10, 300)), all.Pick(upTo(300, 400)))
	for i, v := range dealt.Hypotheses {
		if math.Abs(v-st.Hypotheses[i]) > 1e-9*max(1, values[0]) {
			t.Fatalf("dealt to silos, value %d is %v, not %v", i, v, st.Hypotheses[i])
		}
	}
}

func upTo(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// TestOneRowMovesTheReleaseByItsClip: with the same noise, a release and that of a
// neighbour differ by no more than noise was drawn for; a blank one has the same noise
// around nothing. Wild rows are clipped, too.
func TestOneRowMovesTheReleaseByItsClip(t *testing.T) {
	const d = 5
	for relation, most := range map[string]float64{"add-remove": 4, "replace-one": 4 * math.Sqrt2} {
		run := pcaRun("pca", "example")
		run.Privacy.Relation, run.Privacy.Noise = relation, fl.NoiseSeeded
		release := func(c data.Client, blank bool) []float64 {
			m := model.Projection{Features: d, Components: 2}
			a, err := fl.New(run, m, 1)
			if err != nil {
				t.Fatal(err)
			}
			p := fltest.Prepared(t, a, fl.Participant{Data: &c, Blank: blank})
			out, _ := fltest.Respond(t, a, a.Start(), p)
			return out
		}
		one := stretched(2, 30, d)
		other := one.Pick(upTo(0, 29))
		if relation == "replace-one" {
			other = one.Pick(upTo(0, 30))
			copy(other.X[29*d:], []float64{0, 0, 0, 0, 1e300})
		}
		copy(one.X[29*d:], []float64{1e300, 0, 0, 0, 0})
		if blank := release(one, true); slices.Equal(blank, make([]float64, len(blank))) {
			t.Error("a blank participant's release has no noise")
		}
		a, b, sum := release(one, false), release(other, false), 0.0
		for i := range a {
			square := (a[i] - b[i]) * (a[i] - b[i])
			if i >= d {
				square *= 2
			}
			sum += square
		}
		if moved := math.Sqrt(sum); moved > most || moved < 0.999*most {
			t.Errorf("%s: one row moves the release by %v; at a clip of 2 it may be %v, and these rows reach it", relation, moved, most)
		}
	}
}

// TestComponentsArePaidFor: one release of Gaussian noise for the target, told before it
// is made; replace-one costs sqrt(2) times the noise of add-remove, not twice; a purse
// that refuses lets nothing out; steps have no part in it.
func TestComponentsArePaidFor(t *testing.T) {
	const d = 4
	silo := stretched(3, 50, d)
	noise := map[string][]float64{}
	for _, relation := range []string{"add-remove", "replace-one"} {
		run := pcaRun("pca", "example")
		run.Privacy.Relation = relation
		a, err := fl.New(run, model.Projection{Features: d, Components: 2}, 1)
		if err != nil {
			t.Fatal(err)
		}
		purse := new(fltest.Purse)
		p := fltest.Prepared(t, a, fl.Participant{Data: &silo, Purse: purse, Blank: true})
		told, rounds, err := a.PriceAhead(p, 0)
		if err != nil || rounds != 1 {
			t.Fatalf("%d rounds are priced, %v", rounds, err)
		}
		out, _ := fltest.Respond(t, a, a.Start(), p)
		noise[relation] = out
		if len(purse.Asked) != 1 || fmt.Sprint(purse.Asked[0]) != fmt.Sprint(told) || purse.Asked[0].Claim != event.ClaimProved || string(purse.Asked[0].Relation) != relation {
			t.Errorf("told was %v, paid %v", told, purse.Asked)
		}
		once := event.Repeated{Times: 1, Of: event.Sampled{Sampling: event.FullBatch, Of: mech.Gaussian{Multiplier: p.Plan.Noise}.Event()}}
		if want := (event.Composed{Parts: []event.Event{once}}); !reflect.DeepEqual(purse.Asked[0].What, event.Event(want)) {
			t.Errorf("paid for %v, drawn is %v", purse.Asked[0].What, want)
		}
		spent, proved, err := a.Spend(p)
		if err != nil || proved != nil || spent.Epsilon > 1 || spent.Epsilon < 0.99 || spent.Claim != event.ClaimProved || spent.Unit != event.UnitExample {
			t.Errorf("spent is %+v, %v", spent, err)
		}
		p = fltest.Prepared(t, a, fl.Participant{Data: &silo, Purse: &fltest.Purse{Err: fl.ErrRefused}})
		if out, released := fltest.Respond(t, a, a.Start(), p); released || !slices.Equal(out, make([]float64, len(out))) {
			t.Errorf("refused, but %v left", out)
		}
	}
	for i, v := range noise["add-remove"] { // the same normal values
		if ratio := noise["replace-one"][i] / v; math.Abs(ratio-math.Sqrt2) > 1e-3 {
			t.Fatalf("replace-one has %v times the noise of add-remove, want sqrt(2)", ratio)
		}
	}
}

// TestComponentsAlone: nothing is sent, and everybody has directions of its own.
func TestComponentsAlone(t *testing.T) {
	silos := []data.Client{stretched(4, 60, 4), stretched(5, 60, 4)}
	clear(silos[1].X)
	for i := range 60 {
		silos[1].X[i*4+3] = float64(i % 3)
	}
	run := pcaRun("pca-local", "nothing")
	a, st, ps := componentsOf(t, run, silos...)
	if a.ReleaseLength() != 0 {
		t.Errorf("%d values are sent", a.ReleaseLength())
	}
	b := fltest.Broadcast(t, a, st)
	own := make([]float64, a.Model().Parameters())
	a.Adopt(own, b, &ps[1], nil)
	if math.Abs(own[3]-1) > 1e-12 || math.Abs(own[0]) > 1e-12 {
		t.Errorf("rows along the last feature have the first direction %v", own[:4])
	}
	a.Adopt(own, b, &ps[0], nil)
	if math.Abs(own[3]) > 0.9 {
		t.Errorf("another silo has the same direction %v", own[:4])
	}
}

// TestForgedMoments: what a server is sent instead of finite sums is an error, and the
// projection stays as it was.
func TestForgedMoments(t *testing.T) {
	run := pcaRun("pca", "nothing")
	a, err := fl.New(run, model.Projection{Features: 3, Components: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	st := a.Start()
	before := slices.Clone(st.Hypotheses)
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e308} {
		forged := slices.Repeat([]float64{bad}, a.ReleaseLength())
		if out := a.Aggregate(st, fl.Releases{Clients: []int{0}, Vectors: forged}); out.Err == nil || !slices.Equal(before, st.Hypotheses) {
			t.Errorf("%v: %v, %v", bad, out.Err, st.Hypotheses)
		}
	}
	if out := a.Aggregate(st, fl.Releases{}); out.Err != nil || !slices.Equal(before, st.Hypotheses) {
		t.Errorf("nobody released anything: %v", out.Err)
	}
	p := model.Projection{Features: 2, Components: 2}
	theta := make([]float64, p.Parameters())
	if err := method.Components(theta, []float64{1, -3, 0}, p); err != nil || p.Eigenvalues(theta)[1] != 0 {
		t.Errorf("a negative eigenvalue is shown as %v, %v", p.Eigenvalues(theta), err)
	}
	if err := method.Components(theta, []float64{1}, p); err == nil {
		t.Error("a torn triangle is taken")
	}
	if bounds := a.ReleaseBounds(); len(bounds) != 1 || bounds[0].To != 6 {
		t.Errorf("bounds of a release of 6 values are %v", bounds)
	}
}
