package main

// invented is a table that is nobody's data.
const invented = "coterie data generate clinics --out patients.csv; cp patients.csv new.csv"

// scenarios are what the readers of the pages have at hand and do.
var scenarios = []scenario{
	{
		page: "README.md", under: []string{"Two commands"},
		lines: []treatment{{line: "./scripts/test", never: "this test is a part of it"}},
		says:  []string{"group-private", "report  "},
	},
	{
		page: "README.md", under: []string{"Your own data"}, prepare: invented,
		after: left("predictions.csv", "clinic-03.onnx", "result/report.html"),
	},
	{
		page: "README.md", under: []string{"Real work"},
		words: map[string]string{"20261115-120000-ifca-1a2b3c": "$(ls coterie-runs | grep -e -ifca-)"},
		setup: func(w *walk) { w.write("my.yaml", twoFaults) },
		shows: []shown{{begins: "coterie: my.yaml", command: "coterie run my.yaml"}},
		says:  []string{"0.582", "2.578"}, // seed 1, balanced; seed 7
	},
	{
		page: "README.md", under: []string{"A real federation"},
		prepare: `(cd examples/federation; until [ -e ca/registry.json ]; do sleep 0.05; done
		for name in south west; do coterie ca invite $name --ca ca --out $name.invite; coterie join --invite $name.invite --identity $name/identity; coterie join $name.yaml 2>$name.log & done; builtin wait) >others.log 2>&1 &`,
		says: []string{"10 releases"},
	},
	{
		page: "README.md", under: []string{"The privacy calculator"},
		prepare: "printf 'silo,examples,batch,epochs,epsilon,delta\nnorth,1000,50,10,3,1e-5\n' >silos.csv",
		says:    []string{"2.38515", "5.6", "north", "Usage:"},
	},
	{
		page: "README.md", data: true,
		lines: []treatment{
			{line: "coterie reproduce dlg", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce hospital", as: "--scale smoke"},
			{line: "coterie run examples/mnist-private.yaml", soak: "two minutes"},
		},
		says: []string{"recovered", "equal opportunity difference"},
	},

	{
		page: "CONTRIBUTING.md",
		lines: []treatment{
			{line: "./scripts/test", never: "this test is a part of it"},
			{line: "go test ./cmd/coterie", never: "this test is a part of it"},
		},
	},
	{
		page: "python/README.md", python: true, prepare: twoColumns,
		setup: func(w *walk) { w.usePython() },
		lines: []treatment{
			{line: "pip install", by: "go test ./cmd/coterie -run TestDocuments"},
			{line: "go test ./cmd/coterie", never: "this test is among them"},
		},
		says: []string{"OK"},
	},

	{
		page: "README.md", under: []string{"The live page"},
		lines: []treatment{{line: "coterie dash", by: "go test ./cmd/coterie -run TestDash"}},
	},
	{
		page: "docs/dash.md",
		lines: []treatment{
			{line: "coterie dash", by: "go test ./cmd/coterie -run TestDash"},
			{line: "openssl", by: "go test ./cmd/coterie -run TestDashOfAFederation"},
		},
		says: []string{"report  "},
	},

	{page: "docs/README.md", under: []string{"You own data"}, most: 5, after: left("predictions.csv", "result/report.html"), says: []string{"Taking part paid for"}},
	{page: "docs/README.md", under: []string{"You run the server"}, most: 5, after: left("north.invite", "examples/federation/server/state.db"), says: []string{"waiting for participants", "north", "MISSING"}},
	{page: "docs/README.md", under: []string{"You compare methods"}, most: 5, after: left("result/report.html", "coterie-runs/reproduce-synthetic-quick/report.html"), says: []string{"IFCA", "verdict"}},
	{page: "docs/README.md", under: []string{"You audit"}, most: 5, says: []string{"equalized odds difference", "closed-form", "confidence"}},

	{
		page: "docs/audit.md", under: []string{"A canary"}, setup: func(w *walk) { w.write("run.yaml", canaryFile) },
		lines: []treatment{
			{line: "coterie audit canary  ", by: "go test ./cmd/coterie -run TestDocuments/README.md"},
			{line: "coterie audit canary --runs 60000", over: "--runs 60000", as: "--runs 1000 --seed 1"},
		},
		says:  []string{"confidence", `"noise_at_most"`},
		after: left("canary.html"),
	},
	{
		page: "docs/audit.md", under: []string{"One training", "The mechanism"}, data: true,
		setup: func(w *walk) { w.write("run.yaml", canaryFile) },
		says:  []string{"ceiling", `"epsilon_ceiling"`, "of step"},
		after: left("page.html", "steps.html"),
	},
	{
		page: "docs/audit.md", data: true,
		prepare: "cp examples/group-private.yaml run.yaml; coterie run run.yaml --quiet --out coterie-runs/ID",
		lines: []treatment{
			{line: "coterie audit inversion --network relu", as: "--samples 1 --evaluations 20"},
			{line: "coterie reproduce dlg --scale quick", by: "go test ./cmd/coterie -run TestDocuments/README.md"},
			{line: "coterie reproduce dlg", soak: "minutes, 19 of them at full scale"},
		},
		after: left("page.html"),
	},
	{
		page: "docs/membership.md", data: true, setup: beforeMembership,
		prepare: "coterie data generate clinics --clients 4 --seed 9 --out strangers.csv; sed -i 's/^clinic-/other-/' strangers.csv; coterie data vocabulary letters --size 300 --out merges.bpe",
		lines: []treatment{
			{line: "coterie run text.yaml", by: "go test ./audit/membership -run TestSmallText"},
			{line: "coterie audit membership runs/text", by: "go test ./audit/membership -run TestSmallText"},
			{line: "coterie reproduce membership", by: "go test ./repro -run TestSmoke"},
		},
		says:  []string{"AUC", "references", "likelihood ratio", "not covered", "one client, add-remove", "a newcomer gets"},
		after: left("page.html", "runs/table/membership/reference-4/model.json"),
	},
	{
		page: "docs/audit-certificate.md",
		lines: []treatment{
			{line: "go test ./cmd/coterie", soak: "three builds of the program"},
		},
		says:  []string{"Declared before anything is played", "not refuted", "The signature fits", "are those that it is about"},
		after: left("my-run/certificate/certificate.html"),
	},
	{
		page:  "docs/account.md",
		lines: []treatment{{line: "go generate", by: "go test ./web/calculator -run TestModuleBelongsToItsSource"}},
		says:  []string{"1.51538", "noise 0.813", "epsilon 4.8", "one run alone", "open it in a browser"},
		after: left("calculator.html"),
	},
	{page: "docs/architecture.md", lines: []treatment{{line: "go generate", by: "go test ./internal/manual -run TestPage"}}},
	{page: "docs/decisions/0012-interruptions.md"},
	{page: "docs/decisions/0013-operating.md", lines: []treatment{{line: "coterie status serve.yaml", by: "go test ./cmd/coterie -run TestDocuments"}}},
	{page: "docs/json.md", lines: []treatment{{line: "coterie reproduce all", by: "go test ./cmd/coterie -run TestReproduceAll"}}, says: []string{"kernel"}},
	{page: "docs/run-file.md", after: left("run.schema.json")},
	{page: "docs/certificates.md", lines: []treatment{{line: "coterie status serve.yaml", by: "go test ./cmd/coterie -run TestDocuments"}}, says: []string{"revoked"}, after: left("north.invite", "again.invite")},
	{
		page: "docs/bounded-dp.md", data: true,
		lines: []treatment{{line: "coterie reproduce bounded-dp", over: "--scale quick --seeds 3", as: "--scale smoke --seeds 1"}},
		says:  []string{"relation add-remove", "relation replace-one", "the number of participants: it is public", "sector of 60 degrees"},
		after: left("coterie-runs/reproduce-bounded-dp-smoke/report.html"),
	},
	{
		page: "docs/clipping-study.md", data: true,
		lines: []treatment{
			{line: "coterie reproduce clipping-mnist --scale full", by: "go test ./repro/clipping -run TestTimeIsKept"},
			{line: "coterie reproduce clipping-mnist", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce clipping-fashion", by: "go test ./repro -run TestSmoke"},
			{line: "coterie reproduce clipping-agnews", by: "go test ./repro -run TestSmoke"},
			{line: "coterie reproduce clipping-cosine", by: "go test ./repro -run TestSmoke"},
		},
		says:  []string{"FixedQuantile", "nu_q"},
		after: left("coterie-runs/reproduce-clipping-split-quick/report.html", "coterie-runs/reproduce-clipping-mnist-smoke/report.html"),
	},
	{
		page: "docs/crossing.md", data: true,
		lines: []treatment{
			{line: "coterie reproduce handwriting-methods", over: "--scale full", as: "--scale smoke --seeds 1"},
			{line: "coterie reproduce school-clustering", by: "go test ./repro -run TestSmoke/school-clustering"},
		},
		says:  []string{"against FedAvg"},
		after: left("coterie-runs/reproduce-handwriting-methods-smoke/report.html"),
	},
	{
		page: "docs/data.md", python: true, setup: beforeEMNIST, after: afterEMNIST,
		shows: []shown{{begins: "zip/us_zip_latlon.csv.gz", not: "the files of the data folder"}},
	},
	{
		page: "docs/pandemic.md",
		setup: func(w *walk) {
			w.write("people.yaml", "data:\n  kind: pandemic\n  source: {path: people}\n  partition: region\nalgorithm: {kind: fedavg}\n")
			w.write("risk.yaml", "data: {kind: pandemic, persons: 20000, population_seed: 11}\nalgorithm: {mode: sound}\nprivacy: {epsilon: 1}\n")
			w.write("authors.yaml", "data: {kind: pandemic, persons: 20000, population_seed: 11, inputs: authors}\nalgorithm: {mode: paper}\nprivacy: {epsilon: 5}\n")
		},
		lines: []treatment{
			{line: "coterie reproduce pandemic-losses --scale quick", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce pandemic-features --scale quick", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce pandemic-neighbours --scale quick", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce pandemic-privacy", by: "go test ./repro -run TestSmoke/pandemic-privacy"},
			{line: "coterie reproduce pandemic-silos", as: "--scale smoke"},
		},
		says:  []string{"persons in", "region-9", "infected by day", "time with the infected", "for the authority that holds the data"},
		after: left("people.html", "risks.csv"),
	},
	{
		page: "docs/decisions/0006-handwriting-settings.md", data: true,
		lines: []treatment{{line: "coterie reproduce fairness-handwriting", never: "docs/fairness.md has it"}},
	},
	{
		page: "docs/fairness.md", data: true,
		lines: []treatment{
			{line: "coterie reproduce fairness --scale quick", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce fairness-handwriting --scale quick", over: "--scale quick", as: "--scale smoke"},
			{line: "coterie reproduce fairness-handwriting", soak: "minutes at quick scale"},
		},
		says:  []string{"African-American", "Female"},
		after: left("coterie-runs/reproduce-fairness-smoke/report.html", "coterie-runs/reproduce-fairness-handwriting-smoke/report.html"),
	},
	{page: "docs/federation.md", lines: []treatment{
		{line: "coterie status serve.yaml", by: "go test ./cmd/coterie -run TestAKilledParticipantIsNamed"},
		{line: "coterie dash", by: "go test ./cmd/coterie -run TestDash"},
	}, says: []string{"10 releases"}, after: afterQuickStart},
	{
		page: "docs/ledger.md", setup: beforeLedger,
		prepare: `mkdir other; coterie ledger receipts my-ledger --out other/DIR >/dev/null; cp other/DIR/clinics-000001.json receipt.json
		HEX=$(coterie ledger show my-ledger --output json | grep -o '"key":"[0-9a-f]*"' | head -n 1 | cut -d'"' -f4)
		coterie ledger witness my-ledger other/FILE`,
		words: map[string]string{"FILE": "other/FILE", "HEX": "$HEX", "schools-000001.json": "clinics-000001.json", "/mnt/other/ledger.witness": "other/ledger.witness"},
		shows: []shown{
			{begins: "example, add-remove, proved", by: "go test ./cmd/coterie -run TestLedgerShowCanBeRecomputed"},
			{begins: "refused by the privacy ledger", by: "go test ./ledger -run TestRefusals"},
		},
		says:  []string{"as they were written", "as it was signed", "assumed spread 10"},
		after: left("other/ledger.witness"),
	},
	{page: "docs/models.md", under: []string{"Pictures"}, setup: beforePictures, after: afterPictures},
	{page: "docs/models.md", setup: func(w *walk) { writePatients(w.T, w.dir) }, after: afterModels},
	{
		page: "docs/operations.md", under: []string{"Watching"}, prepare: threeWait,
		says: []string{"waiting for participants", "north", "MISSING", "night-watch"},
	},
	{page: "docs/operations.md", under: []string{"Containers and systemd"}, by: "go test ./packaging -run TestContainers|TestUnits"},
	{
		page: "docs/operations.md", prepare: "cp examples/federation/*.yaml .",
		lines: []treatment{
			{line: "pg_dump", by: "go test ./federation/store -run TestDumpOfPostgreSQL"},
			{line: "coterie backup serve.yaml --without-store", by: "go test ./cmd/coterie -run TestBackup"},
			{line: "coterie serve restored/serve.yaml", by: "go test ./cmd/coterie -run TestServerIsRestored"},
		},
		after: left("monday.backup", "restored/serve.yaml"),
	},
	{
		page: "docs/performance.md", data: true,
		lines: []treatment{
			{line: "coterie reproduce hospital --scale full", soak: "half a minute"},
			{line: "coterie run examples/rotated-mnist.yaml", soak: "six minutes"},
		},
		says: []string{"school"},
	},
	{page: "docs/performance-kernels.md"},
	{
		page: "docs/gpu.md",
		lines: []treatment{
			{line: "coterie run examples/mnist-private.yaml", by: "go test ./sim -run TestARunOnADevice"},
			{line: "go build ./cmd/coterie-cuda", by: "go test ./cmd/coterie-cuda -run TestOnlyTheHelperLoadsLibraries"},
		},
	},
	{page: "docs/gpu-kernels.md"},
	{page: "docs/proofs/ledger.md", shows: []shown{{begins: "nothing --reserve-->", not: "a picture of the states"}}},
	{page: "docs/proofs/node-relations.md", lines: []treatment{{line: "go test ./data/contacts", by: "go test ./data/contacts -run TestOtherRulesAreCaught"}}},
	{
		page: "docs/python.md", python: true, setup: beforePython, after: afterPython,
		lines: []treatment{{line: "apt-get install", never: "scripts/test installs what is missing"}},
		says:  []string{"proved 1.99", "algorithm.rounds", "clinic-04", "'ward=surgery': "},
	},
	{
		page: "docs/silos.md", data: true,
		lines: []treatment{
			{line: "coterie run examples/rotated-mnist.yaml", soak: "six minutes"},
			{line: "coterie reproduce silo-rotated-mnist --scale full", over: "--scale full", as: "--scale smoke"},
		},
		says: []string{"proved", "heuristic", "fedavg", "rotated"},
	},
	{
		page: "docs/clipping.md", data: true,
		lines: []treatment{
			{line: "coterie run examples/mnist-private.yaml", soak: "two minutes"},
		},
		says: []string{"proved"},
	},
	{
		page: "docs/pca.md", data: true,
		lines: []treatment{{line: "coterie reproduce dp-pca", over: "--scale quick", as: "--scale smoke"}},
		says:  []string{"proved", "pca-local", "variance captured", "As printed"}, after: left("parts.csv"),
	},
	{page: "docs/reproduction.md", lines: []treatment{{line: "coterie reproduce all", by: "go test ./cmd/coterie -run TestReproduceAll"}}},
	{page: "docs/theory.md", says: []string{"lambda 0.9538"}, after: left("coterie-runs/reproduce-mean-estimation-quick/report.html")},
	{
		page: "docs/trainer.md", prepare: invented + "; coterie init patients.csv --client clinic --target readmitted --out study; cp study/run.yaml run.yaml; sed -i 's|\\.\\./patients|patients|' run.yaml",
		lines: []treatment{{line: "pip install ./python", by: "go test ./cmd/coterie -run TestDocuments"}},
		says:  []string{`"features"`, "ward"},
	},
	{
		page: "docs/text.md", under: []string{"WikiText-2"}, data: true,
		lines: []treatment{
			{line: "coterie run examples/wikitext.yaml", soak: "half a minute"},
			{line: "coterie run examples/wikitext-private.yaml", soak: "minutes"},
		},
	},
	{page: "docs/robust.md", setup: func(w *walk) { w.writeBlocks("docs/robust.md", "lies.yaml") }, after: left("withstood/report.html", "carried-away/report.html"), says: []string{"fedavg"}},
	{page: "docs/text.md", setup: beforeText, after: left("merges.bpe", "letters.onnx", "further/report.html"), says: []string{"perplexity", "proved", "not covered: the text that the vocabulary comes from", "held out"}},
	{
		page: "docs/workers.md",
		lines: []treatment{
			{line: "coterie sweep examples/sweep/steps.yaml --nats nats://10.0.0.1", by: "go test ./cmd/coterie -run TestWorkersOnACluster"},
			{line: "coterie worker --nats nats://10.0.0.1", by: "go test ./cmd/coterie -run TestWorkersOnACluster"},
			{line: "coterie reproduce all --scale full --nats nats://10.0.0.1", by: "go test ./cmd/coterie -run TestReproduceAllOnWorkers"},
			{line: "go test ./cmd/coterie -run TestWorkersOnACluster", soak: "minutes"},
		},
		says:  []string{"tuning: not charged", "over 10 seeds", "verdict"},
		after: left("steps/sweep.json", "seeds/seed-10/report.html", "seeds/seeds.json"),
	},
	{page: "docs/tuning.md", after: left("coterie-runs/reproduce-tuning-cost-quick/report.html")},
	{page: "docs/your-own-data.md", under: []string{"6. What privacy costs"}, data: true, after: afterAdult},
	{
		page: "docs/your-own-data.md", after: afterOwnData,
		says: []string{"Taking part paid for", "demographic parity difference", "claim proved", "60 committed"},
	},
}

// threeWait is a server whose three participants are not there yet.
const threeWait = `cp examples/federation/*.yaml .; coterie ca init ca --server 127.0.0.1:7443 >/dev/null; coterie serve serve.yaml 2>server.log &
until [ -e server.log ] && grep -q listening server.log; do sleep 0.05; done
`

// twoColumns leaves a model that needs no more than an age and a ward.
const twoColumns = `(echo clinic,age,ward,ill; for i in $(seq 40 79); do echo north,$i,A,yes; echo south,$i,B,no; done) >rows.csv
cat >run.yaml <<'END'
data:
  kind: table
  source: {path: rows.csv, client: clinic}
  target: ill
  task: yes/no
  features: [{name: age, type: number, range: [0, 120]}, {name: ward, type: category, values: [A, B]}]
algorithm: {kind: mr-mtl, rounds: 2}
privacy: {epsilon: 2, delta: 1.0e-5}
END
coterie run run.yaml --quiet --out result
`

// twoFaults is a run file with the faults that README shows.
const twoFaults = `name: my
data: {kind: synthetic}
algorithm:
  hypothess: 2
  kind: group-private
  rounds: 5
  clients_per_round: 7
privacy:
  noise_multiplier: -1
`
