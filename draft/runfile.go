package draft

import (
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/data"
)

// ForYou is said wherever something of the data is shown.
const ForYou = "these files contain statements about your data; they are for you"

const tableHead = `# A first run on %s, drafted by coterie init.
#
# Careful: ` + ForYou + `.
# Lines marked "not public: replace or pay" hold values that were read off the data.
# Whoever sees this file learns something about single rows from them, and that is
# covered by no proof: the run's privacy claim is "heuristic" as long as data.not_public
# lists any of them. For each one
#   - replace it by what everybody knows without looking: nobody is older than 120, a
#     ward has the names on its door, a survey asked at least 300 people;
#   - or pay: write a wide range that surely holds (income: [0, 10000000]) and set
#     standardise: paid under data. Every client then finds means and deviations within
#     it for a part of its epsilon, and numbers far from the ends still count;
# and delete its line from data.not_public. A statement that is a little wrong does no
# harm: numbers outside a range are moved to its end, unknown categories count as other.
# Look at the choice of columns and types as well: it was made by looking at the data.
`

// writeTable drafts all files on a table.
func (d *Draft) writeTable(r Request, files []string) error {
	path, err := r.from(r.Path)
	if err != nil {
		return err
	}
	s := settle(d.Clients, d.Rows)
	top, rest := &writer{marked: &d.NotPublic}, &writer{marked: &d.NotPublic}
	top.line("%sname: %s\nseed: 1                      # keys which rows are held out, and where training starts\ndata:", fmt.Sprintf(tableHead, comment(filepath.Base(r.Path))), quoted(runName(d.Target.Name)))
	top.line("  kind: table\n  source:                    # where the rows lie: never sent to anybody\n    path: %s", quoted(path))
	if r.Client != "" {
		top.line("    client: %s", quoted(r.Client))
	}
	d.writeTarget(top)
	top.line("  features:                  # numbers are clipped to their range and scaled; every category becomes an input of its own")
	for _, c := range d.Columns {
		c.write(top)
	}
	d.writeSensitive(top)
	top.line("  test_share: %v            # of every client's rows, to judge its model on; they do not train", heldOut)
	d.writeSettings(rest, s)
	d.finish(top, rest, judgeOwn)
	return d.writeFederation(r, s, files)
}

// judgeOwn is how most runs are judged.
const judgeOwn = "judge: {by: own}             # every client's model on what it holds out"

// finish puts the parts of the run file together, with the list of what is marked.
func (d *Draft) finish(top, rest *writer, judge string) {
	rest.line("%s", judge)
	top.line("  not_public:                # taken from the data; delete a line once its value is replaced or paid for")
	for _, path := range d.NotPublic {
		top.line("    - %s", quoted(path))
	}
	d.Files = append(d.Files, File{"run.yaml", top.String() + rest.String()})
}

func (d *Draft) writeTarget(w *writer) {
	t := d.Target
	w.line("  target: %s\n  task: %s", quoted(t.Name), d.Task)
	if t.Why != "" {
		w.line("  # %s: %s.", comment(t.Name), t.Why)
	}
	switch {
	case d.Task == data.TaskNumber:
		w.taken("data.target_range", "  target_range: %s", rangeText(t.Range))
	case len(t.Values) > 0:
		w.taken("data.classes", "  classes: %s", quotedList(t.Values))
	}
	if t.Missing > 0 {
		w.taken("data.target_missing", "  target_missing: leave-out")
	}
}

// write is a feature, or a comment that says why the column is none.
func (c Column) write(w *writer) {
	if c.Type == "" {
		w.line("    # left out: %s %s", comment(c.Name), c.Why)
		return
	}
	if c.Why != "" {
		w.line("    # %s: %s.", comment(c.Name), c.Why)
	}
	if c.Sensitive {
		w.line("    # %s is a sensitive attribute: should the model know it? If not, delete it here; it stays under sensitive.", comment(c.Name))
	}
	w.line("    - name: %s\n      type: %s", quoted(c.Name), c.Type)
	path := "data.features." + c.Name
	if len(c.Range) > 0 {
		w.taken(path+".range", "      range: %s", rangeText(c.Range))
	}
	if len(c.Values) > 0 {
		w.taken(path+".values", "      values: %s", quotedList(c.Values))
	}
	if c.Missing > 0 {
		w.taken(path+".missing", "      missing: indicator")
	}
}

