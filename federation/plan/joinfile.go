package plan

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/trainer"
)

// JoinFile is what `coterie join` reads. Paths are relative to the file.
type JoinFile struct {
	Server   string `yaml:"server" jsonschema_description:"address of the server, host:port; empty: as the invitation said"`
	Identity string `yaml:"identity" jsonschema_description:"folder of the participant's key and certificate"`
	Ledger   string `yaml:"ledger" jsonschema_description:"folder of the dataset's privacy ledger"`
	Witness  string `yaml:"ledger_witness" jsonschema_description:"file on another disk that sees every record of the ledger: an old copy of the ledger is then found out without a server; empty: none"`
	Policy   string `yaml:"policy" jsonschema_description:"policy file: what may be released at all"`
	Out      string `yaml:"out" jsonschema_description:"folder for the models, and for what the participant must remember"`
	Data     Source `yaml:"data" jsonschema_description:"what this participant trains on"`
	// AnswerSeconds is public: it says nothing of the data.
	AnswerSeconds float64      `yaml:"answer_seconds" jsonschema:"minimum=0" jsonschema_description:"how long after being asked an answer is sent, at the earliest: longer than training ever takes hides how long it took; 0: at once"`
	Trainer       trainer.Spec `yaml:"trainer" jsonschema_description:"a program that trains in this one's place"`
}

// Source says where a participant's data come from.
type Source struct {
	Kind     string   `yaml:"kind" jsonschema:"enum=run,enum=csv,enum=trainer" jsonschema_description:"run: this participant's share of the run file's data (synthetic, or from --data); csv: rows of a file; trainer: the trainer has them"`
	Client   int      `yaml:"client" jsonschema:"minimum=-1" jsonschema_description:"run: which client's share; -1: that of the participant's place in the run"`
	Path     string   `yaml:"path" jsonschema_description:"csv: the file, with a line of names first"`
	Target   string   `yaml:"target" jsonschema_description:"csv: the column that is predicted"`
	Features []string `yaml:"features" jsonschema_description:"csv: the columns that it is predicted from, in the order that all participants share"`
}

// LoadJoinFile reads a join file that stands in dir.
func LoadJoinFile(text []byte, dir string) (JoinFile, error) {
	f := JoinFile{Identity: "identity", Ledger: "ledger", Policy: "policy.yaml", Out: "out", Data: Source{Kind: "run", Client: -1}}
	if err := config.Decode(text, &f, func() config.Faults { return f.check() }); err != nil {
		return f, err
	}
	f.Identity, f.Ledger, f.Policy, f.Out = under(dir, f.Identity), under(dir, f.Ledger), under(dir, f.Policy), under(dir, f.Out)
	f.Witness = under(dir, f.Witness)
	f.Data.Path, f.Trainer.Directory = under(dir, f.Data.Path), under(dir, f.Trainer.Directory)
	return f, nil
}

func (f *JoinFile) check() config.Faults {
	var c config.Checker
	csv := f.Data.Kind == "csv"
	c.Require(!csv || f.Data.Path != "", "data.path", "names no file")
	c.Require(!csv || f.Data.Target != "", "data.target", "names no column")
	c.Require(!csv || len(f.Data.Features) > 0, "data.features", "names no column")
	c.Require(f.Data.Kind != "trainer" || f.Trainer.IsSet(), "trainer", "is needed, since data.kind is trainer")
	faults := c.Faults()
	if f.Trainer.IsSet() {
		faults = append(faults, f.Trainer.Check("trainer")...)
	}
	return faults
}
