package contacts

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestScenes: graphs with scenes have the same contacts as those without; what is generated
// is what is written and read; who meets where is where both are.
func TestScenes(t *testing.T) {
	with := generate(t, Settings{Persons: 3000, Seed: 5, Scenes: true})
	bare := *with.Graph()
	bare.Start, bare.Where, bare.Places = nil, nil, nil
	sameGraph(t, &bare, generate(t, Settings{Persons: 3000, Seed: 5}).Graph())
	dir := filepath.Join(t.TempDir(), "people")
	if _, err := with.Write(t.Context(), dir, Writing{}); err != nil {
		t.Fatal(err)
	}
	read, err := ReadScenes(dir)
	if err != nil {
		t.Fatal(err)
	}
	sameGraph(t, read, with.Graph())
	g := with.Graph()
	kinds := map[Kind]int{}
	for at, how := range g.How {
		place := g.Places[g.Where[at]]
		if place.For != how.Kind().did() {
			t.Fatalf("a contact of the kind %v in a place for %b", how.Kind(), place.For)
		}
		kinds[how.Kind()]++
	}
	if len(kinds) != 7 {
		t.Errorf("contacts of %d kinds, want 7", len(kinds))
	}

	text, err := os.ReadFile(filepath.Join(dir, networkFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(text), "\n", 3)
	cells := strings.Split(lines[1], ",")
	for want, cell := range map[string]int{"place 99999999 is neither in": 2, "start_time is \"99999999\"": 3} {
		bad := slices.Clone(cells)
		bad[cell] = "99999999"
		write(t, filepath.Join(dir, networkFile), lines[0]+"\n"+strings.Join(bad, ",")+"\n"+lines[2])
		if _, err := ReadScenes(dir); !says(err, want) || !says(err, networkFile) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := Read(dir); err != nil {
			t.Errorf("nobody asked for scenes: %v", err)
		}
	}
}

// TestAuthorsInputs: an input is, value by value, what the thesis says of a person and its
// neighbours, in every layout; places without a neighbour are 0.
func TestAuthorsInputs(t *testing.T) {
	g := generate(t, Settings{Persons: 1500, Seed: 5, Scenes: true}).Graph()
	f := g.fit()
	for kind, each := range map[string]int{NodeInputs: 73, DoingInputs: 82, WholeInputs: 90, AuthorsInputs: 83} {
		l, ok := layoutOf(kind, 20)
		if !ok || l.inputs() != 11+20*each+1 {
			t.Fatalf("%s: %d inputs", kind, l.inputs())
		}
		trains, judged, err := g.neighbourly(l, f, 3)
		if err != nil {
			t.Fatal(err)
		}
		alone := 0
		got := slices.Repeat([]float32{7}, l.inputs()) // of somebody else
		for i := 0; i < g.Persons(); i += 13 {
			label := judged.Input(got, i, 0)
			if want := slices.Concat(wantedInput(g, f, trains.kept, l, i, g.Days), []float32{1}); !slices.Equal(got, want) {
				t.Fatalf("%s, person %d: differs", kind, i)
			}
			if want, _ := g.Label(i, g.Days); (label == 1) != (want && g.Positive(i)) || label < 0 {
				t.Fatalf("person %d has the label %d", i, label)
			}
			if n := trains.kept.Offsets[i+1] - trains.kept.Offsets[i]; n < 20 {
				alone++
			} else if n > 20 {
				t.Fatalf("%d neighbours", n)
			}
		}
		if alone == 0 {
			t.Error("nobody has fewer than 20 neighbours: empty places were not tried")
		}
	}
	if _, ok := layoutOf(PooledInputs, 20); ok {
		t.Error("pooled inputs have a layout of neighbours")
	}
	few := *g
	few.Days = 27
	if _, _, err := few.neighbourly(layout{neighbours: 20}, f, 3); !says(err, "27 days are known") || !says(err, "28 or more would do") {
		t.Errorf("too few days: %v", err)
	}
}

// wantedInput is written from the thesis, without the constant.
func wantedInput(g *Graph, f *fitted, k *Kept, l layout, i, end int) []float32 {
	state := func(j, day int) []float32 {
		switch {
		case g.Infected[j]>>day&1 == 1:
			return []float32{0, 1, 0}
		case g.Recovered[j]>>day&1 == 1:
			return []float32{0, 0, 1}
		}
		return []float32{1, 0, 0}
	}
	all := slices.Clone(f.nodes[10*i : 10*i+10])
	healthy := float32(1)
	for day := end - 21; day < end; day++ {
		if state(i, day)[0] == 0 {
			healthy = 0
		}
	}
	all = append(all, healthy)
	for at := k.Offsets[i]; at < k.Offsets[i+1]; at++ {
		j := int(k.Other[at])
		all = append(all, f.nodes[10*j:10*j+10]...)
		for day := end - 21; day < end; day++ {
			all = append(all, state(j, day)...)
		}
		if l.time {
			all = append(all, float32(k.Start[at])*12/86400, float32(k.How[at].Seconds())/86400)
		}
		if l.doing {
			one := make([]float32, 7)
			one[k.How[at].Kind()-1] = 1
			all = append(all, one...)
		}
		if l.places {
			p := g.Places[k.Where[at]]
			all = append(all, f.longitude.of(float64(p.Longitude)), f.latitude.of(float64(p.Latitude)))
			for bit := range 6 {
				all = append(all, indicator(p.For&(1<<bit) != 0))
			}
		}
	}
	return append(all, make([]float32, l.inputs()-1-len(all))...)
}

// TestFitted: ages have mean 0 and deviation 1, degree and rank go from 0 to 1, the power of
// Box and Cox is the likeliest of a grid, and ranks are what they say they are.
func TestFitted(t *testing.T) {
	g := village(600, 12, 4)
	f := g.fit()
	column := func(c int) (all []float64) {
		for i := range g.ID {
			all = append(all, float64(f.nodes[10*i+c]))
		}
		return all
	}
	age := scalingOf(600, func(i int) float64 { return column(0)[i] })
	if math.Abs(age.mean) > 1e-6 || math.Abs(age.deviation-1) > 1e-6 {
		t.Errorf("ages: %+v", age)
	}
	for _, c := range []int{8, 9} {
		if all := column(c); slices.Min(all) != 0 || slices.Max(all) != 1 {
			t.Errorf("column %d goes from %v to %v", c, slices.Min(all), slices.Max(all))
		}
	}
	ranks := g.pageRank()
	total := 0.0
	for i, rank := range ranks {
		want := 0.15 / 600
		others, _ := g.Contacts(i)
		for _, j := range others {
			theirs, _ := g.Contacts(int(j))
			want += 0.85 * ranks[j] / float64(len(theirs))
		}
		if total += rank; math.Abs(rank-want) > 1e-6/10 {
			t.Fatalf("rank of %d is %v, by its neighbours %v", i, rank, want)
		}
	}
	if math.Abs(total-1) > 1e-9 {
		t.Errorf("ranks add up to %v", total)
	}
	sizes := g.boxCox()
	best, at := math.Inf(-1), 0.0
	for l := -2.0; l <= 2; l += 0.01 {
		var sum, squares, logs float64
		for _, s := range g.Size {
			sum += (math.Pow(float64(s), l) - 1) / l / 600
			logs += math.Log(float64(s))
		}
		for _, s := range g.Size {
			d := (math.Pow(float64(s), l)-1)/l - sum
			squares += d * d / 600
		}
		if likely := (l-1)*logs - 300*math.Log(squares); likely > best {
			best, at = likely, l
		}
	}
	if want := (math.Pow(5, at) - 1) / at; math.Abs(float64(sizes[5])-want) > 0.02*want {
		t.Errorf("5 persons become %v, by the grid's best power %.2f %v", sizes[5], at, want)
	}
	same := &Graph{Size: []uint8{3, 3}}
	if v := same.boxCox(); math.IsNaN(float64(v[3])) || math.IsInf(float64(v[3]), 0) {
		t.Errorf("households all alike: %v", v[3])
	}
}

// TestWindowsAreDrawn: windows differ from step to step, are the same for the same step, and
// begin uniformly on 29 days. The statistic is chi squared of 28 degrees; its bound is passed
// by chance once in a million.
func TestWindowsAreDrawn(t *testing.T) {
	g := village(400, 6, 4)
	g.Infected[9], g.Recovered[9] = 1<<20, -(1<<21)&(1<<knownDays-1)
	l, _ := layoutOf(NodeInputs, 1)
	rows := make([][]contact, 400) // nobody meets anybody but 9, who falls ill on day 20
	for i := range rows {
		if i != 9 {
			rows[i] = []contact{{9, howOf(Home, 60)}}
		}
	}
	g.setRows(rows)
	trains, _, err := g.neighbourly(l, &fitted{nodes: make([]float32, 4000)}, 7)
	if err != nil {
		t.Fatal(err)
	}
	begins := func(step uint64, i int) int { // by where in the window day 20 is, or how many are of the recovered
		x := make([]float32, l.inputs())
		data.InStep(trains, step).Input(x, i, 0)
		ill := 0
		for day := range 21 {
			if x[11+10+3*day] == 0 {
				ill++
			}
		}
		return ill - 1 // day 20 is the last of a window that begins on day 0
	}
	var count [29]float64
	moved := 0
	for step := range uint64(40) {
		for i := 10; i < 400; i += 3 {
			b := begins(step, i)
			if b != begins(step, i) {
				t.Fatal("the same step draws another window")
			}
			if b < 20 {
				count[b]++ // later ones all show 21 days
			}
			if b != begins(step+1, i) {
				moved++
			}
		}
	}
	draws := 40 * 130.0
	chi := 0.0
	for _, c := range count[:20] {
		chi += (c - draws/29) * (c - draws/29) / (draws / 29)
	}
	if chi > 75 || moved < int(draws/2) {
		t.Errorf("windows: chi squared %.1f of %v, %d moved", chi, count[:20], moved)
	}
}

// TestNeighboursUnderARule: the authors' own draw stays, others draw anew, and nothing is
// proved of either.
func TestNeighboursUnderARule(t *testing.T) {
	g := village(800, 30, 4)
	l, _ := layoutOf(NodeInputs, 4)
	trains, _, err := g.neighbourly(l, g.fit(), 7)
	if err != nil {
		t.Fatal(err)
	}
	same, most, proved, err := trains.Under(data.NodeRule{Relation: Authors, Most: 4, Key: 99})
	if err != nil || most != 4 || proved || same.(neighbourhoods).kept != trains.kept {
		t.Errorf("the authors' own: %d, %v, %v", most, proved, err)
	}
	capped, most, proved, err := trains.Under(data.NodeRule{Relation: Pruned, Most: 3, Longest: true})
	if err != nil || most != 3 || proved || reflect.DeepEqual(capped.(neighbourhoods).kept, trains.kept) {
		t.Errorf("pruned: %d, %v, %v", most, proved, err)
	}
	if _, most, proved, err := trains.Under(data.NodeRule{Relation: HomeRemoval, Most: 5}); err != nil || proved {
		t.Errorf("a rule with a theorem, on inputs without: %d, %v, %v", most, proved, err)
	}
	if _, _, _, err := trains.Under(data.NodeRule{Relation: "nothing", Most: 3}); err == nil {
		t.Error("an unknown rule")
	}
}

// TestAuthorsSettings: who asks for the authors' inputs gets their settings, as far as the
// file does not say otherwise, and clients with as many inputs, by region too.
func TestAuthorsSettings(t *testing.T) {
	run, err := config.Resolve([]byte("data: {kind: pandemic, persons: 700, inputs: authors, neighbours: 5}\nalgorithm: {local: {step: 0.1}}\nprivacy: {clip: 5}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := run.Algorithm.Local
	if a.Loss != "focal" || a.Batch != 512 || a.Step != 0.1 || a.Epochs != 2 || a.Steps != 0 || a.Optimiser != "sgd" || run.Model.Bias != 0 || run.Privacy.Clip != 5 || run.Privacy.Nodes.Examples != 5 {
		t.Errorf("%+v, %+v, %+v", a, run.Model, run.Privacy)
	}
	if pooled, err := config.Resolve([]byte("data: {kind: pandemic, persons: 700}\n"), nil); err != nil || pooled.Algorithm.Local.Batch != 0 || pooled.Model.Bias != -6 {
		t.Errorf("pooled inputs have the authors' settings: %+v, %v", pooled.Algorithm.Local, err)
	}
	for _, partition := range []string{Central, ByRegion} {
		run.Data.Partition = partition
		fed, err := (*data.Folder)(nil).Load(run.Data, 1)
		if err != nil {
			t.Fatal(err)
		}
		shape, whole := data.ShapeOf(run.Data)
		if !whole || shape != fed.Shape() || shape.Features != 11+5*83+1 || shape.Windows != 1 {
			t.Errorf("%s: %+v, and told %+v", partition, fed.Shape(), shape)
		}
		for _, c := range fed.Train {
			if c.People.Inputs() != shape.Features || c.Held.People.Inputs() != shape.Features || GraphOf(c.People).Persons() < 700 {
				t.Errorf("%s: %d inputs", c.Name, c.People.Inputs())
			}
		}
	}
	some := &data.Client{People: mustNeighbours(t), Rows: data.Rows{Features: 11 + 73 + 1}}
	part := some.Pick([]int{5, 3, 8})
	x, y := make([]float32, 85), make([]float32, 85)
	data.InStep(part.People, 4).Input(x, 1, 0)
	data.InStep(some.People, 4).Input(y, 3, 0)
	if !slices.Equal(x, y) {
		t.Error("some of the people have other windows than all of them")
	}
}

func mustNeighbours(t *testing.T) data.People {
	t.Helper()
	g := village(200, 6, 4)
	l, _ := layoutOf(NodeInputs, 1)
	trains, _, err := g.neighbourly(l, g.fit(), 7)
	if err != nil {
		t.Fatal(err)
	}
	return trains
}

// TestScenesStayWithContacts: a contact that is kept, or that a region keeps, has the scene
// that the graph has for it.
func TestScenesStayWithContacts(t *testing.T) {
	g := generate(t, Settings{Persons: 800, Seed: 5, Scenes: true}).Graph()
	type met struct {
		a, b  int64
		how   How
		start uint16
		where uint32
	}
	all := func(ids []int64, offsets []int64, other []uint32, how []How, start []uint16, where []uint32) map[met]int {
		count := map[met]int{}
		for i := range ids {
			for at := offsets[i]; at < offsets[i+1]; at++ {
				count[met{ids[i], ids[other[at]], how[at], start[at], where[at]}]++
			}
		}
		return count
	}
	whole := all(g.ID, g.Offsets, g.Other, g.How, g.Start, g.Where)
	within := func(name string, part map[met]int) {
		if len(part) == 0 || len(part) == len(whole) {
			t.Fatalf("%s: %d of %d contacts", name, len(part), len(whole))
		}
		for m, n := range part {
			if whole[m] < n {
				t.Fatalf("%s has %+v, the graph has not", name, m)
			}
		}
	}
	k, err := Rule{Relation: Authors, Most: 5}.Of(g)
	if err != nil {
		t.Fatal(err)
	}
	within("a draw", all(g.ID, k.Offsets, k.Other, k.How, k.Start, k.Where))
	p := g.Part(func(i int) bool { return i%3 > 0 })
	within("a part", all(p.ID, p.Offsets, p.Other, p.How, p.Start, p.Where))
}
