package contacts

import (
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// The ways to give persons to clients.
const (
	Central  = "central" // one client holds all
	ByRegion = "region"  // every region's authority holds its own
	usual    = 20_000    // persons, where a file does not say
)

func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{
			Name: "pandemic", Method: "central", OwnTest: true,
			Keys:     []string{"source", "persons", "population_seed", "partition"},
			Settings: settings, Settle: settle,
		},
		Get:   "nothing to generate one (its households are drawn from " + HouseholdsFile + " of the data folder, or invented without it); or the challenge's eight files, or those that coterie data generate population writes, in data.source.path",
		Check: check,
		Shape: func(config.Data) (data.Shape, bool) {
			return data.Shape{Features: Pooled, Classes: 2, Windows: trainingWindows}, true
		},
		Load:  load,
		Words: words,
	})
}

func check(c *config.Checker, d config.Data) {
	s := d.Source
	s.Path = ""
	c.Require(s == config.Source{}, "data.source", "has keys of tables; allowed for a population: path")
	c.Require(d.Partition == Central || d.Partition == ByRegion, "data.partition", "is %q; allowed for a population: %s, %s", d.Partition, Central, ByRegion)
	if d.Source.Path == "" {
		c.Require(d.Persons > 0, "data.persons", "is 0; allowed: 1 to %d, or the folder of a population in data.source.path", MostPersons)
		return
	}
	c.Require(d.Persons == 0, "data.persons", "is %d, but the population is read from data.source.path; remove one of them", d.Persons)
	c.Require(d.PopulationSeed == 0, "data.population_seed", "is set, but the population is read from data.source.path; remove one of them")
}

func words(d config.Data) string {
	held := "held in one place"
	if d.Partition == ByRegion {
		held = "a client a region"
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
}

// load reads or generates the population, and gives its persons to clients.
func load(f *data.Folder, d config.Data, _ uint64) (*data.Federation, error) {
	h, err := data.Kept(f, fmt.Sprint("population ", d.Source.Path, d.Persons, d.PopulationSeed), func() (*held, error) { return hold(f, d) })
	if err != nil {
		return nil, err
	}
	report := h.report
	fed := &data.Federation{Features: Pooled, Classes: 2, Report: &report}
	if d.Partition != ByRegion {
		fed.Train = []data.Client{h.graph.client("all")}
		return fed, nil
	}
	for r := range uint8(regions) {
		// Contacts across regions are dropped: nobody holds both sides.
		if part := h.graph.Part(func(i int) bool { return h.graph.Region[i] == r }); part.Persons() > 0 {
			client := part.client(fmt.Sprintf("region-%d", r))
			client.People = trainees{g: part, ends: part.TrainingEnds(), whole: h.graph}
			fed.Train = append(fed.Train, client)
		}
	}
	return fed, nil
}

func hold(f *data.Folder, d config.Data) (*held, error) {
	if d.Source.Path != "" {
		g, err := Read(d.Source.Path)
		if err != nil {
			return nil, err
		}
		return &held{g, data.LoadReport{Source: d.Source.Path, Rows: g.Persons(), Kept: g.Persons(), LeftOut: []data.LeftOut{}}}, nil
	}
	s := Settings{Persons: d.Persons, Seed: d.PopulationSeed}
	if path := f.Find(HouseholdsFile); path != "" {
		var err error
		if s.Households, err = ReadHouseholds(path); err != nil {
			return nil, err
		}
	}
	p, err := Generate(context.Background(), s)
	if err != nil {
		return nil, err
	}
	g := p.Graph()
	return &held{g, data.LoadReport{Source: "a generated population", Rows: g.Persons(), Kept: g.Persons(), LeftOut: []data.LeftOut{}, Notes: []string{"households: " + p.Source}}}, nil
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

// settle is what follows from where the population is from, and from how many there are.
func settle(r *config.Run, given func(path string) bool) {
	if r.Data.Source.Path != "" && !given("data.persons") {
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
	if given("privacy.nodes.contacts") && p.Nodes.Contacts != "nominated" {
		if p.Nodes.Take = 0; !given("privacy.nodes.examples") {
			p.Nodes.Examples = 0
		}
	}
}
