package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

// probe changes one key of a run file: whether the run's result changes tells whether the
// key was read.
type probe struct {
	path, value string
	with        string // settings, separated by spaces, that have the key mean something
	on          string // data; empty: synthetic
}

// The settings with which a method has several clusters: from the start, or in a warm
// start.
const (
	clusters = "algorithm.hypotheses=4 algorithm.empty=keep"
	warm     = clusters + " algorithm.warm_start=0.75"
	far      = " algorithm.local.step=0.5 algorithm.local.epochs=20" // from where it began
	network  = "model.kind=network model.layers=[{kind:linear,units:2},{kind:tanh},{kind:linear,units:1}]"
)

// probes are of every key of the algorithm and privacy blocks, and of what else a run
// without real data can read. Several of one key serve methods that need other settings.
var probes = []probe{
	{path: "algorithm.hypotheses", value: "3", with: "algorithm.hypotheses=2"},
	{path: "algorithm.hypotheses", value: "3", with: "algorithm.hypotheses=2 algorithm.warm_start=0.5"},
	{path: "algorithm.rounds", value: "4"},
	{path: "algorithm.clients_per_round", value: "3"},
	{path: "algorithm.sampling", value: "balanced", with: "algorithm.clients_per_round=3"},
	{path: "algorithm.empty", value: "relocate", with: clusters + " algorithm.idle_rounds=1"},
	{path: "algorithm.empty", value: "relocate", with: warm + " algorithm.idle_rounds=1"},
	{path: "algorithm.idle_rounds", value: "9", with: clusters + " algorithm.idle_rounds=1 algorithm.empty=relocate"},
	{path: "algorithm.idle_rounds", value: "9", with: warm + " algorithm.idle_rounds=1 algorithm.empty=relocate"},
	{path: "algorithm.components", value: "1", with: "algorithm.components=2"},
	{path: "algorithm.clustering", value: "declared", with: clusters + far + " algorithm.clustering=k-means"},
	{path: "algorithm.clustering", value: "declared", with: warm + far + " algorithm.clustering=k-means"},
	{path: "algorithm.lambda", value: "0.5"},
	{path: "algorithm.prox", value: "inside", with: "algorithm.lambda=3"},
	{path: "algorithm.prox", value: "server", with: "algorithm.lambda=3"},
	{path: "algorithm.federated_share", value: "0.4", with: "algorithm.federated_share=0.9"},
	{path: "algorithm.warm_start", value: "0.4", with: warm},
	{path: "algorithm.weights", value: "counts", on: "table"},
	{path: "algorithm.weights", value: "counts", with: clusters + " algorithm.clustering=declared", on: "table"},
	{path: "algorithm.weights", value: "counts", with: warm + " algorithm.clustering=declared", on: "table"},
	{path: "algorithm.robust", value: "median", with: "algorithm.weights=equal algorithm.lambda=3 algorithm.clients_per_round=0"},
	{path: "algorithm.robust", value: "median", with: clusters + " algorithm.clustering=declared algorithm.weights=equal algorithm.clients_per_round=0"},
	{path: "algorithm.robust_share", value: "0.4", with: "algorithm.weights=equal algorithm.lambda=3 algorithm.clients_per_round=0 algorithm.robust=trimmed-mean algorithm.robust_share=0.1"},
	{path: "algorithm.robust_share", value: "0.4", with: clusters + " algorithm.clustering=declared algorithm.weights=equal algorithm.clients_per_round=0 algorithm.robust=trimmed-mean algorithm.robust_share=0.1"},
	{path: "algorithm.selection.rule", value: "nearest", with: clusters},
	{path: "algorithm.selection.rule", value: "nearest", with: warm},
	{path: "algorithm.selection.share", value: "0.4", with: clusters + " algorithm.selection.share=1 algorithm.clustering=declared algorithm.clients_per_round=3"},
	{path: "algorithm.selection.share", value: "0.4", with: clusters + " algorithm.selection.share=1"},
	{path: "algorithm.selection.share", value: "0.4", with: warm + " algorithm.selection.share=1"},
	{path: "algorithm.selection.epsilon_share", value: "0.3", with: clusters},
	{path: "algorithm.selection.epsilon_share", value: "0.3", with: warm},
	{path: "algorithm.selection.score", value: "loss", with: clusters + " algorithm.selection.score=error", on: "table"},
	{path: "algorithm.selection.score", value: "loss", with: warm + " algorithm.selection.score=error", on: "table"},
	{path: "algorithm.selection.bound", value: "50", with: clusters + " algorithm.selection.epsilon_share=0.3"},
	{path: "algorithm.selection.bound", value: "50", with: warm + " algorithm.selection.epsilon_share=0.3"},
	{path: "algorithm.local.epochs", value: "2"},
	{path: "algorithm.local.step", value: "0.05"},
	{path: "algorithm.local.batch", value: "2"},
	{path: "algorithm.local.limit", value: "2", on: "pictures"},
	{path: "algorithm.local.loss", value: "half-squared-error"},
	{path: "algorithm.local.remainder", value: "keep", with: "algorithm.local.batch=5 algorithm.local.remainder=drop"},
	{path: "algorithm.local.optimiser", value: "adam"},
	{path: "algorithm.local.momentum", value: "0.1", with: "algorithm.local.optimiser=momentum algorithm.local.batch=2"},
	{path: "algorithm.local.beta1", value: "0.1", with: "algorithm.local.optimiser=adam algorithm.local.batch=2"},
	{path: "algorithm.local.beta2", value: "0.1", with: "algorithm.local.optimiser=adam algorithm.local.batch=2"},
	{path: "algorithm.local.weight_decay", value: "0.5", with: "algorithm.local.optimiser=adamw algorithm.local.batch=2"},
	{path: "algorithm.local.warm_up", value: "3", with: "algorithm.local.batch=2"},
	{path: "algorithm.local.gradient_norm", value: "0.01"},
	{path: "algorithm.local.schedule", value: "linear"},
	{path: "algorithm.local.steps", value: "3"},
	{path: "algorithm.local.step_decay", value: "0.5", with: "algorithm.local.batch=2"},
	{path: "algorithm.local.class_weights", value: "[1,3]", on: "table"},
	{path: "algorithm.local.focal_alpha", value: "0.4", with: "algorithm.local.loss=focal", on: "table"},
	{path: "algorithm.local.focal_gamma", value: "3", with: "algorithm.local.loss=focal", on: "table"},
	{path: "algorithm.stop.patience", value: "1", with: "algorithm.stop.patience=0 algorithm.local.step=1.9"},
	{path: "algorithm.stop.return", value: "best", with: "algorithm.stop.return=last"},
	{path: "algorithm.stop.every", value: "2"},
	{path: "algorithm.stop.validation_clients", value: "2"},
	{path: "privacy.noise_multiplier", value: "3", with: "privacy.epsilon=0 privacy.noise_multiplier=1 algorithm.selection.rule=best"},
	{path: "privacy.radius", value: "0.1"},
	{path: "privacy.radius_decay", value: "0.5", with: "algorithm.federated_share=0.9"},
	{path: "privacy.radius_floor", value: "3"},
	{path: "privacy.sanitise", value: "layers", with: network},
	{path: "privacy.layer_shares", value: "[0.5,0.5]", with: network + " privacy.sanitise=layers"},
	{path: "privacy.ceiling", value: "0.8"},
	{path: "privacy.noise", value: "exact-seeded"},
	{path: "privacy.noise", value: "exact-seeded", with: evaluated},
	{path: "privacy.epsilon", value: "3"},
	{path: "privacy.delta", value: "0.001"},
	{path: "privacy.delta", value: "0.001", with: evaluated},
	{path: "privacy.runs", value: "5"},
	{path: "privacy.run", value: "4", with: "privacy.runs=5"},
	{path: "privacy.clip", value: "0.01"},
	{path: "privacy.clipping.rule", value: "quantile", with: learned},
	{path: "privacy.clipping.quantile", value: "0.9", with: learned + " privacy.clipping.rule=quantile"},
	{path: "privacy.clipping.rate", value: "2", with: learned + " privacy.clipping.rule=quantile"},
	{path: "privacy.clipping.step_rate", value: "2", with: learned + " privacy.clipping.rule=online"},
	{path: "privacy.clipping.gradient_noise", value: "1.5", with: learned + " privacy.clipping.rule=online"},
	{path: "privacy.clipping.learn", value: "nothing", with: learned + " privacy.clipping.rule=online privacy.clipping.rate=2"},
	{path: "privacy.clipping.decay", value: "0.5"},
	{path: "privacy.clipping.lowest", value: "0.009", with: "privacy.clip=0.01 privacy.clipping.decay=0.5"},
	{path: "privacy.clipping.highest", value: "0.011", with: "privacy.clip=0.01 privacy.clipping.decay=-0.5"},
	{path: "privacy.update_clip", value: "0.01"},
	{path: "privacy.clipping.rule", value: "online"},
	{path: "privacy.clipping.quantile", value: "0.9", with: countedClip},
	{path: "privacy.clipping.rate", value: "0.4", with: countedClip},
	{path: "privacy.clipping.step_rate", value: "0.4", with: learnedClip},
	{path: "privacy.clipping.gradient_noise", value: "1.7", with: learnedClip},
	{path: "privacy.clipping.learn", value: "nothing", with: learnedClip},
	{path: "privacy.clipping.decay", value: "0.5", with: longer},
	{path: "privacy.clipping.lowest", value: "0.9", with: countedClip + " privacy.clipping.decay=1 privacy.update_clip=1"},
	{path: "privacy.clipping.highest", value: "3", with: countedClip + " privacy.clipping.decay=-1"},
	{path: "privacy.sector.lower", value: "0.9", with: sector},
	{path: "privacy.sector.angle", value: "60", with: sector},
	{path: "privacy.sector.axis", value: "mean", with: sector},
	{path: "privacy.recentre", value: "last"},
	{path: "algorithm.server_momentum", value: "0.5", with: longer},
	{path: "privacy.relation", value: "replace-one", with: "privacy.relation=add-remove"},
	{path: "privacy.relation", value: "replace-one", with: "privacy.relation=add-remove privacy.public_size=8"},
	{path: "privacy.relation", value: "replace-one", with: "privacy.relation=add-remove"},
	{path: "privacy.relation", value: "replace-one", with: evaluated + " privacy.relation=add-remove privacy.public_size=8"},
	{path: "privacy.public_size", value: "20", with: "privacy.public_size=8 privacy.relation=add-remove"},
	{path: "privacy.records_per_person", value: "2"},
	{path: "privacy.records_per_person", value: "2", with: evaluated},
	{path: "privacy.moments_share", value: "0.3", with: "data.standardise=paid", on: "table"},
	{path: "privacy.silos", value: "[{name: north, epsilon: 1}]", on: "table"},
	{path: "model.intercept", value: "true"},
	{path: "model.init_sd", value: "2"},
	{path: "data.users", value: "5"},
	{path: "data.validation_users", value: "3", with: "judge.by=clients data.test_share=0.3"},
	{path: "data.samples", value: "6"},
	{path: "data.groups", value: "3"},
	{path: "data.dimension", value: "3"},
	{path: "data.parameters", value: "[[1,2],[3,4]]"},
	{path: "data.shares", value: "[0.2,0.8]"},
	{path: "data.shift", value: "[1,2]"},
	{path: "data.x.kind", value: "normal"},
	{path: "data.x.low", value: "0"},
	{path: "data.x.high", value: "2"},
	{path: "data.x.mean", value: "2", with: "data.x.kind=normal"},
	{path: "data.x.sd", value: "2", with: "data.x.kind=normal"},
	{path: "data.noise.kind", value: "normal"},
	{path: "data.noise.low", value: "-1"},
	{path: "data.noise.high", value: "2"},
	{path: "data.noise.mean", value: "2", with: "data.noise.kind=normal"},
	{path: "data.noise.sd", value: "2", with: "data.noise.kind=normal"},
	{path: "privacy.nodes.contacts", value: "home", on: "people"},
	{path: "privacy.nodes.contacts", value: "pruned", on: "people"},
	{path: "privacy.nodes.contacts", value: "thinned", with: "privacy.nodes.degree=300", on: "people"},
	{path: "privacy.nodes.keep", value: "0.3", with: "privacy.nodes.contacts=thinned privacy.nodes.degree=300", on: "people"},
	{path: "privacy.nodes.degree", value: "400", with: "privacy.nodes.contacts=thinned privacy.nodes.degree=300", on: "people"},
	{path: "privacy.nodes.examples", value: "3", on: "people"},
	{path: "privacy.nodes.take", value: "1", on: "people"},
	{path: "model.start", value: "start", with: network},
	{path: "model.start", value: "start", with: network + " algorithm.hypotheses=1"},
}

