package plan

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/trainer"
)

// JoinFile is what `coterie join` reads. Paths are relative to the file.
type JoinFile struct {
	Server   string `yaml:"server" jsonschema_description:"address of the server, host:port; empty: as the invitation said"`
	Identity string `yaml:"identity" jsonschema_description:"folder of the participant's key and certificate"`
	Ledger   string `yaml:"ledger" jsonschema_description:"folder of the dataset's privacy ledger"`
	Witness  string `yaml:"ledger_witness" jsonschema_description:"file on another disk that sees every record of the ledger: an old copy of the ledger is then found out without a server; empty: none"`
	// KeepMegabytes is public: it says nothing of the data.
	KeepMegabytes int    `yaml:"keep_megabytes" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"disk for the noised bytes of releases that the server has signed for, until their run has ended: a server that is restored from a backup gets the same bytes again; the oldest go first; 0: none are kept"`
	Policy        string `yaml:"policy" jsonschema_description:"policy file: what may be released at all"`
	Out           string `yaml:"out" jsonschema_description:"folder for the models, and for what the participant must remember"`
	Data          Source `yaml:"data" jsonschema_description:"what this participant trains on"`
	// AnswerSeconds is public: it says nothing of the data.
	AnswerSeconds float64      `yaml:"answer_seconds" jsonschema:"minimum=0" jsonschema_description:"how long after being asked an answer is sent, at the earliest: longer than training ever takes hides how long it took; 0: at once"`
	Trainer       trainer.Spec `yaml:"trainer" jsonschema_description:"a program that trains in this one's place"`
	// Device is this participant's own choice: run.device of the plan's run file is for simulations.
	Device string `yaml:"device,omitempty" jsonschema:"pattern=^(auto|cpu|cuda(:[0-9]+)?)$" jsonschema_description:"what computes networks here: cpu, the processor; cuda or cuda:n, the NVIDIA GPU with that number, counted from 0 (docs/gpu.md); auto, cuda:0 if it can, otherwise the processor; empty: cpu"`
}

// Source says where a participant's data come from.
type Source struct {
	Kind   string          `yaml:"kind" jsonschema:"enum=run,enum=own,enum=trainer" jsonschema_description:"whose examples: run, this participant's share of the run file's data (synthetic, or from --data); own, rows or pictures of its own, as a run file describes them; trainer, those that the trainer has"`
	Client int             `yaml:"client" jsonschema:"minimum=-1" only:".kind=run" jsonschema_description:"which client's share; -1: that of the participant's place in the run"`
	Run    string          `yaml:"run" only:".kind=own" jsonschema_description:"the participant's own copy of the run file, whose data block describes the examples: a plan that describes them otherwise is refused before it can be trained"`
	Source config.Source   `yaml:"source" only:".kind=own" jsonschema_description:"where its rows or pictures lie"`
	Test   config.TestPart `yaml:"test" only:".kind=own" jsonschema_description:"path of the held-out examples, where the run file has them in a file of their own; column and value belong into the run file"`
	Name   string          `yaml:"name" only:".kind=own" jsonschema_description:"what the client is called in the source's client column, and in a simulation; empty: as the participant is"`
}

// LoadJoinFile reads a join file that stands in dir.
func LoadJoinFile(text []byte, dir string) (JoinFile, error) {
	f := JoinFile{Identity: "identity", Ledger: "ledger", KeepMegabytes: 1024, Policy: "policy.yaml", Out: "out", Data: Source{Kind: "run", Client: -1}}
	if err := config.Decode(text, &f, func() config.Faults { return f.check() }); err != nil {
		return f, err
	}
	f.Identity, f.Ledger, f.Policy, f.Out = under(dir, f.Identity), under(dir, f.Ledger), under(dir, f.Policy), under(dir, f.Out)
	f.Witness = under(dir, f.Witness)
	f.Data.Run, f.Trainer.Directory = under(dir, f.Data.Run), under(dir, f.Trainer.Directory)
	lies, err := config.Data{Source: f.Data.Source, Test: f.Data.Test}.Under(dir)
	f.Data.Source, f.Data.Test = lies.Source, lies.Test
	return f, err
}

func (f *JoinFile) check() config.Faults {
	var c config.Checker
	if f.Server != "" {
		if err := identity.CheckServer(f.Server); err != nil {
			c.Require(false, "server", "%v; left out, it is as the invitation said", err)
		}
	}
	own, empty := f.Data.Kind == "own", Source{}
	c.Require(!own || f.Data.Run != "", "data.run", "names no run file: whose data block describes the examples?")
	c.Require(!own || f.Data.Source.Path != "" || f.Data.Source.Database != "", "data.source", "names neither a path nor a database")
	c.Require(own || f.Data.Run == "" && f.Data.Source == empty.Source && f.Data.Test == empty.Test && f.Data.Name == "", "data.kind",
		"is %s, but a source of one's own is given; allowed with it: own", f.Data.Kind)
	c.Require(f.Data.Test.Column == "" && f.Data.Test.Value == "", "data.test", "names a column; that belongs into the run file, which all share")
	c.Require(f.Data.Kind != "trainer" || f.Trainer.IsSet(), "trainer", "is needed, since data.kind is trainer")
	c.Require(!f.Trainer.IsSet() || f.Device == "" || f.Device == "cpu", "device", "is %s, but a trainer computes for itself; remove the one or the other", f.Device)
	faults := c.Faults()
	if f.Trainer.IsSet() {
		faults = append(faults, f.Trainer.Check("trainer")...)
	}
	return faults
}
