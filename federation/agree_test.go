package federation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// anyPolicy allows all that these tests ask.
const anyPolicy = `evaluation: true
ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}
  - {unit: neighbourhood, relation: metric, claim: heuristic, epsilon: 20}
  - {unit: example, relation: replace-one, claim: heuristic, epsilon: 7, delta: 1.0e-4}
  - {unit: example, relation: replace-one, claim: proved, epsilon: 7, delta: 1.0e-4}
  - {unit: example, relation: add-remove, claim: heuristic, epsilon: 7, delta: 1.0e-4}
  - {unit: example, relation: add-remove, claim: proved, epsilon: 7, delta: 1.0e-4}
  - {unit: client, relation: add-remove, claim: proved, trust: server, epsilon: 7, delta: 1.0e-4}
  - {unit: client, relation: replace-one, claim: proved, trust: server, epsilon: 7, delta: 1.0e-4}
  - {unit: client, relation: replace-one, claim: none, unlimited: true}
`

// protections are what the run files of these tests say of each.
var protections = map[string]string{
	"update":  "protects: update, noise_multiplier: 5, noise: exact-seeded",
	"example": "protects: example, epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded",
	"client":  "protects: client, epsilon: 6, delta: 1.0e-4, noise: exact-seeded",
	"nothing": "protects: nothing, noise: exact-seeded", // otherwise batches follow from a seed of one's own
}

// cellRun is a run file for three participants with a linear model of values.
func cellRun(method, protects, mode string) string {
	asked, more := 2, "" // of three: who is not asked keeps what it had
	if protects == "client" || method == "mocha" {
		asked = 0 // all
	}
	if protects == "example" && mode == "sound" {
		more = ", relation: replace-one"
	}
	rounds := 3
	if strings.HasPrefix(method, "pca") { // which makes one release
		rounds = 1
	}
	return fmt.Sprintf(`name: cell
seed: 5
data: {kind: synthetic, users: 3, samples: 20, test_share: 0.2}
algorithm: {kind: %s, mode: %s, rounds: %d, clients_per_round: %d, local: {batch: 4}, stop: {patience: 0, return: last}}
privacy: {%s%s}
judge: {by: own}
`, method, mode, rounds, asked, protections[protects], more)
}

// TestEveryMethodOverTheNetwork: every method under every protection that can cover it
// gives the models of the simulation, the server's and everybody's own, bit for bit. A
// server does not start with the others, and says why.
func TestEveryMethodOverTheNetwork(t *testing.T) {
	modes := []string{"sound"}
	if *federationtest.Soak {
		modes = append(modes, "paper")
	}
	runs := map[string]string{}
	var refused []string
	for _, mode := range modes {
		for _, method := range fl.Methods() {
			if fl.IsCentral(method) { // plan.Suitable refuses it, with a test of its own
				continue
			}
			for _, protects := range fl.Protections() {
				if protects == "node" { // of people, who have a test of their own
					continue
				}
				name, text := method+", "+protects+", "+mode, cellRun(method, protects, mode)
				if _, err := plan.Resolve([]byte(text)); err == nil {
					runs[name] = text
					continue
				}
				if err := startServer(t, text); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "privacy.protects") {
					t.Errorf("%s: a server starts with %v; want what is wrong with privacy.protects", name, err)
				}
				refused = append(refused, method+", "+protects)
			}
		}
	}
	slices.Sort(refused)
	if want := []string{"group-private, client", "ifca, client", "local, client", "local, update", "mocha, client", "pca, client", "pca, update", "pca-local, client", "pca-local, update"}; !slices.Equal(slices.Compact(refused), want) {
		t.Errorf("refused are %q, want %q", refused, want)
	}
	together(t, nil, runs)
}

// TestEveryModelOverTheNetwork: so do linear models of values, logistic regression, SVMs
// and networks for pictures, under example-level privacy.
func TestEveryModelOverTheNetwork(t *testing.T) {
	runs := map[string]string{}
	for _, method := range []string{"fedavg", "mr-mtl"} {
		for name, block := range map[string]string{
			"linear":   "kind: school, standardise: none",
			"hinge":    "kind: vehicle, standardise: none",
			"logistic": "kind: vehicle, standardise: none",
			"pictures": "kind: rotated-mnist, silos: 4",
		} {
			loss := ""
			if name == "logistic" {
				loss = ", loss: cross-entropy"
			}
			runs[method+", "+name] = fmt.Sprintf("name: model\nseed: 3\ndata: {%s}\nalgorithm: {kind: %s, mode: sound, rounds: 2, local: {step: 0.01, batch: 16%s}}\nprivacy: {%s}\n",
				block, method, loss, protections["example"])
		}
	}
	together(t, federationtest.Folder(t), runs)
}

