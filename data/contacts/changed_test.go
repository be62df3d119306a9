package contacts

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// told are the examples of a graph by the rules' words, one at a time and slowly: what the
// fast code must agree with, and what can be asked again around a person who goes.
type told struct {
	g      *Graph
	rule   Rule
	rows   [][]contact
	offers [][]contact // the first of everybody's list; nil: not asked for yet
	whole  [][]contact // examples while nobody is away; nil: not asked for yet
	lots   map[string]lot
}

func newTold(g *Graph, r Rule) *told {
	d := &told{g: g, rule: r, rows: g.rows(), offers: make([][]contact, g.Persons()), whole: make([][]contact, g.Persons()), lots: map[string]lot{}}
	for _, purpose := range []string{"offer", "take", "draw", "pair"} {
		d.lots[purpose] = newLot(r.Key, purpose)
	}
	d.lots["thin"] = secretLot(r.Secret)
	return d
}

// first are the first so many of person i's contacts.
func (d *told) first(purpose string, i, most int, row []contact) []contact {
	if len(row) <= most {
		return row
	}
	lot := d.lots[purpose]
	draws := map[uint32]uint64{}
	for _, c := range row {
		a, b := d.g.ID[i], d.g.ID[c.other]
		if purpose == "pair" {
			a, b = min(a, b), max(a, b)
		}
		draws[c.other] = lot.draw(a, b)
	}
	row = slices.Clone(row)
	slices.SortStableFunc(row, func(a, b contact) int {
		longer := 0
		if d.rule.Longest {
			longer = cmp.Compare(b.how.Seconds(), a.how.Seconds())
		}
		return cmp.Or(longer, cmp.Compare(draws[a.other], draws[b.other]))
	})
	return row[:most]
}

// firstOfList is first of a person's whole list, remembered until forgotten.
func (d *told) firstOfList(purpose string, i, most int) []contact {
	if d.offers[i] == nil {
		d.offers[i] = append([]contact{}, d.first(purpose, i, most, d.rows[i])...)
	}
	return d.offers[i]
}

// example is person i's, sorted.
func (d *told) example(i int) (kept []contact) {
	r := d.rule
	switch r.Relation {
	case OwnRecord:
		for at, c := range d.rows[i] { // who offers itself to i is in i's list, too
			if at > 0 && d.rows[i][at-1].other == c.other {
				continue
			}
			for _, offer := range d.firstOfList("offer", int(c.other), r.Most-1) {
				if int(offer.other) == i {
					kept = append(kept, contact{c.other, offer.how})
				}
			}
		}
		slices.SortFunc(kept, byContact)
		kept = d.first("take", i, r.Take, kept)
	case HomeRemoval:
		for _, c := range d.rows[i] {
			if c.how.Kind() == Home && d.g.Household[i] == d.g.Household[c.other] && int(d.g.Size[i]) <= r.Most {
				kept = append(kept, c)
			}
		}
	case ThinnedRemoval:
		lot := d.lots["thin"]
		for _, c := range d.rows[i] {
			if float64(lot.draw(d.g.ID[i], d.g.ID[c.other]))/0x1p64 < r.Keep {
				kept = append(kept, c)
			}
		}
	case Pruned:
		for _, c := range d.rows[i] { // of two that last as long and are with the same person either both are or none
			amongFirst := func(of int, other uint32) bool {
				return slices.ContainsFunc(d.firstOfList("pair", of, r.Most-1), func(f contact) bool { return f.other == other && f.how.Seconds() == c.how.Seconds() })
			}
			if amongFirst(i, c.other) && amongFirst(int(c.other), uint32(i)) {
				kept = append(kept, c)
			}
		}
	case Authors:
		kept = d.firstOfList("draw", i, r.Most)
	}
	kept = append([]contact{}, kept...)
	slices.SortFunc(kept, byContact)
	return kept
}

