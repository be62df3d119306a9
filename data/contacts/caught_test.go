package contacts

import (
	"cmp"
	"maps"
	"slices"
	"testing"
)

// greedy admits contacts by hash as long as both have room: nobody is in more than S
// examples, and that is all that it bounds.
func greedy(g *Graph, r Rule) Kept {
	type pair struct {
		draw uint64
		i, j int
		how  How
	}
	var pairs []pair
	lot := newLot(r.Key, "greedy")
	for i, row := range g.rows() {
		for _, c := range row {
			if j := int(c.other); i < j {
				pairs = append(pairs, pair{lot.draw(g.ID[i], g.ID[j]), i, j, c.how})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.draw, b.draw) })
	rows := make([][]contact, g.Persons())
	for _, p := range pairs {
		if len(rows[p.i]) < r.Most-1 && len(rows[p.j]) < r.Most-1 {
			rows[p.i] = append(rows[p.i], contact{uint32(p.j), p.how})
			rows[p.j] = append(rows[p.j], contact{uint32(p.i), p.how})
		}
	}
	admitted := Graph{}
	admitted.setRows(rows)
	return Kept{Offsets: admitted.Offsets, Other: admitted.Other, How: admitted.How}
}

// TestOtherRulesAreCaught: the same count goes beyond S for rules that bound appearances
// only, so none of them may be called proved; nor is an own record a whole person.
func TestOtherRulesAreCaught(t *testing.T) {
	g := village(1000, 10, 4)
	own := Rule{Relation: OwnRecord, Most: 6, Take: 20, Key: 5, Longest: true}
	for name, rule := range map[string]struct {
		Rule
		build func(g *Graph) Kept
	}{
		"greedy admission":             {Rule{Most: 6, Key: 1}, func(g *Graph) Kept { return greedy(g, Rule{Most: 6, Key: 1}) }},
		"pruned":                       {rules()["pruned"], nil},
		"authors":                      {rules()["authors"], nil},
		"own record, the person taken": {own, nil},
	} {
		if rule.build == nil {
			rule.build = func(g *Graph) Kept { return built(t, rule.Rule, g) }
		}
		most, was := 0, rule.build(g)
		for _, j := range whoGoes(g, 10, 4) {
			most = max(most, len(rebuilt(g, &was, rule.build, j, ofPerson)))
		}
		if most <= rule.Most {
			t.Errorf("%s: at most %d examples changed, so the count would let a claim of %d pass", name, most, rule.Most)
		}
		if _, proved := rule.Examples(); proved && rule.Relation != OwnRecord {
			t.Errorf("%s claims to be proved; a removal changed %d examples", name, most)
		}
		t.Logf("%s: up to %d examples change, %d are in", name, most, rule.Most)
	}
	if names := slices.Sorted(maps.Keys(rules())); len(names) != 6 {
		t.Errorf("a rule is not tested: %v", names)
	}
}