// TestKeptStateOverTheNetwork: and so does what participants keep between rounds beside
// their models, the cluster they chose, their last release; and what the server keeps of
// releases.
func TestKeptStateOverTheNetwork(t *testing.T) {
	warm := "rounds: 4, warm_start: 0.5, hypotheses: 2"
	runs := map[string]string{
		"nearest to the last release": strings.Replace(cellRun("ifca", "example", "sound"), "rounds: 3", "rounds: 3, selection: {rule: nearest}", 1),
		"warm start, declared":        strings.Replace(cellRun("finetune", "example", "sound"), "rounds: 3", warm+", clustering: declared", 1),
		"warm start, k-means":         strings.Replace(cellRun("mr-mtl", "update", "sound"), "rounds: 3", warm, 1),
		"a sector":                    strings.Replace(cellRun("fedavg", "client", "sound"), "epsilon: 6", "relation: replace-one, sector: {angle: 40, lower: 0.3, axis: mean}, epsilon: 6", 1),
		"a learned clip":              strings.Replace(strings.Replace(cellRun("ditto", "client", "sound"), "rounds: 3", "rounds: 4, server_momentum: 0.5", 1), "epsilon: 6", "recentre: last, clipping: {rule: online, rate: 0.3}, epsilon: 6", 1),
		"a counted clip":              strings.Replace(cellRun("mr-mtl", "client", "paper"), "epsilon: 6", "clipping: {rule: quantile, gradient_noise: 1.2}, epsilon: 6", 1),
		"a radius that falls":         strings.Replace(cellRun("ditto", "update", "sound"), "noise: exact", "radius_decay: 0.7, noise: exact", 1),
	}
	together(t, nil, runs)
}