// absence is what goes with a person under a relation: its record, or all of it.
type absence bool

const (
	ofRecord absence = false
	ofPerson absence = true
)

func (a absence) from(g *Graph, j int) *Graph {
	if a == ofPerson {
		return g.removed(j)
	}
	return g.emptied(j)
}

// absenceOf is what the rule's relation is about.
func absenceOf(r Rule) absence { return r.Relation != OwnRecord }

// changed are the examples, person j's own first, that are others without j: of everybody
// within two hops, asked before and after.
func (d *told) changed(j int, a absence) []int {
	near := map[int]bool{}
	for _, c := range d.rows[j] {
		near[int(c.other)] = true
		for _, next := range d.rows[c.other] {
			near[int(next.other)] = true
		}
	}
	delete(near, j)
	for i := range near {
		if d.whole[i] == nil {
			d.whole[i] = d.example(i)
		}
	}
	undo := map[int][]contact{j: d.rows[j]}
	d.rows[j] = nil
	if a == ofPerson {
		for _, c := range undo[j] {
			i := int(c.other)
			if _, done := undo[i]; !done {
				undo[i] = d.rows[i]
				d.rows[i] = slices.DeleteFunc(slices.Clone(d.rows[i]), func(c contact) bool { return int(c.other) == j })
			}
		}
	}
	forget := func() {
		for i := range undo {
			d.offers[i] = nil
		}
	}
	forget()
	others := []int{}
	for i := range near {
		was := d.whole[i]
		holds := slices.ContainsFunc(was, func(c contact) bool { return int(c.other) == j })
		if holds || !slices.Equal(was, d.example(i)) {
			others = append(others, i)
		}
	}
	forget()
	for i, row := range undo {
		d.rows[i] = row
	}
	slices.Sort(others)
	return append([]int{j}, others...)
}

// rebuilt are the same by building all examples anew, and by their features, too.
func rebuilt(g *Graph, was *Kept, build func(g *Graph) Kept, j int, a absence) []int {
	other := a.from(g, j)
	is := build(other)
	others := []int{}
	for i := range g.Persons() {
		moved := i
		if a == ofPerson && i > j {
			moved--
		}
		if i != j && (!slices.Equal(named(g, was, i), named(other, &is, moved)) || !sameFeatures(g, was, i, other, &is, moved)) {
			others = append(others, i)
		}
	}
	return append([]int{j}, others...)
}

// named are the contacts in person i's example by the others' numbers in the files.
func named(g *Graph, k *Kept, i int) (all [][2]int64) {
	others, hows := k.Contacts(i)
	for at, other := range others {
		all = append(all, [2]int64{g.ID[other], int64(hows[at])})
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return all
}

func sameFeatures(g *Graph, k *Kept, i int, other *Graph, otherKept *Kept, moved int) bool {
	var a, b [Pooled]float32
	for _, end := range g.TrainingEnds() {
		g.Fill(a[:], k, i, end)
		other.Fill(b[:], otherKept, moved, end)
		_, label := g.Label(i, end)
		_, otherLabel := other.Label(moved, end)
		if a != b || label != otherLabel {
			return false
		}
	}
	return true
}

// rules are one of each relation, and others of the same.
func rules() map[string]Rule {
	return map[string]Rule{
		"own record, longest first": {Relation: OwnRecord, Most: 6, Take: 4, Key: 5, Longest: true},
		"own record, by hash":       {Relation: OwnRecord, Most: 4, Take: 3, Key: 6},
		"home":                      {Relation: HomeRemoval, Most: 4},
		"thinned":                   {Relation: ThinnedRemoval, Keep: 0.2, Degree: hubContacts + 150, Secret: [16]byte{7}},
		"pruned":                    {Relation: Pruned, Most: 6, Key: 8, Longest: true},
		"authors":                   {Relation: Authors, Most: 6, Key: 9},
	}
}

// built are all examples, or the test ends.
func built(t *testing.T, r Rule, g *Graph) Kept {
	t.Helper()
	k, err := r.Of(g)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestExamplesAreAsTold: the fast code keeps what the rules' words say, for everybody.
func TestExamplesAreAsTold(t *testing.T) {
	g := village(1500, 12, 2)
	for name, r := range rules() {
		k, d := built(t, r, g), newTold(g, r)
		for i := range g.Persons() {
			others, hows := k.Contacts(i)
			kept := []contact{}
			for at, j := range others {
				kept = append(kept, contact{j, hows[at]})
			}
			slices.SortFunc(kept, byContact)
			if want := d.example(i); !slices.Equal(kept, want) {
				t.Fatalf("%s: the example of person %d has %v, want %v", name, i, kept, want)
			}
		}
	}
}

// who goes: the hub, some whom it meets, and others at random.
func whoGoes(g *Graph, count int, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 2))
	hub := g.Persons() / 2
	met, _ := g.Contacts(hub)
	all := []int{hub}
	for at := range min(count/10, len(met)) {
		all = append(all, int(met[at*len(met)/(count/10)]))
	}
	for len(all) < count {
		all = append(all, random.IntN(g.Persons()))
	}
	return all
}

