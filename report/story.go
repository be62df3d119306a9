package report

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// plan is a result's run file. A report is also made of a file that this version
// cannot read: then it tells less.
type plan struct {
	run   config.Run
	known bool
}

func planOf(r sim.Result) plan {
	if strings.TrimSpace(r.Config) == "" {
		return plan{}
	}
	file, err := config.Load([]byte(r.Config))
	if err != nil {
		return plan{}
	}
	return plan{file.Run, true}
}

// method is how a result is called in the report.
type method struct {
	Label string
	Long  string
}

// methodsOf names the results so that no two have the same name.
func methodsOf(results []sim.Result) []method {
	out := make([]method, len(results))
	seen := map[string]int{}
	for i, r := range results {
		out[i] = methodOf(r)
		seen[out[i].Label]++
	}
	used := map[string]bool{}
	for i, r := range results {
		name := out[i].Label
		if seen[name] > 1 && r.Name != "" && r.Name != r.Algorithm {
			name += " · " + r.Name
		}
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s (%d)", out[i].Label, n)
		}
		used[name] = true
		out[i].Label = name
	}
	return out
}

func methodOf(r sim.Result) method {
	switch r.Algorithm {
	case "fedavg":
		return method{"FedAvg", "One model for everybody, without noise."}
	case "ifca":
		return method{"IFCA", fmt.Sprintf("%s, without noise. Every client trains the one that fits it best.",
			sentence(prose.Counted(r.Hypotheses, "model", "models")))}
	case "group-private":
		name, how := "Group-private", "Noise is in proportion to every update’s own length, as the papers write it."
		if r.Mode == "sound" {
			name, how = name+" (sound)", "Updates are clipped to a public radius and noised in proportion to it."
		}
		return method{name, fmt.Sprintf("%s. Every client trains the one that fits it best and adds noise before it sends anything. %s",
			sentence(prose.Counted(r.Hypotheses, "model", "models")), how)}
	}
	name := r.Algorithm
	if name == "" {
		name = "Unnamed method"
	}
	return method{name, ""}
}

// sentence starts a sentence: small numbers in words.
func sentence(s string) string {
	words := map[string]string{"1": "One", "2": "Two", "3": "Three", "4": "Four", "5": "Five", "6": "Six",
		"7": "Seven", "8": "Eight", "9": "Nine", "10": "Ten"}
	number, rest, found := strings.Cut(s, " ")
	if word, ok := words[number]; ok && found {
		return word + " " + rest
	}
	return s
}

// sameData says that all results were trained on the same data.
func sameData(plans []plan) bool {
	for _, p := range plans {
		if !p.known || !reflect.DeepEqual(p.run.Data, plans[0].run.Data) || p.run.Seed != plans[0].run.Seed {
			return false
		}
	}
	return true
}

// dataStory tells what a result was trained on.
func dataStory(r sim.Result, p plan) string {
	if !p.known {
		return fmt.Sprintf("%s trained. The run file could not be read by this version: the configuration below is as it was stored.",
			sentence(prose.Counted(r.Clients, "client", "clients")))
	}
	d := p.run.Data
	if d.Kind != "synthetic" {
		return fmt.Sprintf("%s. %s trained.", realData(d), sentence(prose.Counted(r.Clients, "client", "clients")))
	}
	var b strings.Builder
	groups := len(r.History.Truth)
	switch {
	case groups > 1:
		fmt.Fprintf(&b, "Generated data, in which %s of clients follow different rules: in each, y = x·θ + u with a θ of its own", prose.Counted(groups, "group", "groups"))
	case groups == 1:
		b.WriteString("Generated data, in which all clients follow one rule, y = x·θ + u")
	default:
		b.WriteString("Generated data: y = x·θ + u, with a θ for every group of clients")
	}
	if len(d.Shift) > 0 {
		b.WriteString(", moved by a constant of its own")
	}
	fmt.Fprintf(&b, ". Features x are %s; the noise u is %s. ", distributionWords(d.X), distributionWords(d.Noise))
	fmt.Fprintf(&b, "There %s %s with %s each, and %s that only %s.",
		are(d.Users), prose.Counted(d.Users, "training client", "training clients"), prose.Counted(d.Samples, "row", "rows"),
		prose.Counted(d.ValidationUsers, "other", "others"), validate(d.ValidationUsers))
	return b.String()
}

// realData names what was read.
func realData(d config.Data) string {
	k, err := data.KindOf(d)
	if err != nil {
		return fmt.Sprintf("Data of the kind %q", d.Kind)
	}
	return k.Words(d)
}

