package sim_test

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

var rewriteCrossTable = flag.Bool("rewrite-cross-table", false, "write docs/cross-table.md anew: name every changed cell in the commit")

const crossTableFile = "../docs/cross-table.md"

// outcome is a cell: what the run states under either accounting, or, where it is
// refused, the words that give the reason.
type outcome struct {
	paper, sound event.Claim
	refused      string
	soundOnly    string // why paper accounting is refused; empty: it is not
}

// What a protection states wherever it can cover the method.
var (
	bare      = outcome{paper: event.ClaimNone, sound: event.ClaimNone}
	byUpdate  = outcome{paper: event.ClaimHeuristic, sound: event.ClaimMetric}
	byExample = outcome{paper: event.ClaimHeuristic, sound: event.ClaimProved}
	byClient  = outcome{paper: event.ClaimProved, sound: event.ClaimProved}

	notSummed = outcome{refused: "noise is on one sum over all participants, but here the server needs their releases one by one"}
	noUpdate  = outcome{refused: "local sends nothing: there is no update to protect"}
	nobody    = outcome{refused: "central has no participants that could send something"}
	noSum     = outcome{refused: "local sends nothing: there is no sum that the server could noise"}
	noUpdates = outcome{refused: "releases sums over single examples and no updates"}
	notPeople = outcome{refused: "the examples are no people with contacts"}
	byMoments = outcome{sound: event.ClaimProved, soundOnly: "has no batches that a paper could account for otherwise"}
)

// crossTable is every method under every protection, whatever the data.
var crossTable = map[string]map[string]outcome{
	"central":       {"nothing": bare, "update": nobody, "example": byExample, "client": nobody, "node": notPeople},
	"ditto":         {"nothing": bare, "update": byUpdate, "example": byExample, "client": byClient, "node": notPeople},
	"fedavg":        {"nothing": bare, "update": byUpdate, "example": byExample, "client": byClient, "node": notPeople},
	"finetune":      {"nothing": bare, "update": byUpdate, "example": byExample, "client": byClient, "node": notPeople},
	"group-private": {"nothing": bare, "update": byUpdate, "example": byExample, "client": notSummed, "node": notPeople},
	"ifca":          {"nothing": bare, "update": byUpdate, "example": byExample, "client": notSummed, "node": notPeople},
	"local":         {"nothing": bare, "update": noUpdate, "example": byExample, "client": noSum, "node": notPeople},
	"mocha":         {"nothing": bare, "update": byUpdate, "example": byExample, "client": notSummed, "node": notPeople},
	"pca":           {"nothing": bare, "update": noUpdates, "example": byMoments, "client": noUpdates, "node": notPeople},
	"pca-local":     {"nothing": bare, "update": noUpdates, "example": byMoments, "client": noUpdates, "node": notPeople},
	"mr-mtl":        {"nothing": bare, "update": byUpdate, "example": byExample, "client": byClient, "node": notPeople},
}

// ownModels are the methods that leave everybody a model of its own, judged on examples
// of its own.
var ownModels = []string{"ditto", "finetune", "local", "mocha", "mr-mtl", "pca-local"}

// takesExamples are the data that hold out whole clients: examples to judge by are taken
// away from those that train, and no accounting covers which.
var takesExamples = []string{"synthetic", "hospital"}

// needs are the settings that a cell has beside its data, method and protection.
func needs(protects, mode string) (set []string) {
	if protects == "example" || protects == "client" {
		set = append(set, "privacy.epsilon=6")
	}
	if protects == "example" && mode == "sound" {
		set = append(set, "privacy.relation=replace-one")
	}
	return append(set, "algorithm.rounds=2", "algorithm.mode="+mode, "privacy.protects="+protects)
}

