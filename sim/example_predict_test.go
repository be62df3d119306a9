package sim_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/coterie-fl/coterie/all" // every data set, method and protection
	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// From a CSV of three clinics to a model for each of them, private for every row of it,
// and to a prediction.
func Example_predict() {
	dir, err := os.MkdirTemp("", "coterie-example-")
	must(err)
	defer os.RemoveAll(dir)
	table := filepath.Join(dir, "visits.csv")
	must(os.WriteFile(table, visits(), 0o644))
	run, err := config.Resolve([]byte(`
seed: 1
data:
  kind: table
  source: {path: `+table+`, client: clinic}
  target: back
  task: yes/no
  features: [{name: age, type: number, range: [0, 100]}, {name: ward, type: category, values: [A, B]}]
algorithm: {kind: mr-mtl, mode: sound, rounds: 30, local: {step: 0.5}}
privacy: {epsilon: 4, delta: 1.0e-5, public_size: 400}
`), nil, sim.Checks()...)
	must(err)
	s, err := sim.New(run, nil)
	must(err)
	defer s.Close()
	d, err := sim.CreateDirectory(filepath.Join(dir, "result"), nil)
	must(err)
	defer d.Close()
	result, err := s.Execute(context.Background(), d, func(sim.Moment) {})
	must(err)

	m, err := artifact.Open(d.Path)
	must(err)
	must(os.WriteFile(filepath.Join(dir, "new.csv"), []byte("age,ward\n20,A\n80,B\n"), 0o644))
	var answers strings.Builder
	made, err := m.PredictTable(context.Background(), &answers, artifact.Table{Source: config.Source{Path: filepath.Join(dir, "new.csv")}, Client: "north"})
	must(err)
	for line := range strings.Lines(answers.String()) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		fmt.Println(fields[0], fields[len(fields)-1])
	}
	fmt.Printf("%s; epsilon %.2g, claim %s\n", made.Models[0].Why, float64(result.Privacy.Epsilon), result.Privacy.Claim)
	// Output:
	// row predicted
	// 1 no
	// 2 yes
	// north has a model of its own; epsilon 4, claim proved
}

// visits are those of three clinics whose older patients come back.
func visits() []byte {
	text := []byte("clinic,age,ward,back\n")
	for i := range 1500 {
		age := i * 37 % 100
		text = fmt.Appendf(text, "%s,%d,%c,%s\n", []string{"north", "south", "west"}[i%3], age, 'A'+i%2, map[bool]string{true: "yes", false: "no"}[age+i%7*5 > 65])
	}
	return text
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
