package participant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/ledger"
)

// JoinOptions are what `coterie join` takes.
type JoinOptions struct {
	File   plan.JoinFile
	Policy plan.Policy
	Seeded bool // allow noise that everybody can repeat
	Folder *data.Folder
	Log    *slog.Logger
}

// JoinResult is what a participant's part in a run ends with. Its keys are stable.
type JoinResult struct {
	Report
	Spent     ledger.Summary `json:"ledger"`
	Directory string         `json:"directory"`
}

// Join takes part in the federation's run, and leaves the models in the file's
// folder. An error that wraps fl.ErrRefused means that policy or budget ended it.
func Join(ctx context.Context, o JoinOptions) (res JoinResult, err error) {
	m, err := identity.OpenMember(o.File.Identity)
	if err != nil {
		return res, err
	}
	if m.Role() != identity.Participant {
		return res, fmt.Errorf("%s is the identity of an %s, who takes part in nothing: ask for an invitation as a participant", o.File.Identity, m.Role())
	}
	if _, err := m.ClientTLS(); err != nil {
		return res, err
	}
	own, err := ReadOwn(o.File.Data, m.Name(), o.Log) // faults of the data are found before a server is asked anything
	if err != nil {
		return res, err
	}
	if err := own.keeps(o.Policy); err != nil {
		return res, err
	}
	book, err := ledger.Open(o.File.Ledger, o.Policy.Budget(), ledger.WithWitness(o.File.Witness), ledger.WithKept(int64(o.File.KeepMegabytes)<<20))
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()

	r := newRenewer(m, o.File.Server, o.Log)
	defer r.way.next.CloseIdleConnections()
	renewing, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { r.keep(renewing) })
	defer background.Wait()
	defer stop()
	p := New(Options{
		Client: r.client, Name: m.Name(), Federation: m.Federation(), Signer: m.Signer(),
		Ledger: book, Policy: o.Policy, Seeded: o.Seeded, Log: o.Log,
		Half: HalfOf(o.File, own, o.Folder), AnswerAfter: time.Duration(o.File.AnswerSeconds * float64(time.Second)),
		Memory: func(run string, plan ledger.Hash) (Memory, error) { return OpenMemory(o.File.Out, run, plan) },
		Renew:  r.renew, Successions: r.successions,
	})
	report, failure := p.Run(ctx)
	res.Report = report
	if res.Directory, err = filepath.Abs(o.File.Out); err != nil {
		return res, fmt.Errorf("find the folder for the models: %w", err)
	}
	if res.Spent, err = book.Summary(); err != nil {
		return res, errors.Join(failure, err)
	}
	if report.Models == nil {
		return res, failure
	}
	return res, errors.Join(failure, writeModels(o.File.Out, report, res.Spent))
}
