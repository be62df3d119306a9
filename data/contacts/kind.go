package contacts

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// The ways to give persons to clients.
const (
	Central  = "central" // one client holds all
	ByRegion = "region"  // every region's authority holds its own
	Own      = "own"     // every participant has files of its own
	usual    = 20_000    // persons, where a file does not say
)

// The households that a population may be drawn from; without a name those that are at hand.
const (
	publishedHouseholds = "published" // the challenge's
	inventedHouseholds  = "invented"  // the same everywhere
)

func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{
			Name: "pandemic", Method: "central", OwnTest: true,
			Keys:     []string{"source", "persons", "population_seed", "households", "partition", "inputs", "neighbours"},
			Settings: settings, Settle: settle,
		},
		Get:   "nothing to generate one (its households are drawn from " + HouseholdsFile + " of the data folder, or invented without it); or the challenge's eight files, or those that coterie data generate population writes, in data.source.path",
		Check: check,
		Shape: func(d config.Data) (data.Shape, bool) {
			if l, ok := layoutIn(d); ok {
				return data.Shape{Features: l.inputs(), Classes: 2, Windows: 1}, true
			}
			return data.Shape{Features: Pooled, Classes: 2, Windows: trainingWindows}, true
		},
		Load:  load,
		One:   one,
		Words: words,
	})
}

func check(c *config.Checker, d config.Data) {
	s := d.Source
	s.Path = ""
	c.Require(s == config.Source{}, "data.source", "has keys of tables; allowed for a population: path")
	c.Require(d.Partition == Central || d.Partition == ByRegion || d.Partition == Own, "data.partition", "is %q; allowed for a population: %s, %s, %s", d.Partition, Central, ByRegion, Own)
	c.Require(d.Households == "" || d.Households == publishedHouseholds || d.Households == inventedHouseholds, "data.households", "is %q; allowed: %s, %s, or none for what is at hand", d.Households, publishedHouseholds, inventedHouseholds)
	_, authors := layoutIn(d)
	c.Require(authors || d.Neighbours == 0, "data.neighbours", "is %d, but pooled inputs are sums over all contacts; allowed: 0, or data.inputs authors", d.Neighbours)
	if d.Partition == Own {
		c.Require(!authors, "data.inputs", "is %s, but what these inputs are scaled by is the population's, and nobody has all of it; allowed under data.partition %s: pooled", d.Inputs, Own)
		c.Require(d.Persons == 0 && d.PopulationSeed == 0, "data.persons", "or data.population_seed is set, but under data.partition %s participants bring files of their own; leave them out", Own)
		return
	}
	if d.Source.Path == "" {
		c.Require(d.Persons > 0, "data.persons", "is 0; allowed: 1 to %d, or the folder of a population in data.source.path", MostPersons)
		return
	}
	c.Require(d.Persons == 0, "data.persons", "is %d, but the population is read from data.source.path; remove one of them", d.Persons)
	c.Require(d.Households == "", "data.households", "is set, but the population is read from data.source.path; remove one of them")
	c.Require(d.PopulationSeed == 0, "data.population_seed", "is set, but the population is read from data.source.path; remove one of them")
}

func words(d config.Data) string {
	held := "held in one place"
	if d.Partition == ByRegion {
		held = "a client a region"
	}
	if d.Partition == Own {
		return "Populations with their contacts and an epidemic, read from files that every client has of its own"
	}
	if l, ok := layoutIn(d); ok {
		held += fmt.Sprintf("; a person is seen with %d neighbours, in %d inputs that the population scales, as the authors do", l.neighbours, l.inputs()-1)
	}
	if d.Source.Path != "" {
		return "A population with its contacts and an epidemic, read from the challenge's files, " + held
	}
	return fmt.Sprintf("A generated population of %d persons with its contacts and an epidemic, %s", max(d.Persons, 0), held)
}

// held is a population that has been read or generated, and what is said of it.
type held struct {
	graph  *Graph
	report data.LoadReport
	fitted func() *fitted // what the authors' inputs take from all of it: computed once
}