// TestEvaluationOverTheNetwork: the evaluation's noised counts are those of the simulation,
// bit for bit, of classes and of values, of networks, with own models and with moments
// that were paid for; the models are the same with it and without it; and the ledger has
// one more charge.
func TestEvaluationOverTheNetwork(t *testing.T) {
	silos := "privacy: {" + protections["example"] + "}\njudge: {by: own, evaluate: {epsilon: 1}}\n"
	runs := map[string]string{
		"classes":  "name: c\nseed: 3\ndata: {kind: vehicle, standardise: none}\nalgorithm: {kind: mr-mtl, mode: sound, rounds: 2, local: {step: 0.01, batch: 16, loss: cross-entropy}}\n" + silos,
		"pictures": "name: p\nseed: 3\ndata: {kind: rotated-mnist, silos: 4}\nalgorithm: {kind: fedavg, mode: sound, rounds: 1, local: {step: 0.01, batch: 16}}\n" + silos,
		"values":   strings.Replace(cellRun("fedavg", "update", "sound"), "by: own", "by: own, evaluate: {epsilon: 2, bound: 20}", 1),
	}
	folder := federationtest.Folder(t)
	together(t, folder, runs)
	dir := agrees(t, folder, strings.Replace(federationtest.PaidRun, "epsilon: 6", "epsilon: 5", 1)+"judge: {by: own, evaluate: {epsilon: 1}}\n")
	book, err := ledger.Read(filepath.Join(dir, "silo-1", "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	entries := book.Entries()
	last := entries[len(entries)-1]
	if g, ok := last.Release.What.(event.Gaussian); !ok || last.Slot.Round != 3 || last.Status != ledger.Committed || last.Release.Unit != event.UnitExample ||
		last.Release.Claim != event.ClaimProved || !(g.Noise > 1) {
		t.Errorf("the ledger's last entry is %+v; want the evaluation's", last)
	}
	own, err := os.ReadFile(filepath.Join(dir, "silo-1", "out", "figures.json"))
	if err != nil || !strings.Contains(string(own), `"rmse": `) {
		t.Errorf("the participant's own figures: %s, %v", own, err)
	}
}

// TestSilentRoundsCostNothing: in rounds in which everybody trains alone the ledger holds
// an answer, and nothing is spent.
func TestSilentRoundsCostNothing(t *testing.T) {
	for _, protects := range []string{"update", "client"} {
		text := strings.Replace(cellRun("finetune", protects, "sound"), "clients_per_round: 2", "clients_per_round: 3", 1)
		dir := agrees(t, nil, text)
		book, err := ledger.Read(filepath.Join(dir, "silo-0", "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		entries := book.Entries()
		if len(entries) != 3 {
			t.Fatalf("%s: %d entries, want one a round", protects, len(entries))
		}
		for _, e := range entries {
			r, silent := e.Release.What.(event.Repeated)
			if silent = silent && r.Times == 0; silent != (e.Slot.Round > 0) {
				t.Errorf("%s: round %d is charged %+v; want nothing after the first round", protects, e.Slot.Round+1, e.Release)
			}
		}
	}
}

// together runs federations side by side: most of the time they wait for each other.
func together(t *testing.T, folder *data.Folder, runs map[string]string) {
	var all sync.WaitGroup
	turns := make(chan struct{}, 6)
	for name, text := range runs {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			t.Run(name, func(t *testing.T) { agrees(t, folder, text) })
		})
	}
	all.Wait()
}

// agrees runs a file among real participants and compares what they have afterwards
// with the simulation. It returns the folder of all of them.
func agrees(t *testing.T, folder *data.Folder, text string) string {
	l := newLoopback(t)
	l.write("run.yaml", text)
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := sim.CreateDirectory(filepath.Join(l.dir, "simulated"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	simulated, err := s.Execute(t.Context(), d, func(sim.Moment) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a, names, server := l.serveSilos(ctx, folder, len(s.Federation().Train))
	policy, err := plan.LoadPolicy([]byte(anyPolicy))
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, len(names))
	for _, name := range names {
		l.enrol(ctx, a, name)
		own, err := plan.LoadJoinFile([]byte("{}"), filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := participant.Join(ctx, participant.JoinOptions{File: own, Policy: policy, Seeded: true, Folder: folder, Log: l.log})
			joined <- err
		}()
	}
	for range names {
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
	}
	if err := <-server; err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]float64{}
	for _, one := range tensors(t, d.File(sim.ModelFile)) {
		wanted[one.Name] = one.Values
	}
	var shared [][]float64
	for j := range run.Algorithm.Hypotheses {
		shared = append(shared, wanted[fmt.Sprintf("hypothesis.%d", j)])
	}
	compare(t, filepath.Join(l.dir, "server", "model.safetensors"), shared...)
	switch m, err := artifact.Open(filepath.Join(l.dir, "server")); {
	case run.Algorithm.Kind == "local" || run.Algorithm.Kind == "pca-local":
		if !errors.Is(err, artifact.ErrFolder) || !strings.Contains(err.Error(), "own out folders") {
			t.Errorf("models of a server that trains none: %v", err)
		}
	case err != nil:
		t.Error(err)
	case len(m.Clients()) > 0:
		t.Errorf("the server's folder names the clients %q", m.Clients())
	}
	for i, name := range names {
		if m, err := artifact.Open(filepath.Join(l.dir, name, "out")); err != nil {
			t.Error(err)
		} else if c, err := m.Choose(""); err != nil || c.Client != name || !slices.Equal(c.Parameters(), wanted[fmt.Sprintf("client.%d", i)]) {
			t.Errorf("%s: its folder's own model is %v (%v)", name, &c, err)
		}
		own := [][]float64{wanted[fmt.Sprintf("client.%d", i)]}
		if scale := wanted[fmt.Sprintf("client.%d.scale", i)]; scale != nil {
			own = append(own, wanted[fmt.Sprintf("client.%d.centre", i)], scale)
		}
		compare(t, filepath.Join(l.dir, name, "out", "personal.safetensors"), own...)
	}
	compareEvaluations(t, simulated.Evaluation, simulated.Privacy.Unit, filepath.Join(l.dir, "server", "result.json"))
	return l.dir
}

// compareEvaluations holds what a server's result says of the evaluation against the
// simulation's: the noised counts, and all that follows from them. What training cost is
// told on its own unit beside it.
func compareEvaluations(t *testing.T, want *evaluate.Figures, unit event.Unit, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Evaluation   *evaluate.Figures
		Participants []server.ParticipantRecord
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Participants {
		if p.Spent != nil && p.Spent.Unit != unit {
			t.Errorf("%s is said to have spent %+v, and nothing on the unit %s", p.Name, p.Spent, unit)
		}
	}
	if !reflect.DeepEqual(got.Evaluation, want) {
		t.Errorf("%s has the evaluation %+v, the simulation %+v", path, got.Evaluation, want)
	}
}

// serveSilos starts a server of run.yaml for so many silos, and an authority.
func (l *loopback) serveSilos(ctx context.Context, folder *data.Folder, n int) (a *identity.Authority, names []string, ended chan error) {
	for i := range n {
		names = append(names, fmt.Sprintf("silo-%d", i))
	}
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := plan.LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: ["+strings.Join(names, ", ")+"]\n"), l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() {
		_, err := server.Serve(ctx, server.Options{
			File: f, Seeded: true, Folder: folder, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		ended <- err
	}()
	select {
	case l.server = <-l.address:
	case err := <-ended:
		l.t.Fatal(err)
	}
	return a, names, ended
}

// startServer is why a server does not start with a run file.
func startServer(t *testing.T, text string) error {
	t.Helper()
	l := newLoopback(t)
	l.write("run.yaml", text)
	_, err := server.Serve(t.Context(), server.Options{File: l.serveFile(), Seeded: true, Log: l.log})
	return err
}

// compare holds a file's tensors against values.
func compare(t *testing.T, path string, want ...[]float64) {
	t.Helper()
	got := tensors(t, path)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = len(want[i]) > 0 && slices.Equal(got[i].Values, want[i])
	}
	if !same {
		t.Errorf("%s is not what the simulation has", path)
	}
}

func tensors(t *testing.T, path string) []model.Tensor[float64] {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := model.ReadTensors[float64](file, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var whole []model.Tensor[float64]
	for _, one := range out { // a projection lies in two parts
		if name, ok := strings.CutSuffix(one.Name, ".eigenvalues"); ok {
			last := &whole[len(whole)-1]
			last.Name, last.Values = name, append(last.Values, one.Values...)
			continue
		}
		whole = append(whole, one)
	}
	return whole
}