// learned lets a clip move that is short enough to matter.
const learned = "privacy.clip=0.05 privacy.clipping.gradient_noise=1.1 algorithm.local.batch=2"

// Clips that are learned, from counts or from directions, and a sector to bring updates
// into: what they change shows some rounds later.
const (
	longer      = "algorithm.rounds=5 algorithm.federated_share=0.9"
	countedClip = longer + " privacy.clipping.rule=quantile privacy.clipping.gradient_noise=1.5"
	learnedClip = longer + " privacy.clipping.rule=online privacy.clipping.gradient_noise=1.5"
	sector      = longer + " privacy.relation=replace-one privacy.sector.angle=30"
)

// evaluated asks for a round of evaluation, which reads keys that the run's protection
// may not.
const evaluated = "judge.evaluate.epsilon=1 algorithm.stop.return=last algorithm.stop.patience=0 data.test_share=0.3"

// choices are what decides, beside the data, which keys are read.
var choices = []string{"algorithm.kind", "privacy.protects", "algorithm.mode"}

// outcomeOf runs a file with settings; refused: it cannot be run.
func (d probing) outcomeOf(t *testing.T, text string, set []string) (result string, refused bool) {
	t.Helper()
	key := text + strings.Join(set, " ")
	if old, ok := d.known[key]; ok {
		return old, old == ""
	}
	defer func() { d.known[key] = result }()
	run, err := config.ResolveIn(d.folder, []byte(text), set, sim.Checks()...)
	if err != nil {
		return "", true
	}
	s, err := sim.New(run, nil)
	if err != nil {
		return "", true
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatalf("%s %v: %v", text, set, err)
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatalf("%s %v: %v", text, set, err)
	}
	out, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(out)), false
}

