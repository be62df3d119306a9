package manual

// What a generator cannot know: the words around the keys, and small examples. A test
// loads every one of them.

const head = `# The run file, key by key

A run file is YAML: which data, which model, which method, which protection. Every key has a default; a file
says what it wants otherwise. The smallest useful one is` + " `data: {kind: synthetic}`" + `; ` + "`coterie init`" + ` writes one for
your own data, with comments. This page is written from what the loader checks, so it says what the program
does; it also has the files of a federation and of sweeps.

`

const howToRead = `## How to read this page

- Paths are what ` + "`--set`" + ` takes, as in ` + "`coterie run FILE --set algorithm.rounds=100`" + `. ` + "`[]`" + ` stands for the items of a
  list, which ` + "`--set`" + ` gives as a whole.
- A default may follow from four choices: ` + "`data.kind`, `algorithm.mode`, `algorithm.kind` and `privacy.protects`" + `.
  Then the usual default comes first and the others after it. A run directory's ` + "`run.yaml`" + ` has every value that
  was used.
- "Read with" says which choices read a key; with others it changes nothing, or is refused. Keys without
  these words are read always.
- Data of silos are those in which every client holds out examples of its own to be judged by; the others hold
  out whole clients. The table at [data](#data) says which are which.
- Files are strict. An unknown key, a wrong type or a value out of range is refused, with line, column and the
  nearest known key, all faults at once; nothing has been run or paid for by then.
- Editors complete and check run files by their JSON schema: ` + "`coterie run --schema > run.schema.json`" + `, and
  ` + "`# yaml-language-server: $schema=run.schema.json`" + ` as the file's first line.

`

// examples are of the run file's blocks: each is a whole run file.
var examples = map[string]string{
	"data": `data:
  kind: synthetic          # y = x·theta + u, with a theta for every group of clients
  users: 50                # that train
  samples: 20              # rows each
  groups: 3
`,
	"model": `model:
  kind: network
  layers:
    - {kind: linear, units: 8}
    - {kind: relu}
    - {kind: linear, units: 1}
`,
	"algorithm": `algorithm:
  kind: ifca               # a model for every cluster
  hypotheses: 2
  rounds: 50
  sampling: balanced
  local: {epochs: 2, step: 0.05}
`,
	"privacy": `algorithm: {kind: fedavg, mode: sound}
privacy:
  protects: example        # single rows, by noise in every step
  epsilon: 4               # every participant's target
  delta: 1.0e-5
  clip: 1
  public_size: 10          # what noise and steps follow from; the true number stays private
`,
	"judge": `algorithm: {kind: mr-mtl}
judge:
  by: own                  # everybody's own model on its own held-out rows
  compare: [local, fedavg] # beside it, with the same settings
`,
	"run": `run:
  workers: 2
  checkpoint_seconds: 30
`,
}

const (
	serveWords = "What `coterie serve` reads. Paths are seen from the file's folder."

	serveExample = `run: run.yaml
listen: 0.0.0.0:7443
participants: [north, south, west]
quorum: 2                  # two answers close a round
deadline_seconds: 3600
`

	joinWords = "What `coterie join` reads. Paths are seen from the file's folder."

	joinExample = `ledger: /secure/ledger     # one a data set, for all runs and federations
policy: policy.yaml
data:
  kind: own
  run: run.yaml
  source: {path: ward.csv}
`

	policyWords = "What a participant allows, whatever a server asks; the join file names it. Ceilings hold for the data set, over all runs and federations; each needs `unit`, `relation` and `claim`."

	policyExample = `ceilings:
  - {unit: example, relation: add-remove, claim: proved, epsilon: 3, delta: 1.0e-5}
methods: [fedavg, mr-mtl]
maximum_rounds: 200
`

	sweepWords = "What `coterie sweep` reads."

	sweepExample = `run: run.yaml
seeds: 3
grid:
  algorithm.lambda: [0.3, 1, 3]
  algorithm.local.step: [0.003, 0.01]
`
)