func newHeld(g *Graph, report data.LoadReport) *held {
	report.Rows, report.Kept, report.LeftOut = g.Persons(), g.Persons(), []data.LeftOut{}
	return &held{g, report, sync.OnceValue(g.fit)}
}

// layoutIn is that of a block; ok is false for pooled inputs.
func layoutIn(d config.Data) (layout, bool) {
	return layoutOf(d.Inputs, cmp.Or(d.Neighbours, usualNeighbours))
}

// load reads or generates the population, and gives its persons to clients.
func load(f *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
	if d.Partition == Own {
		return data.Kept(f, "populations "+d.Source.Path, func() (*data.Federation, error) { return loadOwn(d) })
	}
	l, authors := layoutIn(d)
	h, err := data.Kept(f, fmt.Sprint("population ", d.Source.Path, d.Persons, d.PopulationSeed, d.Households, l.scenes()), func() (*held, error) { return hold(f, d, l.scenes()) })
	if err != nil {
		return nil, err
	}
	report := h.report
	fed := &data.Federation{Features: Pooled, Classes: 2, Report: &report}
	if authors {
		fed.Features = l.inputs()
	}
	if d.Partition != ByRegion {
		client := h.graph.client("all")
		if authors {
			err = surround(&client, h.graph, nil, h.fitted(), l, seed)
		}
		fed.Train = []data.Client{client}
		return fed, err
	}
	if h.graph.ByStays {
		fed.NotCovered = append(fed.NotCovered, movedByStays)
	}
	for r := range uint8(regions) {
		// Contacts across regions are dropped: nobody holds both sides.
		if part := h.graph.Part(func(i int) bool { return h.graph.Region[i] == r }); part.Persons() > 0 {
			client := part.client(regionName(int(r)))
			client.People = trainees{g: part, ends: part.TrainingEnds(), whole: h.graph}
			if authors {
				if err := surround(&client, part, h.graph, part.fit(), l, seed); err != nil {
					return nil, err
				}
			}
			fed.Train = append(fed.Train, client)
		}
	}
	return fed, nil
}

// movedByStays is what is left open where households are not told their residences: with one
// person's stays all of its household can come to another region's client, and with them
// more examples than a claim counts.
const movedByStays = "regions: the household table has no rlid, so a household is where its members' stays say, and one person less can move all of it to another region; give the table a column rlid"

func hold(f *data.Folder, d config.Data, scenes bool) (*held, error) {
	if d.Source.Path != "" {
		g, err := read(d.Source.Path, scenes)
		if err != nil {
			return nil, err
		}
		return newHeld(g, *reportOf(d.Source.Path, g)), nil
	}
	s := Settings{Persons: d.Persons, Seed: d.PopulationSeed, Scenes: scenes}
	switch path := f.Find(HouseholdsFile); {
	case d.Households == inventedHouseholds:
		s.Households = Invented()
		s.Households.Source = "invented, as asked for"
	case path != "":
		var err error
		if s.Households, err = ReadHouseholds(path); err != nil {
			return nil, err
		}
	case d.Households == publishedHouseholds:
		return nil, fmt.Errorf("data.households is %s, but the challenge's persons (%s) are not in the data folder; docs/data.md says how to get them, or set data.households: %s", publishedHouseholds, HouseholdsFile, inventedHouseholds)
	}
	p, err := Generate(context.Background(), s)
	if err != nil {
		return nil, err
	}
	return newHeld(p.Graph(), data.LoadReport{Source: "a generated population", Notes: []string{"households: " + p.Source}}), nil
}

// client holds a graph: it trains on windows whose labels are known, and is judged by the
// days after them.
func (g *Graph) client(name string) data.Client {
	labels := make([]float64, g.Persons())
	for i := range labels {
		if _, infected := g.Label(i, g.Days); infected {
			labels[i] = 1
		}
	}
	held := data.Client{Name: name, People: g.Foretold(), Rows: data.Rows{Y: labels, Features: Pooled}}
	return data.Client{Name: name, People: g.Trainees(), Rows: data.Rows{Features: Pooled}, Held: &held}
}