// probing is data to probe on, and what is known already.
type probing struct {
	folder string
	known  map[string]string
}

// blocks are the data of probes.
var blocks = map[string]string{
	"": "{kind: synthetic, users: 6, validation_users: 4, samples: 8}",
	"table": "{kind: table, source: {path: rows.csv, client: ward}, target: ill, task: yes/no, " +
		"features: [{name: age, type: number, range: [0, 100]}, {name: weight, type: number, range: [0, 100]}]}",
	"people": "{kind: pandemic, persons: 300}",
	"pictures": "{kind: pictures, source: {path: pictures}, height: 3, width: 3, channels: 1, classes: [a, b]}\n" +
		"model: {kind: network, layers: [{kind: flatten}, {kind: linear, units: 2}]}",
}

// fileOf is the run file of a choice on some data, settingsOf what it needs beside that.
func fileOf(on string, chosen map[string]string) string {
	return fmt.Sprintf("data: %s\nalgorithm: {kind: %s, clients_per_round: 0}\n", blocks[on], chosen["algorithm.kind"])
}

func settingsOf(chosen map[string]string) []string {
	rounds := "algorithm.rounds=3"
	if strings.HasPrefix(chosen["algorithm.kind"], "pca") { // which makes one release
		rounds = "algorithm.rounds=1"
	}
	return append(needs(chosen["privacy.protects"], chosen["algorithm.mode"]), rounds, "run.workers=1")
}

