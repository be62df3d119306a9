package live

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

// book is a ledger that was read whole, every record and signature of it checked.
type book struct {
	sum     ledger.Summary
	entries []ledger.Entry
}

// ledgerFile is what changes when a ledger does.
const ledgerFile = "ledger.log"

// openBook reads a ledger while its participant may be writing.
func (f *Folder) openBook(t thing) (book, error) {
	return load(f, t, ledgerFile, "ledger ", false, func([]byte) (book, error) {
		l, err := ledger.Read(f.where(t))
		if err != nil {
			return book{}, err
		}
		sum, err := l.Summary()
		return book{sum, l.Entries()}, err
	})
}

func (f *Folder) describeLedger(t thing, r *row) error {
	b, err := f.openBook(t)
	if err != nil {
		return err
	}
	r.State = state{prose.Counted(b.sum.Records, "record", "records") + ", whole", "finished"}
	most, where := 0.0, ""
	for _, one := range b.sum.Budgets {
		r.Lines = append(r.Lines, fmt.Sprintf("epsilon %s of %s (%s)", prose.Cost(float64(one.Epsilon)), prose.Cost(float64(one.Ceiling)), layout.Claimed(one.Statement)))
		if bars := ceilings(one); one.Used > most && len(bars) > 1 {
			top := slices.MaxFunc(bars, func(a, b metered) int { return cmp.Compare(a.Meter.Share, b.Meter.Share) })
			where = fmt.Sprintf("most used: %s, %s: %s", budgetName(one), top.Name, top.Value)
		}
		most = max(most, one.Used)
	}
	if where != "" {
		r.Lines = append(r.Lines, where)
	}
	if len(b.sum.Budgets) > 0 {
		r.Meter = newMeter(most, 1, usedWords(most))
	}
	return nil
}

// ledgerView is a participant's own ledger: for its owner alone.
func (f *Folder) ledgerView(t thing) (View, error) {
	b, err := f.openBook(t)
	if err != nil {
		return View{}, err
	}
	v := View{Title: "Ledger " + path.Join(filepath.Base(f.path), t.id), Lead: f.where(t), Status: fmt.Sprintf("%s, all as they were written.", prose.Counted(b.sum.Records, "record", "records"))}
	one := stand{State: state{"whole", "finished"}, Words: "every record, its chain and every receipt’s signature were checked now", Facts: []layout.Fact{
		{Name: "Founded", Value: b.sum.Founded.UTC().Format("2006-01-02")},
		{Name: "Records", Value: prose.Count(b.sum.Records)},
		{Name: "Releases", Value: prose.Count(len(b.entries))},
		{Name: "Receipts", Value: prose.Count(b.receipts())},
	}}
	if b.sum.Torn > 0 {
		one.Note = fmt.Sprintf("Behind the last whole record are %d bytes: a write that is under way or never ended.", b.sum.Torn)
	}
	var p parts
	p.add("stand", standTemplate, one)
	p.add("budgets", metersTemplate, b.budgets())
	if table := b.runs(); len(table.Rows) > 0 {
		p.add("runs", tableTemplate, tabled{Name: "By run", Table: table})
	}
	if table := b.releases(); len(table.Rows) > 0 {
		note := "The newest first."
		if len(b.entries) > len(table.Rows) {
			note = fmt.Sprintf("The newest %d of %s; coterie ledger show --slots has them all.", len(table.Rows), prose.Count(len(b.entries)))
		}
		p.add("releases", tableTemplate, tabled{Name: "Releases and receipts", Note: note, Table: table})
	}
	v.Parts = p.list
	return v, p.err
}

func (b book) receipts() (n int) {
	for _, e := range b.entries {
		if e.Receipt != nil {
			n++
		}
	}
	return n
}

// budgets are the ceilings, and the share of each that is spent.
func (b book) budgets() meters {
	m := meters{ID: "budgets-h", Name: "Budgets", Note: "What is spent of every ceiling. When a bar is full, nothing more is released."}
	for _, one := range b.sum.Budgets {
		bar := metered{Name: budgetName(one), Bars: ceilings(one), Note: fmt.Sprintf("epsilon: %s; %s; %s", layout.Claimed(one.Statement), prose.Counted(one.Releases, "release", "releases"), one.Trust)}
		if len(bar.Bars) == 0 {
			bar.Value, bar.Note = "no ceiling", bar.Note+"; releases without noise are allowed: nothing bounds what they lose"
		}
		if one.Over {
			bar.Note += "; over the ceiling: nothing more is released"
		}
		if one.Amended {
			bar.Note += "; the ceiling was changed after releases"
		}
		m.Bars = append(m.Bars, bar)
	}
	return m
}