// surround gives a client's people the authors' inputs.
func surround(c *data.Client, g, whole *Graph, f *fitted, l layout, seed uint64) error {
	trains, judged, err := g.neighbourly(l, f, seed)
	if err != nil {
		return err
	}
	trains.whole = whole
	c.People, c.Held.People = trains, judged
	c.Features, c.Held.Features = l.inputs(), l.inputs()
	return nil
}

// trainingWindows is how many windows have labels.
const trainingWindows = 5

// settings are those that a numerical study found to work.
func settings(r *config.Run) {
	a, p := &r.Algorithm, &r.Privacy
	r.Data.Partition, r.Data.Persons, r.Judge.By = Central, usual, "test"
	r.Model.Kind, r.Model.InitSD, r.Model.Bias = "linear", 0, -6
	a.Rounds, a.ClientsPerRound, a.Stop = 1, 0, config.Stop{Return: "last", Every: 1}
	a.Empty, a.Clustering, a.Weights = "keep", "declared", "equal"
	a.Local.Epochs, a.Local.Steps, a.Local.Batch, a.Local.Loss, a.Local.Remainder = 1, 10, 0, "cross-entropy", "drop"
	a.Local.Step, a.Local.Optimiser, a.Local.Momentum = 10, "momentum", 0.9
	p.Protects, p.Epsilon, p.Clip = "node", 1, 3
	p.Nodes = config.Nodes{Contacts: "drawn", Examples: 20}
	if p.Delta = 1.0 / usual; a.Mode == "sound" {
		p.Nodes = config.Nodes{Contacts: "nominated", Examples: 6, Take: 20}
		p.PublicSize, p.Delta = usual, 0.1/usual
	}
}

// What pulls a region's own model to the mean of all, by the same study: firmly where noise
// is strong, at epsilon 1 and below.
const firmly, loosely config.Lambda = "0.1", "0.01"

// settleRegions: regions are judged on their own people, and each is declared to be as large
// as the generator's public shares make it; those of files must be declared by their owners.
func settleRegions(r *config.Run, given func(path string) bool, sound bool) {
	if !given("judge.by") {
		r.Judge.By = "own"
	}
	if !given("algorithm.weights") {
		r.Algorithm.Weights = "counts" // small regions' noise would be as loud as large ones'
	}
	if !given("algorithm.lambda") {
		if r.Algorithm.Lambda = firmly; r.Privacy.Epsilon > 1 {
			r.Algorithm.Lambda = loosely
		}
	}
	if !sound || r.Privacy.Protects != "node" || r.Data.Persons == 0 || given("privacy.silos") {
		return
	}
	for region, share := range regionShares {
		size := max(1, int(math.Round(share*float64(r.Data.Persons))))
		own := config.SiloTarget{Name: regionName(region), PublicSize: size}
		if !given("privacy.delta") {
			own.Delta = 0.1 / float64(size)
		}
		r.Privacy.Silos = append(r.Privacy.Silos, own)
	}
}

// regionName is what the client of a region is called.
func regionName(region int) string { return fmt.Sprintf("region-%d", region) }

// settle is what follows from where the population is from, and from how many there are.
func settle(r *config.Run, given func(path string) bool) {
	if (r.Data.Source.Path != "" || r.Data.Partition == Own) && !given("data.persons") {
		r.Data.Persons = 0
	}
	p := &r.Privacy
	sound := r.Algorithm.Mode == "sound"
	if sound && r.Data.Persons > 0 && !given("privacy.public_size") {
		p.PublicSize = r.Data.Persons
	}
	if !given("privacy.delta") {
		if p.Delta = 1 / float64(max(1, r.Data.Persons)); sound { // the thesis has 1/n
			p.Delta = 0.1 / float64(max(1, p.PublicSize))
		}
	}
	if r.Data.Partition != Central {
		settleRegions(r, given, sound)
	}
	if _, ok := layoutIn(r.Data); ok && !sound {
		settleAuthors(r, given)
	}
	if given("privacy.nodes.contacts") && p.Nodes.Contacts != "nominated" {
		if p.Nodes.Take = 0; !given("privacy.nodes.examples") {
			p.Nodes.Examples = 0
		}
	}
}