// changes says whether a probe changes a run with some choices.
func (d probing) changes(t *testing.T, p probe, chosen map[string]string, more ...string) bool {
	t.Helper()
	text := fileOf(p.on, chosen)
	set := slices.Concat(settingsOf(chosen), strings.Fields(p.with), more)
	before, refused := d.outcomeOf(t, text, set)
	if refused {
		return false
	}
	after, refused := d.outcomeOf(t, text, append(set, p.path+"="+p.value))
	return !refused && before != after
}

// runs says that a method goes under a protection.
func (d probing) runs(t *testing.T, chosen map[string]string) bool {
	t.Helper()
	on := ""
	if chosen["privacy.protects"] == "node" { // which is for people
		on = "people"
	}
	_, refused := d.outcomeOf(t, fileOf(on, chosen), settingsOf(chosen))
	return !refused
}

// holds says that a key is read, by its conditions on choices.
func holds(k config.Key, chosen map[string]string) bool {
	return !slices.ContainsFunc(k.Only, func(c config.Condition) bool {
		v, ok := chosen[c.Path]
		return ok && !slices.Contains(c.Values, v)
	})
}

// TestKeysAreReadByWhomTheySay: of every key of the algorithm and privacy blocks,
// docs/run-file.md says which methods, protections and modes read it, and with which
// values of other keys. Each is changed under every method, protection and mode: a run
// that changes reads it and must be among those, and every value that is named must have
// such a run.
func TestKeysAreReadByWhomTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of small runs on one worker: nothing is concurrent")
	}
	keys := map[string]config.Key{}
	for _, k := range config.Keys(config.Run{}) {
		keys[k.Path] = k
	}
	d := probing{t.TempDir(), map[string]string{}}
	d.write(t)
	read := map[string]map[string]bool{} // key: choice=value with which a run changed
	also := map[string]bool{}            // keys that an evaluation has read
	ofPeople := map[string]bool{}        // keys that were changed where people train
	for _, p := range probes {
		k, ok := keys[p.path]
		if !ok || k.Block && k.Field != nil && !strings.Contains(k.Type, "list") {
			t.Fatalf("%s is no key to be set", p.path)
		}
		if read[p.path] == nil {
			read[p.path] = map[string]bool{}
		}
		ofPeople[p.path] = ofPeople[p.path] || p.on == "people"
		tried := false
		d.everywhere(keys, func(chosen map[string]string) {
			known := !slices.ContainsFunc(choices, func(path string) bool { return !read[p.path][path+"="+chosen[path]] })
			if known && holds(k, chosen) || !d.changes(t, p, chosen) {
				return // known: nothing would be learned
			}
			if strings.Contains(p.with, "judge.evaluate") {
				also[p.path] = true
				return
			}
			if !holds(k, chosen) {
				t.Errorf("%s changes a run of %v, but is said to be read with %v", p.path, chosen, k.Only)
			}
			for _, path := range choices {
				read[p.path][path+"="+chosen[path]] = true
			}
			if !tried { // once
				tried = true
				for _, c := range k.Only {
					d.checkCondition(t, keys, p, c, chosen)
				}
			}
		})
	}
	for _, path := range slices.Sorted(maps.Keys(read)) {
		k := keys[path]
		for _, choice := range choices {
			for _, v := range keys[choice].Values {
				said := false
				d.everywhere(keys, func(chosen map[string]string) {
					said = said || chosen[choice] == v && holds(k, chosen) && d.runs(t, chosen)
				})
				if v == "node" && !ofPeople[path] {
					continue // what examples read under it, nodes do: they train alike
				}
				if got := read[path][choice+"="+v]; got != said && !elsewhere(path, v) {
					t.Errorf("%s, %s %s: read %v, said to be %v", path, choice, v, got, said)
				}
			}
		}
		if (k.Also != "") != also[path] {
			t.Errorf("%s: read by an evaluation %v, said to be read by %q", path, also[path], k.Also)
		}
	}
	for path, k := range keys {
		block, _, _ := strings.Cut(path, ".")
		mine := k.Field != nil && !k.Block && (block == "algorithm" || block == "privacy") && !slices.Contains(append(choices, "privacy.accounting"), path)
		if mine && read[path] == nil {
			t.Errorf("nothing changes %s: add a probe", path)
		}
	}
}