func distributionWords(d config.Distribution) string {
	if d.Kind == "normal" {
		return fmt.Sprintf("normal with mean %s and standard deviation %s", prose.Setting(d.Mean), prose.Setting(d.SD))
	}
	return fmt.Sprintf("uniform between %s and %s", prose.Setting(d.Low), prose.Setting(d.High))
}

// trainingStory tells how a result was trained, and how it ended.
func trainingStory(r sim.Result, p plan) string {
	var b strings.Builder
	if p.known {
		a := p.run.Algorithm
		fmt.Fprintf(&b, "In every round %s of %s %s asked and %s for %s with step %s on %s. ",
			prose.Count(a.ClientsPerRound), prose.Count(r.Clients), are(a.ClientsPerRound), trains(a.ClientsPerRound),
			prose.Counted(a.Local.Epochs, "epoch", "epochs"), prose.Setting(a.Local.Step), batchWords(r, a.Local))
		if nu := p.run.Privacy.NoiseMultiplier; nu > 0 {
			fmt.Fprintf(&b, "The noise multiplier is %s. ", prose.Setting(nu))
		}
	}
	b.WriteString(ending(r, p))
	b.WriteString(" ")
	b.WriteString(returning(r))
	if moved := relocations(r); moved > 0 {
		fmt.Fprintf(&b, " %s moved to a released vector for want of updates.",
			sentence(prose.Counted(moved, "time a hypothesis was", "times a hypothesis was")))
	}
	return b.String()
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func trains(n int) string {
	if n == 1 {
		return "trains"
	}
	return "train"
}

func validate(n int) string {
	if n == 1 {
		return "validates"
	}
	return "validate"
}

func batchWords(r sim.Result, l config.Local) string {
	one := exampleWord(r)
	many, all := one+"s", "all their "+one+"s"
	if l.Limit > 0 && pictures(r) {
		all = "at most " + prose.Counted(l.Limit, one, many) + " of theirs, drawn afresh"
	}
	if l.Batch == 0 {
		return all
	}
	if l.Limit > 0 && pictures(r) {
		return "batches of " + prose.Count(l.Batch) + " out of " + all
	}
	return "batches of " + prose.Counted(l.Batch, one, many)
}

func ending(r sim.Result, p plan) string {
	rounds := prose.Counted(r.Rounds, "round", "rounds")
	switch r.Stopped {
	case sim.StoppedRounds:
		return fmt.Sprintf("Training ran for %s, as many as were planned.", rounds)
	case sim.StoppedPatience:
		if p.known && p.run.Algorithm.Stop.Patience > 0 {
			return fmt.Sprintf("Training stopped after %s, because the validating clients had seen no improvement %s running.",
				rounds, prose.Counted(p.run.Algorithm.Stop.Patience, "time", "times"))
		}
		return fmt.Sprintf("Training stopped after %s, because the validating clients saw no further improvement.", rounds)
	case sim.StoppedBudget:
		return fmt.Sprintf("Training stopped after %s, because every client had reached its ceiling.", rounds)
	case "":
		return fmt.Sprintf("Training ran for %s.", rounds)
	}
	return fmt.Sprintf("Training ran for %s and stopped: %s.", rounds, r.Stopped)
}

func returning(r sim.Result) string {
	switch {
	case r.Returned == "best" && r.BestRound == 0:
		return "The models before the first round are returned, the best by validation."
	case r.Returned == "best":
		return fmt.Sprintf("The models of round %s are returned, the best by validation.", prose.Count(r.BestRound))
	default:
		return "The models of the last round are returned."
	}
}

// repeatability says whether the commands give the same models again. Exact noise
// is drawn from the system and cannot be repeated.
func repeatability(methods []method, plans []plan) string {
	text := "The same command, version and kernel give the same models, to the last bit: the hash of the models proves it."
	var exact []string
	for i, p := range plans {
		if p.known && p.run.Privacy.Noise == "exact" && p.run.Privacy.NoiseMultiplier > 0 {
			exact = append(exact, methods[i].Label)
		}
	}
	switch {
	case len(exact) == 0:
		return text
	case len(exact) == len(plans):
		return "Exact noise comes from the system and cannot be repeated: the same command gives other models."
	}
	return text + " Except " + prose.Joined(exact) + ": exact noise comes from the system and cannot be repeated."
}

// relocations counts moved hypotheses where every round was recorded.
func relocations(r sim.Result) (moved int) {
	if r.History.Stride > 1 {
		return 0
	}
	for _, record := range r.History.Rounds {
		moved += record.Relocated
	}
	return moved
}
