package report

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// run is a result with its run file and its name in the report. A report is also made
// of a file that this version cannot read: then it tells less.
type run struct {
	sim.Result
	plan  config.Run
	known bool // the run file could be read
	label string
}

// runsOf names the results so that no two have the same name.
func runsOf(results []sim.Result) []run {
	out := make([]run, len(results))
	seen := map[string]int{}
	for i, r := range results {
		out[i] = run{Result: r, label: methodName(r.Summary)}
		if file, err := config.Load([]byte(r.Config)); err == nil && strings.TrimSpace(r.Config) != "" {
			out[i].plan, out[i].known = file.Run, true
		}
		seen[out[i].label]++
	}
	used := map[string]bool{}
	for i, r := range results {
		first := out[i].label
		name := first
		if seen[name] > 1 && r.Name != "" && r.Name != r.Algorithm {
			name += " · " + r.Name
		}
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s (%d)", first, n)
		}
		used[name] = true
		out[i].label = name
	}
	return out
}

// methodName is a run's method for readers.
func methodName(r sim.Summary) string {
	switch {
	case r.Algorithm == "":
		return "Unnamed method"
	case r.Algorithm == "fedavg" && r.Privacy.Protects == "client":
		return "DP-FedAvg"
	}
	name := capital(prose.Method(r.Algorithm))
	if r.Mode == "sound" && r.Privacy.Protects == "update" {
		name += " (sound)"
	}
	return name
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// what says what the method is, how many models there are, and what is protected.
func (r run) what() string {
	var parts []string
	if words := fl.MethodWords(r.Algorithm); words != "" {
		parts = append(parts, capital(words)+".")
	}
	if r.Hypotheses > 1 {
		parts = append(parts, fmt.Sprintf("The server keeps %s.", prose.Counted(r.Hypotheses, "model", "models")))
	}
	words := fl.ProtectionWords(r.Privacy.Protects)
	if central(r.Summary) && r.Privacy.Protects == "nothing" {
		words = "nothing" // and nothing is sent, either
	}
	if words != "" {
		parts = append(parts, "What is protected: "+words+".")
	}
	switch {
	case r.Privacy.Protects != "update":
	case r.Privacy.Radius != nil:
		parts = append(parts, "Updates are clipped to a public radius and noised in proportion to it.")
	default:
		parts = append(parts, "Noise is in proportion to every update’s own length, as the papers write it.")
	}
	return strings.Join(parts, " ")
}

// lead is the first sentence of the report.
func lead(runs []run) string {
	r := runs[0]
	if len(runs) == 1 {
		claim := string(r.Privacy.Claim)
		if r.Privacy.Claim != event.ClaimNone {
			claim += "; what it is about: " + layout.UnitProtected(r.Privacy.Statement)
		}
		of := " with " + prose.Counted(r.Clients, "client", "clients") + "; a"
		if central(r.Summary) {
			of = " on one data set; the"
		}
		return fmt.Sprintf("%s%s model has %s. Privacy claim: %s.", r.label, of, prose.Counted(r.Parameters, "parameter", "parameters"), claim)
	}
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.label
	}
	on := ""
	switch {
	case sameData(runs) && allCentral(runs):
		on = " on the same data"
	case sameData(runs):
		on = fmt.Sprintf(" on the same data of %s", prose.Counted(r.Clients, "client", "clients"))
	}
	return fmt.Sprintf("%s, side by side%s.", prose.Joined(names), on)
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
func sameData(runs []run) bool {
	for _, r := range runs {
		if !r.known || !reflect.DeepEqual(r.plan.Data, runs[0].plan.Data) || r.plan.Seed != runs[0].plan.Seed {
			return false
		}
	}
	return true
}

func dataNotes(runs []run) []dataNote {
	if len(runs) == 1 || sameData(runs) {
		return []dataNote{{"", runs[0].dataStory(), loaded(runs[0].Data)}}
	}
	notes := make([]dataNote, len(runs))
	for i, r := range runs {
		notes[i] = dataNote{r.label, r.dataStory(), loaded(r.Data)}
	}
	return notes
}

// loaded is what was read, and what was left out and why.
func loaded(d *data.LoadReport) (lines []string) {
	if d == nil {
		return nil
	}
	lines = append(lines, fmt.Sprintf("%s: %s of %s kept.", d.Source, prose.Count(d.Kept), prose.Counted(d.Rows, "row", "rows")))
	for _, o := range d.LeftOut {
		lines = append(lines, fmt.Sprintf("Left out: %s (%s).", prose.Count(o.Count), o.Reason))
	}
	return append(lines, d.Notes...)
}

// dataStory tells what a result was trained on.
func (r run) dataStory() string {
	trained := sentence(prose.Counted(r.Clients, "client", "clients")) + " trained"
	if central(r.Summary) {
		trained = "All examples were trained on together"
	}
	if !r.known {
		return trained + ". The run file could not be read by this version: the configuration below is as it was stored."
	}
	d := r.plan.Data
	judged := "; others, that take no part, judge the models."
	switch {
	case tested(r.Summary):
		judged = "; judged is " + testedWords(r.Summary) + "."
	case d.Kind == "synthetic":
		judged = fmt.Sprintf("; %s only %s the models.", prose.Counted(d.ValidationUsers, "other", "others"), verb(d.ValidationUsers, "judges", "judge"))
	}
	if d.Kind != "synthetic" {
		return realData(d) + ". " + trained + judged
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
	fmt.Fprintf(&b, "There %s %s with %s each%s", verb(d.Users, "is", "are"), prose.Counted(d.Users, "training client", "training clients"), prose.Counted(d.Samples, "row", "rows"), judged)
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
func (r run) trainingStory() string {
	var b strings.Builder
	if r.known {
		b.WriteString(r.roundWords() + clippingWords(r.plan))
		if nu := r.plan.Privacy.NoiseMultiplier; nu > 0 {
			fmt.Fprintf(&b, "The noise multiplier is %s. ", prose.Setting(nu))
		}
	}
	b.WriteString(r.ending() + " " + r.returning())
	if moved := relocations(r); moved > 0 {
		fmt.Fprintf(&b, " %s moved to a released vector for want of updates.",
			sentence(prose.Counted(moved, "time a hypothesis was", "times a hypothesis was")))
	}
	if text := clusterSizes(r.Summary, r.History.Clusters); text != "" {
		b.WriteString(" " + text)
	}
	return b.String()
}

// verb fits a number.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// clusterSizes says how clients came to share models, where they could choose, and which
// models were left over: groups that have found no model of their own train together.
func clusterSizes(r sim.Summary, budgets []sim.ClusterBudget) string {
	if r.Hypotheses < 2 {
		return ""
	}
	sizes, total, unused := make([]int, r.Hypotheses), 0, 0
	for _, l := range r.Participants {
		if l.Cluster != nil && *l.Cluster >= 0 && *l.Cluster < len(sizes) {
			sizes[*l.Cluster]++
			total++
		}
	}
	for i, c := range budgets {
		if len(r.Participants) == 0 && i < len(sizes) {
			sizes[i] = c.Clients
			total += c.Clients
		}
	}
	if total == 0 || len(sizes) > chart.MostNumbered {
		return ""
	}
	words := make([]string, len(sizes))
	for i, n := range sizes {
		words[i] = prose.Count(n)
		if n == 0 {
			unused++
		}
	}
	text := "Clusters of " + prose.Joined(words) + " clients."
	if unused > 0 {
		text += fmt.Sprintf(" Nobody chose %d of %d models: groups may have been left together (algorithm.empty says what becomes of such models).", unused, len(sizes))
	}
	return text
}

// roundWords say who trains in a round, and for how long.
func (r run) roundWords() string {
	a := r.plan.Algorithm
	asked := fmt.Sprintf("%s of %s %s", prose.Count(a.ClientsPerRound), prose.Count(r.Clients), verb(a.ClientsPerRound, "trains", "train"))
	switch {
	case central(r.Summary):
		asked = "the model trains"
	case a.ClientsPerRound == 0 || a.ClientsPerRound == r.Clients:
		asked = "all clients train"
	}
	long := prose.Counted(a.Local.Epochs, "epoch", "epochs")
	if a.Local.Steps > 0 {
		long = prose.Counted(a.Local.Steps, "step", "steps")
	}
	return fmt.Sprintf("In every round %s for %s with step %s on %s. ", asked, long, prose.Setting(a.Local.Step), r.batchWords())
}

func (r run) batchWords() string {
	l, one := r.plan.Algorithm.Local, "row"
	if shape, _ := data.ShapeOf(r.plan.Data); shape.Pictures() {
		one = "picture"
	}
	all := "all their " + one + "s"
	if central(r.Summary) {
		all = "all " + one + "s"
	}
	limited := l.Limit > 0 && one == "picture"
	if limited {
		all = "at most " + prose.Counted(l.Limit, one, one+"s") + " of theirs, drawn afresh"
	}
	switch {
	case l.Batch == 0:
		return all
	case limited:
		return "batches of " + prose.Count(l.Batch) + " out of " + all
	}
	return "batches of " + prose.Counted(l.Batch, one, one+"s")
}

func (r run) ending() string {
	rounds := prose.Counted(r.Rounds, "round", "rounds")
	judge := "validating clients"
	if tested(r.Summary) {
		judge = "held-out examples"
	}
	switch r.Stopped {
	case sim.StoppedRounds:
		return "Training ran for " + rounds + ", as many as were planned."
	case sim.StoppedPatience:
		if r.known && r.plan.Algorithm.Stop.Patience > 0 {
			return fmt.Sprintf("Training stopped after %s, because the %s had shown no improvement %s running.",
				rounds, judge, prose.Counted(r.plan.Algorithm.Stop.Patience, "time", "times"))
		}
		return fmt.Sprintf("Training stopped after %s, because the %s showed no further improvement.", rounds, judge)
	case sim.StoppedBudget:
		return "Training stopped after " + rounds + ", because every client had reached its ceiling."
	case "":
		return "Training ran for " + rounds + "."
	}
	return fmt.Sprintf("Training ran for %s and stopped: %s.", rounds, r.Stopped)
}

func (r run) returning() string {
	switch {
	case central(r.Summary) && r.Returned != "best":
		return "The model of the last round is returned."
	case r.Returned == "best" && r.BestRound == 0:
		return "The models before the first round are returned, the best by validation."
	case r.Returned == "best":
		return fmt.Sprintf("The models of round %s are returned, the best by validation.", prose.Count(r.BestRound))
	}
	return "The models of the last round are returned."
}

// repeatability says whether the commands give the same models again. Exact noise
// is drawn from the system and cannot be repeated.
func repeatability(runs []run) string {
	text := "The same command, version and kernel give the same models, to the last bit: the hash of the models proves it."
	var exact []string
	for _, r := range runs {
		if r.known && r.plan.Privacy.Noise == "exact" && r.Privacy.Protects != "nothing" {
			exact = append(exact, r.label)
		}
	}
	switch {
	case len(exact) == 0:
		return text
	case len(exact) == len(runs):
		return "Exact noise comes from the system and cannot be repeated: the same command gives other models."
	}
	return text + " Except " + prose.Joined(exact) + ": exact noise comes from the system and cannot be repeated."
}

// relocations counts moved hypotheses where every round was recorded.
func relocations(r run) (moved int) {
	if r.History.Stride > 1 {
		return 0
	}
	for _, record := range r.History.Rounds {
		moved += record.Relocated
	}
	return moved
}
