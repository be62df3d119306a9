package draft

import (
	"fmt"
	"strings"
)

const serveText = `# The server of a federation: coterie serve serve.yaml
# It needs run.yaml and no data. Who may take part is invited by name:
#   coterie ca init ca --server HOST:7443
#   coterie ca invite %s --ca ca --out %s.invite
run: run.yaml
listen: 0.0.0.0:7443         # where participants dial in
ca: ca                       # the folder that coterie ca init makes
participants: %s
deadline_seconds: 600        # how long a round waits for an answer
`

const joinHead = `# A participant of a federation: coterie join join.yaml
# Every participant has its own copy of this file, of run.yaml and of policy.yaml, beside
# its own data. It reads its data as its own run.yaml describes them, before it asks the
# server for anything; a server whose run file describes them otherwise is refused.
# First: coterie join --invite NAME.invite --identity identity
identity: identity           # this participant's key and certificate
ledger: ledger               # what was paid so far; losing it is losing the budget's count
policy: policy.yaml          # what may be released at all
out: out                     # its model, and what it must remember
data:
  kind: own
  run: run.yaml
`

const policyText = `# What this participant allows, whatever a server asks for. It is enforced here, before
# any noise is drawn: what goes beyond it is refused, and nothing leaves.
ceilings:
  # What all releases of these data together may tell about one row, over all runs and all
  # federations. Whoever sees them can tell whether somebody's row is there with odds of at
  # most e^epsilon to 1, but for a chance of delta. 2 is what run.yaml asks for one run;
  # the rest is what adding up round by round costs. A second run like it needs a higher ceiling.
  - unit: example            # a single row is protected
    relation: add-remove     # whether it is there or not
    claim: proved            # only numbers that a proof covers
    epsilon: 2.1
    delta: %s
  # As long as run.yaml lists anything under data.not_public, its claim is heuristic and the
  # line above refuses it. To allow it all the same, knowing that no proof covers what the
  # file itself tells about the data, take the # away:
  # - {unit: example, relation: add-remove, claim: heuristic, epsilon: 2.1, delta: %s}
methods: [mr-mtl]            # ways of training that may be asked for
maximum_rounds: %d          # a longer plan is refused
minimum_cohort: %d            # fewest participants that a round is made of: in a small circle everybody's model shows more clearly
`

// writeFederation drafts what a server and its participants read.
func (d *Draft) writeFederation(r Request, s settings, files []string) error {
	names := participants(d.Clients)
	join := &strings.Builder{}
	join.WriteString(joinHead)
	path, whole := r.Path, true
	if r.Client == "" && len(files) > 0 {
		path, whole = files[0], false
	}
	path, err := r.from(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(join, "  source:                    # where this participant's own data lie\n    path: %s\n", quoted(path))
	switch {
	case r.Client != "":
		fmt.Fprintf(join, "    client: %s\n  # Of this file only the rows of one client are taken.\n  name: %s\n", quoted(r.Client), quoted(d.Clients[0].Name))
	case !whole:
		fmt.Fprintf(join, "  # Its name in run.yaml's simulation.\n  name: %s\n", quoted(d.Clients[0].Name))
	}
	d.Files = append(d.Files,
		File{"serve.yaml", fmt.Sprintf(serveText, quoted(names[0]), quoted(names[0]), quotedList(names))},
		File{"join.yaml", join.String()},
		File{"policy.yaml", fmt.Sprintf(policyText, number(s.delta), number(s.delta), s.rounds, max(1, (len(d.Clients)+1)/2))})
	return nil
}