func budgetName(one ledger.BudgetSpend) string { return fmt.Sprintf("%s, %s", one.Unit, one.Claim) }

func usedWords(share float64) string { return fmt.Sprintf("%.0f %% of the ceiling used", 100*share) }

// ceilings are the numbers of a budget that are held against ceilings, each with a bar of its
// own: the one that is most used ends the releases, and it need not be the first.
func ceilings(one ledger.BudgetSpend) (bars []metered) {
	if one.Claim == event.ClaimNone {
		return nil
	}
	of := func(name string, spent, most event.Number) {
		share := float64(spent) / float64(most)
		bars = append(bars, metered{Name: name, Value: prose.Cost(float64(spent)) + " of " + prose.Cost(float64(most)), Meter: newMeter(share, 1, usedWords(share))})
	}
	if one.Relation != event.Metric {
		of("epsilon, by the accountant", one.Epsilon, one.Ceiling)
		bars = append(bars, metered{Name: "by the filter, which decides", Value: fmt.Sprintf("%.1f %%", 100*one.Used), Meter: newMeter(one.Used, 1, usedWords(one.Used))})
		bars[1].Meter.Over = one.Over
		return bars
	}
	of("at the radii", one.Epsilon, one.Ceiling)
	if one.Distance > 0 {
		of("between two points "+prose.Rounded(float64(one.Distance))+" apart", one.EpsilonAtDistance, one.Ceiling)
	}
	if one.EpsilonSwitch != nil && one.CeilingSwitch > 0 {
		of("between any two data sets", *one.EpsilonSwitch, one.CeilingSwitch)
	}
	return bars
}

func (b book) runs() layout.Table {
	t := layout.Table{ID: "runs-h"}
	column := func(name string, figures bool, cell func(r ledger.RunSpend) layout.Cell) {
		layout.AddColumn(&t, name, figures, b.sum.Runs, cell)
	}
	column("Run", false, func(r ledger.RunSpend) layout.Cell { return layout.Words(r.Run, r.Federation) })
	column("Epsilon", false, func(r ledger.RunSpend) layout.Cell {
		return layout.Words(prose.Cost(float64(r.Epsilon)), layout.Claimed(r.Statement))
	})
	column("Releases", true, func(r ledger.RunSpend) layout.Cell { return layout.Words(prose.Count(r.Releases)) })
	column("With receipt", true, func(r ledger.RunSpend) layout.Cell { return layout.Words(prose.Count(r.Committed)) })
	column("Last", false, func(r ledger.RunSpend) layout.Cell { return layout.Words(r.Last.UTC().Format("2006-01-02 15:04")) })
	return t
}

func (b book) releases() layout.Table {
	newest := slices.Clone(b.entries)
	slices.Reverse(newest)
	newest = newest[:min(len(newest), mostPeople)]
	t := layout.Table{ID: "releases-h"}
	column := func(name string, figures bool, cell func(e ledger.Entry) layout.Cell) {
		layout.AddColumn(&t, name, figures, newest, cell)
	}
	column("Reserved", false, func(e ledger.Entry) layout.Cell {
		return layout.Words(e.ReservedAt.UTC().Format("2006-01-02 15:04:05"))
	})
	column("Round", true, func(e ledger.Entry) layout.Cell { return layout.Words(prose.Count(e.Slot.Round + 1)) })
	column("State", false, func(e ledger.Entry) layout.Cell { return layout.Words(string(e.Status), e.Reason) })
	column("Receipt", false, func(e ledger.Entry) layout.Cell {
		if e.Receipt == nil {
			return layout.Cell{}
		}
		return layout.Words("signed", "by key "+e.Receipt.Key.String()[:8]+"…")
	})
	column("Run", false, func(e ledger.Entry) layout.Cell { return layout.Words(e.Slot.Run) })
	return t
}

// soon is how long before their end certificates are pointed at.
const soon = 14 * 24 * time.Hour

// ending says when a certificate ends, and whether that is to be pointed at.
func ending(expires, now time.Time) (words string, warn bool) {
	left := expires.Sub(now)
	switch {
	case left <= 0:
		return "ended on " + expires.UTC().Format("2006-01-02 15:04 MST"), true
	case left < 48*time.Hour:
		return fmt.Sprintf("ends in %.0f hours", left.Hours()), true
	}
	return fmt.Sprintf("ends in %.0f days, on %s", left.Hours()/24, expires.UTC().Format("2006-01-02")), left < soon
}