// elsewhere says that the table leaves it to its words why a choice does not read a key.
func elsewhere(path, choice string) bool {
	switch path + " " + choice {
	case "data.validation_users local", "data.validation_users pca-local": // have others judge them
		return true
	case "privacy.silos central": // knows no silo's name
		return true
	}
	// A projection has a model of its own, and asks for no targets.
	answers := []string{"data.groups", "data.noise", "data.parameters", "data.shares", "data.shift", "model.init_sd", "model.intercept", "model.start"}
	return strings.HasPrefix(choice, "pca") && slices.ContainsFunc(answers, func(key string) bool { return strings.HasPrefix(path, key) })
}

// everywhere calls f with every method under every protection in both modes.
func (d probing) everywhere(keys map[string]config.Key, f func(chosen map[string]string)) {
	for _, method := range fl.Methods() {
		for _, protects := range fl.Protections() {
			for _, mode := range keys["algorithm.mode"].Values {
				f(map[string]string{"algorithm.kind": method, "privacy.protects": protects, "algorithm.mode": mode})
			}
		}
	}
}

// checkCondition finds a key that is read although another one does not have the value
// that it is said to need.
func (d probing) checkCondition(t *testing.T, keys map[string]config.Key, p probe, c config.Condition, chosen map[string]string) {
	t.Helper()
	if _, choice := chosen[c.Path]; choice || c.Path == "data.kind" {
		return
	}
	for _, other := range keys[c.Path].Values {
		if !slices.Contains(c.Values, other) && d.changes(t, p, chosen, c.Path+"="+other) {
			t.Errorf("%s changes a run of %v with %s %s, but is said to be read with %v", p.path, chosen, c.Path, other, c.Values)
		}
	}
}