// TestRecountsAreRebuilds: what changes is found within two hops of who goes, all of it.
func TestRecountsAreRebuilds(t *testing.T) {
	g := village(1000, 10, 3)
	for name, r := range rules() {
		d, was := newTold(g, r), built(t, r, g)
		for _, j := range whoGoes(g, 12, 3) {
			near, all := d.changed(j, absenceOf(r)), rebuilt(g, &was, func(g *Graph) Kept { return built(t, r, g) }, j, absenceOf(r))
			if !slices.Equal(near, all) {
				t.Fatalf("%s: without person %d %v change, by a full rebuild %v", name, j, near, all)
			}
		}
	}
}

// TestChangesAreWithinTheClaim: no absence changes more examples than the relation's
// theorem says, the hub's and those of people it meets included, and just those that held
// the person do.
func TestChangesAreWithinTheClaim(t *testing.T) {
	sizes, neighbours, count := []int{1000, 2000, 4000}, 10, 60
	if *soak {
		sizes, neighbours, count = []int{5000, 20_000, 80_000}, 50, 10_000
	}
	for name, r := range rules() {
		most, proved := r.Examples()
		if !proved {
			continue
		}
		reached := 0
		for _, persons := range sizes {
			g := village(persons, neighbours, uint64(persons))
			k, d := built(t, r, g), newTold(g, r)
			holders := k.holders()
			for _, j := range whoGoes(g, count, uint64(persons)) {
				changed := d.changed(j, absenceOf(r))
				if len(changed) > most {
					t.Fatalf("%s: without person %d of %d %d examples change, the claim is %d", name, j, persons, len(changed), most)
				}
				if held := append([]int{j}, holders[j]...); !slices.Equal(changed, held) { // an offer that was not taken changes nothing
					t.Fatalf("%s: without person %d of %d %v change, but it was in %v", name, j, persons, changed, held)
				}
				reached = max(reached, len(changed))
			}
			t.Logf("%s, %d persons, %d absences: at most %d examples changed so far, the claim is %d", name, persons, count, reached, most)
		}
		if reached < most && r.Relation != ThinnedRemoval {
			t.Errorf("%s: at most %d examples changed, so %d is not shown to be needed", name, reached, most)
		}
	}
}

// holders are, for every person, the others whose examples hold it.
func (k *Kept) holders() map[int][]int {
	in := map[int][]int{}
	for i := range len(k.Offsets) - 1 {
		others, _ := k.Contacts(i)
		for _, j := range others {
			if held := in[int(j)]; len(held) == 0 || held[len(held)-1] != i {
				in[int(j)] = append(held, i)
			}
		}
	}
	return in
}