func (f *Folder) describeIdentity(t thing, r *row) error {
	m, err := identity.OpenMember(f.where(t)) // its certificate is in another file than its name
	if err != nil {
		return err
	}
	r.Name, r.Changed = fmt.Sprintf("%s, %s", m.Name(), m.Role()), nil
	if !m.Enrolled() {
		r.State, r.Lines = state{"not enrolled", "silent"}, []string{"at " + m.Server()}
		return nil
	}
	words, warn := ending(m.Expires(), time.Now())
	r.State, r.Lines = state{"valid", "finished"}, []string{"certificate " + words, "at " + m.Server()}
	if warn {
		r.State = state{"about to end", "failed"}
	}
	return nil
}

func (f *Folder) identityView(t thing) (View, error) {
	r := f.row(t)
	one := stand{State: r.State, Words: r.Lines[0], Note: "A participant that runs renews its certificate by itself, in time; one that was away longer needs a new invitation."}
	var p parts
	p.add("stand", standTemplate, one)
	return View{Title: r.Name, Lead: t.id, Status: r.Name + ": " + r.State.Word + ".", Parts: p.list}, p.err
}

// served is what a federation's server left.
func (f *Folder) served(t thing) (*server.Result, error) {
	r, err := load(f, t, "result.json", "served ", false, parseAs[*server.Result])
	if err == nil && (r == nil || r.Algorithm == "" || r.PlanSHA256 == "") {
		err = fmt.Errorf("%s holds neither a run nor what a federation's server leaves", t.id)
	}
	return r, err
}

func (f *Folder) describeServed(t thing, r *row) error {
	res, err := f.served(t)
	if err != nil {
		return err
	}
	r.Name = res.Name
	r.Lines = []string{fmt.Sprintf("%s, %s, %s", prose.Method(res.Algorithm), prose.Counted(len(res.Participants), "participant", "participants"), prose.Counted(res.Rounds, "round", "rounds"))}
	return nil
}

func (f *Folder) servedView(t thing) (View, error) {
	res, err := f.served(t)
	if err != nil {
		return View{}, err
	}
	one := stand{State: finished, Words: fmt.Sprintf("%s, %s of them abandoned", prose.Counted(res.Rounds, "round", "rounds"), prose.Count(res.Abandoned)), Facts: []layout.Fact{
		{Name: "Method", Value: prose.Method(res.Algorithm)}, {Name: "Ended by", Value: res.Stopped}, {Name: "Models, SHA-256", Value: res.ModelSHA256, Code: true},
	}}
	if f.hasReport(t) {
		one.Links = append(one.Links, Link{"Open its report", to(reportPath, t)})
	} else {
		one.Again, one.Note = "", "coterie report "+prose.ShellWord(f.where(t))+" writes its report."
	}
	table := layout.Table{ID: "people-h"}
	column := func(name string, figures bool, cell func(p server.ParticipantRecord) layout.Cell) {
		layout.AddColumn(&table, name, figures, res.Participants[:min(len(res.Participants), mostPeople)], cell)
	}
	column("Participant", false, func(p server.ParticipantRecord) layout.Cell { return layout.Words(p.Name) })
	column("Says it has spent", false, func(p server.ParticipantRecord) layout.Cell {
		if p.Spent == nil {
			return layout.Cell{}
		}
		return spentCell([]event.Statement{*p.Spent})
	})
	column("Released", true, func(p server.ParticipantRecord) layout.Cell { return layout.Words(prose.Count(p.Released)) })
	column("Declined", true, func(p server.ParticipantRecord) layout.Cell { return layout.Words(prose.Count(p.Declined)) })
	column("Missed", true, func(p server.ParticipantRecord) layout.Cell { return layout.Words(prose.Count(p.Missed)) })
	var p parts
	p.add("stand", standTemplate, one)
	p.add("people", tableTemplate, tabled{Name: "Participants", Table: table})
	return View{Title: cmp.Or(res.Name, f.name(t)), Lead: t.id, Status: res.Name + ": finished.", Parts: p.list}, p.err
}

// spentCell is what somebody says that it has spent, with the terms of each number.
func spentCell(spent []event.Statement) layout.Cell {
	c := layout.Cell{}
	for i, s := range spent {
		if i == 0 {
			c.Text = "epsilon " + prose.Cost(float64(s.Epsilon))
			c.Small = append(c.Small, layout.Claimed(s))
			continue
		}
		c.Small = append(c.Small, fmt.Sprintf("epsilon %s: %s", prose.Cost(float64(s.Epsilon)), layout.Claimed(s)))
	}
	return c
}