// train leaves a model in a folder that others can start from.
func (d probing) train(t *testing.T, folder string) {
	t.Helper()
	chosen := map[string]string{"algorithm.kind": "fedavg", "privacy.protects": "nothing", "algorithm.mode": "paper"}
	run, err := config.ResolveIn(d.folder, []byte(fileOf("", chosen)), append(settingsOf(chosen), strings.Fields(network)...), sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	made, err := sim.CreateDirectory(filepath.Join(d.folder, folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if _, err := s.Execute(context.Background(), made, func(sim.Moment) {}); err != nil {
		t.Fatal(err)
	}
}

// write makes a table and pictures to probe on, and a model to start from.
func (d probing) write(t *testing.T) {
	t.Helper()
	d.train(t, "start")
	rows := "ward,age,weight,ill\n"
	for i := range 60 {
		age, weight := i*37%100, i*53%100
		ill := "no"
		if age+weight > 90+i%3*20 {
			ill = "yes"
		}
		rows += fmt.Sprintf("%s,%d,%d,%s\n", []string{"north", "south", "west"}[i%3], age, weight, ill)
	}
	if err := os.WriteFile(filepath.Join(d.folder, "rows.csv"), []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		folder := filepath.Join(d.folder, "pictures", []string{"north", "south"}[i%2], []string{"a", "b"}[i/2%2])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		picture := image.NewGray(image.Rect(0, 0, 3, 3))
		for at := range 9 {
			picture.SetGray(at%3, at/3, color.Gray{Y: uint8(i * at * 29)})
		}
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.png", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, picture); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
