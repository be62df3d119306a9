package contacts

import (
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

// TestEveryFieldOfAGraphIsHashed changes one value of each field of a graph, those that a
// field to come will have among them: a run that was begun on the graph as it was is told.
func TestEveryFieldOfAGraphIsHashed(t *testing.T) {
	graph := func() *Graph { return generate(t, Settings{Persons: 300, Seed: 2, Scenes: true}).Graph() }
	digest := func(g *Graph) data.Digest {
		return (&data.Federation{Train: []data.Client{g.client("all")}}).Digest()
	}
	taken := digest(graph()).Fingerprint()
	if what := digest(graph()).Changed(taken); what != "" {
		t.Fatalf("the same graph: %s", what)
	}
	for i := range reflect.TypeFor[Graph]().NumField() {
		g := graph()
		name, field := reflect.TypeFor[Graph]().Field(i).Name, reflect.ValueOf(g).Elem().Field(i)
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Slice:
			if field.Len() == 0 {
				t.Fatalf("%s is empty: the test changes nothing of it", name)
			}
			switch last := field.Index(field.Len() - 1); {
			case last.Kind() == reflect.Struct:
				last.Field(0).SetFloat(last.Field(0).Float() + 1)
			case last.CanInt():
				last.SetInt(last.Int() ^ 1)
			default:
				last.SetUint(last.Uint() ^ 1)
			}
		case reflect.Int:
			field.SetInt(field.Int() - 1)
		default:
			t.Fatalf("%s is a %s, which this test cannot change", name, field.Kind())
		}
		if digest(g).Changed(taken) == "" {
			t.Errorf("%s was changed, and nobody is told", name)
		}
	}
	// A region's people are told from others by contacts that they do not hold themselves.
	g, part := graph(), graph().Part(func(i int) bool { return i%2 == 0 })
	region := func() data.Digest {
		return (&data.Federation{Train: []data.Client{{People: trainees{g: part, ends: part.TrainingEnds(), whole: g}}}}).Digest()
	}
	taken = region().Fingerprint()
	if g.How[0] ^= 1; region().Changed(taken) == "" {
		t.Error("a contact across regions was changed, and nobody is told")
	}
}