// TestCrossTable: every method under every protection on every kind of data trains, and
// states what it protects, or is refused with the reason; and the table in docs says so.
func TestCrossTable(t *testing.T) {
	real := data.NewFolder(os.Getenv("COTERIE_DATA"))
	for kind, block := range map[string]string{
		"synthetic": "kind: synthetic", "school": "kind: school", "hospital": "kind: hospital",
		"rotated-mnist": "kind: rotated-mnist, silos: 4, train_limit: 20",
	} {
		t.Run(kind, func(t *testing.T) {
			folder := real
			switch {
			case kind != "synthetic" && testing.Short():
				t.Skip("what runs side by side is the same on all data")
			case kind != "synthetic" && real == nil:
				t.Skip("COTERIE_DATA is not set: no real data")
			case kind == "rotated-mnist":
				folder = firstPictures(t, os.Getenv("COTERIE_DATA"))
			}
			for _, method := range fl.Methods() {
				for _, protects := range fl.Protections() {
					want, ok := crossTable[method][protects]
					if !ok {
						t.Errorf("%s, %s: not in the table", method, protects)
						continue
					}
					for mode, claim := range map[string]event.Claim{"paper": want.paper, "sound": want.sound} {
						if mode == "sound" && protects == "example" && slices.Contains(takesExamples, kind) && slices.Contains(ownModels, method) {
							claim = event.ClaimHeuristic
						}
						got := tryCell(t, folder, kind, block, method, protects, mode)
						fits := got.claim == claim
						refused := want.refused
						if mode == "paper" && want.soundOnly != "" {
							refused = want.soundOnly
						}
						if refused != "" {
							fits = strings.Contains(got.refused, refused) && !strings.Contains(got.refused, kind)
						}
						if !fits {
							t.Errorf("%s, %s, %s: %+v, want claim %q, refused for %q", method, protects, mode, got, claim, refused)
						}
					}
				}
			}
		})
	}
	if text := crossTableText(); *rewriteCrossTable {
		if err := os.WriteFile(crossTableFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old, err := os.ReadFile(crossTableFile); err != nil || string(old) != text {
		t.Errorf("docs/cross-table.md is not this table (%v): go test ./sim -run TestCrossTable -rewrite-cross-table writes it", err)
	}
}

// cell is what came of one.
type cell struct {
	claim   event.Claim
	refused string
}

// tryCell makes two rounds, or as many as there are, unless the run file is refused.
func tryCell(t *testing.T, folder *data.Folder, kind, block, method, protects, mode string) cell {
	t.Helper()
	name := strings.Join([]string{kind, method, protects, mode}, ", ")
	text := fmt.Sprintf("data: {%s}\nalgorithm: {kind: %s}\n", block, method)
	set, rounds := needs(protects, mode), 2
	if strings.HasPrefix(method, "pca") { // which makes one release
		set, rounds = append(set, "algorithm.rounds=1"), 1
	}
	run, err := config.Resolve([]byte(text), set, sim.Checks()...)
	var faults config.Faults
	if errors.As(err, &faults) {
		return cell{refused: faults.Error()}
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s, err := sim.New(run, folder)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if loss := float64(res.Metrics.Loss); math.IsNaN(loss) || math.IsInf(loss, 0) || res.Rounds != rounds {
		t.Errorf("%s: a loss of %v after %d rounds", name, loss, res.Rounds)
	}
	p := res.Privacy
	if (p.Claim == event.ClaimNone) != (protects == "nothing") || p.Protects != protects {
		t.Errorf("%s: protects %s, claims %s", name, p.Protects, p.Claim)
	}
	// Noise on what is sent does not cover what stays with the participant.
	personal := slices.Contains(ownModels, method) && (protects == "update" || protects == "client")
	if told := strings.Contains(strings.Join(p.NotCovered, "\n"), "own models"); told != personal {
		t.Errorf("%s: not covered: %q", name, p.NotCovered)
	}
	taken := slices.Contains(takesExamples, kind) && slices.Contains(ownModels, method) && protects == "example"
	if told := strings.Contains(strings.Join(p.NotCovered, "\n"), "which examples are held out"); told != taken {
		t.Errorf("%s: not covered: %q", name, p.NotCovered)
	}
	return cell{claim: p.Claim}
}

// firstPictures is a folder with the first of MNIST's real pictures: all of them would
// be loaded and judged for every cell.
func firstPictures(t *testing.T, from string) *data.Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "mnist"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, most := range map[string]int{"train": 400, "t10k": 200} {
		for _, part := range []string{"-images-idx3-ubyte.gz", "-labels-idx1-ubyte.gz"} {
			shape, values, err := data.ReadIDXFile(filepath.Join(from, "mnist", file+part))
			if err != nil {
				t.Fatal(err)
			}
			head := []byte{0, 0, 8, byte(len(shape))}
			each := len(values) / shape[0]
			shape[0] = most
			for _, n := range shape {
				head = binary.BigEndian.AppendUint32(head, uint32(n))
			}
			f, err := os.Create(filepath.Join(dir, "mnist", file+part))
			if err != nil {
				t.Fatal(err)
			}
			z := gzip.NewWriter(f)
			_, err = z.Write(append(head, values[:most*each]...))
			if err := errors.Join(err, z.Close(), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return data.NewFolder(dir)
}

// crossTableText is the table for docs.
func crossTableText() string {
	var b strings.Builder
	b.WriteString(`# Methods and protections

What comes of every method (` + "`algorithm.kind`" + `) under every protection (` + "`privacy.protects`" + `):
the claim that a run states under paper and under sound accounting, or why it is
refused. It is the same on synthetic rows, School, hospital rows and rotated MNIST; a
test (` + "`sim/crosstable_test.go`" + `) trains every cell on all four and writes this page.

Runs are those that a file gets which names the data, the method, the protection and,
for examples and clients, a target epsilon. What no accounting covers lowers a claim to
heuristic: ` + "`algorithm.selection.rule: best`" + ` under ` + "`example`" + `, for one; and, on data that
hold out whole clients (synthetic, hospital), the examples that ` + "`data.test_share`" + ` takes
away to judge everybody's own model by (` + strings.Join(ownModels, ", ") + `).

| method | ` + strings.Join(fl.Protections(), " | ") + " |\n| --- |" + strings.Repeat(" --- |", len(fl.Protections())) + "\n")
	for _, method := range fl.Methods() {
		fmt.Fprintf(&b, "| %s |", method)
		for _, protects := range fl.Protections() {
			switch o := crossTable[method][protects]; {
			case o.refused != "":
				fmt.Fprintf(&b, " refused: %s |", o.refused)
			case o.soundOnly != "":
				fmt.Fprintf(&b, " trains: sound %s; refused in paper mode: it %s |", o.sound, o.soundOnly)
			case o.paper == o.sound:
				fmt.Fprintf(&b, " trains: %s |", o.paper)
			default:
				fmt.Fprintf(&b, " trains: %s, sound %s |", o.paper, o.sound)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
