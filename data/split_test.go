package data

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// exampleBytes are a client's examples, as what a split draws from.
func exampleBytes(c *Client) []string {
	var out []string
	for i := range c.Len() {
		out = append(out, string(c.appendBytes(i, nil)))
	}
	return out
}

// TestEveryKindCanHoldOutOwnExamples: what trains and what is held out make up what was
// there, share no example, and nothing else changes; with a share of 0 nobody is asked.
func TestEveryKindCanHoldOutOwnExamples(t *testing.T) {
	folder := NewFolder(os.Getenv("COTERIE_DATA"))
	const share = 0.3
	for _, kind := range config.DataKinds() {
		d := config.Default(kind, "", "paper").Data
		if kinds[kind].OwnTest {
			continue // tests of their own
		}
		d.Samples, d.Set = 25, "mnist"
		if kind != "synthetic" && folder == nil {
			t.Logf("%s: no real data", kind)
			continue
		}
		whole, err := folder.Load(d, 5)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		d.TestShare = share
		f, err := folder.Load(d, 5)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if len(f.Train) != len(whole.Train) || !reflect.DeepEqual(f.Validation, whole.Validation) || !slices.Equal(f.NotCovered, []string{notHeldOut}) {
			t.Fatalf("%s: other clients than before; not covered: %v", kind, f.NotCovered)
		}
		examples, held := 0, 0
		for i := range f.Train {
			c, before := &f.Train[i], &whole.Train[i]
			if before.Held != nil || c.Held == nil || c.Len() == 0 || c.Group != before.Group || c.Name != before.Name {
				t.Fatalf("%s, client %d: %d examples, %q in group %d; without a share it holds out %v", kind, i, c.Len(), c.Name, c.Group, before.Held)
			}
			trains, apart := exampleBytes(c), exampleBytes(c.Held)
			for _, x := range apart {
				if slices.Contains(trains, x) {
					t.Fatalf("%s, client %d trains on what it holds out", kind, i)
				}
			}
			all, was := slices.Concat(trains, apart), exampleBytes(before)
			slices.Sort(all)
			slices.Sort(was)
			if !slices.Equal(all, was) {
				t.Fatalf("%s, client %d: %d and %d examples of %d", kind, i, len(trains), len(apart), len(was))
			}
			examples, held = examples+len(was), held+len(apart)
		}
		// Tiny clients that keep all lower the mean (hospitals have 1 to 4 rows), and
		// equal rows stay together (COMPAS has many).
		if got := float64(held) / float64(examples); math.Abs(got-share) > 0.06 {
			t.Errorf("%s: %d of %d examples are held out", kind, held, examples)
		}
	}
}

// TestOneExampleMoreMovesNoOther, be they rows or pictures.
func TestOneExampleMoreMovesNoOther(t *testing.T) {
	im := &Images{Height: 2, Width: 2}
	var rows Rows
	rows.Features = 2
	var index []int
	for i := range 200 {
		im.Pixels, im.Labels = append(im.Pixels, byte(i), byte(i*7), 3, 4), append(im.Labels, i%10)
		rows.X, rows.Y = append(rows.X, float64(i), 1), append(rows.Y, float64(i%3))
		index = append(index, i)
	}
	for name, all := range map[string]Client{
		"rows":     {Rows: rows, Name: "a"},
		"pictures": {Pictures: Pictures{im, index}, Name: "a"},
	} {
		split := func(c Client) (trains, apart []string) {
			f := &Federation{Train: []Client{c}}
			f.holdOut(9, 0.25)
			return exampleBytes(&f.Train[0]), exampleBytes(f.Train[0].Held)
		}
		trains, apart := split(all)
		if len(apart) < 20 || len(trains) < 120 {
			t.Fatalf("%s: %d and %d", name, len(trains), len(apart))
		}
		for gone := range all.Len() {
			rest := slices.Delete(slices.Clone(index), gone, gone+1)
			missing := string(all.appendBytes(gone, nil))
			a, b := split(all.Pick(rest))
			without := func(list []string) []string {
				return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == missing })
			}
			if !slices.Equal(a, without(trains)) || !slices.Equal(b, without(apart)) {
				t.Fatalf("%s: without example %d others moved", name, gone)
			}
		}
		other := all
		other.Name = "b"
		if _, b := split(other); slices.Equal(apart, b) {
			t.Errorf("%s: another client's name draws the same", name)
		}
	}
}

func TestWhoWouldTrainOnNothingKeepsAll(t *testing.T) {
	f := &Federation{}
	for i := range 100 {
		f.Train = append(f.Train, Client{Rows: Rows{X: []float64{float64(i)}, Y: []float64{1}, Features: 1}, Group: i})
	}
	f.holdOut(1, 0.9)
	for i := range f.Train {
		if c := &f.Train[i]; c.Len() != 1 || c.Held == nil || c.Held.Len() != 0 || c.Held.Features != 1 {
			t.Fatalf("client %d has %d examples and holds out %+v", i, c.Len(), c.Held)
		}
	}
}

// TestTestShareIsCheckedAndTold: silos must hold something out, others may.
func TestTestShareIsCheckedAndTold(t *testing.T) {
	for text, want := range map[string]string{
		"data: {kind: school, test_share: 0}":      "are judged on what they hold out",
		"data: {kind: school, test_share: 1}":      "allowed: 0 or more, less than 1",
		"data: {kind: synthetic, test_share: 1}":   "allowed: 0 or more, less than 1",
		"data: {kind: synthetic, test_share: 0.2}": "",
		"data: {kind: writers, test_share: 0.2}":   "",
		"data: {kind: writers, test_share: 0}":     "",
	} {
		_, err := config.Resolve([]byte(text), nil, Check)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, kind := range config.DataKinds() {
		d := config.Default(kind, "", "paper").Data
		k, err := KindOf(d)
		if err != nil || strings.Contains(k.Words(d), "holds out") {
			t.Errorf("%s: %q, %v", kind, k.Words(d), err)
		}
		d.TestShare = 0.125
		if told := strings.Contains(k.Words(d), "holds out 12.5 % of its own examples"); told == k.OwnTest {
			t.Errorf("%s: %q", kind, k.Words(d))
		}
	}
}