// writeSensitive lists what the fairness audit should look at.
func (d *Draft) writeSensitive(w *writer) {
	first := true
	for _, c := range d.Columns {
		if !c.Sensitive {
			continue
		}
		if first {
			w.line("  # Taken for sensitive by their names, for coterie audit fairness: check the list.\n  sensitive:")
			first = false
		}
		w.line("    - name: %s", quoted(c.Name))
		if len(c.Values) == 0 { // the usual words, which every run file knows
			w.line("      values: %s           # however they are written", quotedList([]string{"no", "yes"}))
			continue
		}
		w.taken("data.sensitive."+c.Name+".values", "      values: %s", quotedList(c.Values))
	}
}

const algorithmText = `algorithm:
  kind: mr-mtl               # every client gets a model of its own, drawn to the others'
  mode: sound
  rounds: %d
  lambda: 0.1                # how strongly: 0 is everybody alone, large is one model for all
  local:
    step: %v
`

const privacyText = `privacy:
  protects: example          # every single %[1]s of every client
  relation: add-remove       # nobody can tell whether a %[1]s is there or not
  epsilon: 2                 # what training may tell about a %[1]s: e^2 is the most that odds change
`

func (d *Draft) writeSettings(w *writer, s settings) {
	w.line("model: {kind: linear}        # a weight for every input%s", map[string]string{
		data.TaskNumber: ": linear regression", data.TaskYesNo: ": logistic regression", data.TaskClasses: " and class: softmax regression",
	}[d.Task])
	step := 0.3
	if d.Task == data.TaskNumber {
		step = 0.1
	}
	fmt.Fprintf(w, algorithmText, s.rounds, step)
	w.line("    # Rows in a step, about: %s of public_size. Small batches save privacy, but need rows to hide in.", shareText(s))
	w.taken("algorithm.local.batch", "    batch: %d", s.batch)
	if weights := d.Target.weights; weights != nil {
		w.line("    # One outcome is rare. Weights let its rows count more, at no cost in privacy if they are public:\n"+
			"    # taken from the data they tell how rare it is. To use these, take the # away and list\n"+
			"    # algorithm.local.class_weights under data.not_public; better, write what is known of other data.\n"+
			"    # Probabilities of the rare one are then too high. Or delete these lines before others see the file.\n"+
			"    # class_weights: [%d, %d]"+mark, weights[0], weights[1])
	}
	w.writePrivacy(s, "row")
	if d.Task == data.TaskNumber {
		w.line("  clip: 0.1                  # most that a row counts for in a step: errors of a target within 0…1 are small")
	}
}

func shareText(s settings) string {
	switch {
	case s.publicSize >= 300:
		return "a tenth"
	case s.publicSize >= 150:
		return "a fifth"
	}
	return "half"
}

// writePrivacy is about rows, or whatever an example is.
func (w *writer) writePrivacy(s settings, example string) {
	fmt.Fprintf(w, privacyText, example)
	if s.deltaTaken {
		w.line("  # With what chance that may fail: less than one in the largest client's %ss.", example)
		w.taken("privacy.delta", "  delta: %s", number(s.delta))
	} else {
		w.line("  delta: 1.0e-5              # with what chance that may fail; it does not come from the data")
	}
	w.line("  # A size that you declare for every client instead of its true one; steps and noise follow\n"+
		"  # from it. It need not be right. It was taken from the usual client's number of %ss.", example)
	w.taken("privacy.public_size", "  public_size: %d", s.publicSize)
	w.line("  noise: exact               # from the system's entropy, as a federation needs it; exact-seeded repeats, for tests")
}
