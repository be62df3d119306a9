package contacts

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func block(t *testing.T, text string) config.Run {
	t.Helper()
	f, err := config.Load([]byte("data: {kind: pandemic" + text + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Run
}

// TestClients: a client for every region with somebody in it, or one for all; every key is
// read.
func TestClients(t *testing.T) {
	var folder *data.Folder
	look := func(text string) *data.Federation {
		fed, err := folder.Load(block(t, text).Data, 1)
		if err != nil {
			t.Fatal(err)
		}
		return fed
	}
	one, all := look(", persons: 900"), look(", persons: 900, partition: region")
	if len(one.Train) != 1 || one.Train[0].Name != "all" || len(all.Train) != regions {
		t.Fatalf("%d clients, and %d regions", len(one.Train), len(all.Train))
	}
	if len(all.NotCovered) > 0 {
		t.Errorf("households are told where they live, but not covered: %v", all.NotCovered)
	}
	g := GraphOf(all.Train[0].People)
	if g == nil || GraphOf(one.Train[0].People).Persons() != g.Persons() || GraphOf(nil) != nil {
		t.Fatal("the whole graph is not told")
	}
	persons, within := 0, 0
	for r, c := range all.Train {
		part := c.People.(trainees).g
		for i, region := range part.Region {
			if int(region) != r {
				t.Fatalf("person %d of region %d is with %s", i, region, c.Name)
			}
		}
		persons, within = persons+c.Len(), within+len(part.Other)
	}
	crossing := 0
	for i := range g.ID {
		others, _ := g.Contacts(i)
		for _, j := range others {
			if g.Region[i] != g.Region[j] {
				crossing++
			}
		}
	}
	if within+crossing != len(g.Other) {
		t.Errorf("%d contacts within regions and %d across them are not %d", within, crossing, len(g.Other))
	}
	if persons != g.Persons() || one.Train[0].Len() != persons {
		t.Errorf("%d of %d persons are with somebody", persons, g.Persons())
	}
	if len(one.Report.Notes) != 1 || !strings.Contains(one.Report.Notes[0], "invented") {
		t.Errorf("%v does not say where households are from", one.Report.Notes)
	}
	if other := GraphOf(look(", persons: 900, population_seed: 5").Train[0].People); other.Persons() == g.Persons() && len(other.Other) == len(g.Other) {
		t.Error("population_seed is not read")
	}
	if asked := look(", persons: 900, households: invented"); !strings.Contains(asked.Report.Notes[0], "as asked for") || len(GraphOf(asked.Train[0].People).Other) != len(g.Other) {
		t.Errorf("households that are invented as asked for: %v", asked.Report.Notes)
	}
	if _, err := (*data.Folder)(nil).Load(block(t, ", persons: 900, households: published").Data, 1); err == nil || !strings.Contains(err.Error(), "are not in the data folder") {
		t.Errorf("published households without a data folder: %v", err)
	}
	dir := tiny(t, nil)
	if read := look(", source: {path: " + dir + "}").Train[0]; read.Len() != 3 {
		t.Errorf("%d persons of 3 were read", read.Len())
	}
	kept := (*data.Folder)(nil).Keeping()
	d := block(t, ", persons: 900").Data
	first, err1 := kept.Load(d, 1)
	again, err2 := kept.Load(d, 2)
	if err1 != nil || err2 != nil || GraphOf(first.Train[0].People) != GraphOf(again.Train[0].People) {
		t.Errorf("a folder that keeps things generates twice: %v %v", err1, err2)
	}
}

func TestBlocksAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		", persons: 0":                              "data.persons: is 0; allowed: 1 to 100000000, or the folder",
		", persons: 5, source: {path: x}":           "data.persons: is 5, but the population is read from data.source.path",
		", population_seed: 5, source: {path: x}":   "data.population_seed: is set, but",
		", households: mine":                        `data.households: is "mine"; allowed: published, invented`,
		", households: invented, source: {path: x}": "data.households: is set, but",
		", partition: sex":                          `data.partition: is "sex"; allowed for a population: central, region`,
		", source: {path: x, client: y}":            "data.source: has keys of tables",
	} {
		if err := data.Check(block(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", ", source: {path: x}", ", persons: 7, partition: region"} {
		if faults := data.Check(block(t, text)); len(faults) > 0 {
			t.Errorf("%q: %v", text, faults)
		}
	}
	for text, want := range map[string]string{"": "of 20000 persons", ", source: {path: x}": "read from", ", partition: region": "a client a region"} {
		k, err := data.KindOf(block(t, text).Data)
		if err != nil || !strings.Contains(k.Words(block(t, text).Data), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
