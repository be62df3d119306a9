package contacts

import "testing"

func BenchmarkAuthorsInput(b *testing.B) {
	g := generate(b, Settings{Persons: 20000, Seed: 5, Scenes: true}).Graph()
	l, _ := layoutOf(AuthorsInputs, 20)
	people, _, err := g.neighbourly(l, g.fit(), 1)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, l.inputs())
	i := 0
	for b.Loop() {
		people.Input(dst, i%20000, 0)
		i += 7919
	}
}
