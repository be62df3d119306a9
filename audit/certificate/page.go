package certificate

import (
	_ "embed" // the page is part of the binary
	"fmt"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// page is all that the template shows.
type page struct {
	Title, Lead     string
	Verdict         layout.Badge
	Why             string
	Says            []string
	Label           layout.Label
	Theorems        []Theorem
	Bounds          layout.Table
	Confidence      string
	Assumptions     []string
	Membership      layout.Table
	MembershipWords string
	Panels          []study.Panel
	Inversion       layout.Table
	InversionWords  string
	NotTried        []Left
	Facts           []layout.Fact
	Command         string
}

// verdicts are what the words look like.
var verdicts = map[Verdict]struct{ class, icon string }{
	Refuted:    {"differs", layout.IconWarning},
	NotRefuted: {"agrees", `<circle class="stroke" cx="12" cy="12" r="9.2"/>`},
	NotTested:  {"apart", `<path class="stroke" d="M4 12h16"/>`},
}

// HTML writes a certificate as one page that needs nothing else. The page shows the key;
// what is signed is its hash, in the certificate's file.
func HTML(w io.Writer, c Certificate, key ledger.Key) error {
	look := verdicts[c.Verdict]
	p := page{
		Title: "Certificate of " + c.Identity.Name, Why: sentence(c.Why), Label: labelOf(c), Theorems: c.Theorems,
		Lead:       fmt.Sprintf("Run %s, %s, looked at on %s.", c.Identity.Run, c.Identity.Algorithm, c.Made.Format("2 January 2006, 15:04 UTC")),
		Verdict:    layout.Badge{Word: string(c.Verdict), Class: look.class, Icon: layout.Icon(look.icon)},
		Bounds:     boundsTable(c.Bounds),
		Confidence: fmt.Sprintf("All bounds hold together with confidence %.4g; their shares were fixed before anything was played, and so was the seed (%d, from the hashes of model and run file).", c.Plan.Confidence, c.Plan.Seed),
		NotTried:   c.NotTried,
		Facts: []layout.Fact{
			{Name: "Model", Value: c.Identity.Model, Code: true}, {Name: "Run file", Value: c.Identity.Config, Code: true}, {Name: "Result", Value: c.Identity.ResultFile, Code: true},
			{Name: "Trained by version", Value: c.Identity.TrainedBy, Code: true}, {Name: "Looked at by version", Value: c.Identity.Version, Code: true},
			{Name: "Program", Value: c.Identity.Program, Code: true}, {Name: "Compiler", Value: c.Identity.Go, Code: true}, {Name: "Kernel", Value: c.Identity.Kernel, Code: true},
			{Name: "Signed with the key", Value: key.String(), Code: true},
		},
		Command: "coterie audit verify " + File + " --key " + key.String(),
	}
	for _, line := range c.Says {
		p.Says = append(p.Says, sentence(line))
	}
	seen := map[string]bool{}
	for _, b := range c.Bounds {
		for _, line := range b.Assumes {
			if line = b.Audit + ", " + line; !seen[line] {
				seen[line] = true
				p.Assumptions = append(p.Assumptions, sentence(line))
			}
		}
	}
	if m := c.Membership; m != nil {
		shown := membership.Page(*m, c.Identity.Name, "", c.Claim, c.Identity.Version)
		p.Membership, p.MembershipWords = membershipTable(*m), shown.Intro[0]
		var err error
		if p.Panels, err = study.Panels(shown.Charts); err != nil {
			return err
		}
	}
	if i := c.Inversion; i != nil {
		p.Inversion, p.InversionWords = inversionTable(*i), sentence(i.Verdict)
	}
	return layout.Write(w, pageTemplate, p)
}

// sentence is a line that begins large and ends with a full stop.
func sentence(line string) string {
	if line == "" {
		return ""
	}
	return strings.ToUpper(line[:1]) + strings.TrimSuffix(line[1:], ".") + "."
}

func labelOf(c Certificate) layout.Label {
	s := c.Claim
	return layout.Label{
		Method: "What the run claims", Claim: layout.ClaimOf(s), NotCovered: s.NotCovered, Unnamed: "The run names nothing. That is unusual: ask.",
		Rows: []layout.LabelRow{
			{Name: "Epsilon, most exposed", Value: prose.Cost(float64(s.Epsilon)), Large: true},
			{Name: "Delta", Value: prose.Rounded(float64(s.Delta))},
			{Name: "What is protected", Value: layout.Protects(s)},
			{Name: "From whom", Value: layout.FromWhom(s), Note: string(s.Trust)},
			{Name: "Unit", Value: layout.UnitWords(s)},
			{Name: "Relation", Value: layout.RelationWords(s)},
			{Name: "Radius", Value: prose.Optional(s.Radius, func(n event.Number) string { return prose.Rounded(float64(n)) })},
			{Name: "Sampling", Value: s.Sampling},
			{Name: "Assumes", Value: strings.Join(c.Assumes, "; ")},
		},
	}
}

// what the audits do, in a line.
var audited = map[string]string{
	Mechanism: "the run’s noised steps, with gradients planted",
	Canary:    "many runs of a tiny silo, with one row more",
	OneRun:    "one training, with canaries by coins",
}

func boundsTable(bounds []Bound) layout.Table {
	t := layout.Table{ID: "bounds-h"}
	layout.AddColumn(&t, "Audit", false, bounds, func(b Bound) layout.Cell { return layout.Words(b.Audit, audited[b.Audit]) })
	layout.AddColumn(&t, "Epsilon, at least", true, bounds, func(b Bound) layout.Cell {
		c := layout.Words(prose.Rounded(float64(b.AtLeast)))
		c.Strong = true
		return c
	})
	layout.AddColumn(&t, "Could have shown", true, bounds, func(b Bound) layout.Cell {
		return layout.Words(prose.Optional(b.Ceiling, func(n event.Number) string { return prose.Rounded(float64(n)) }))
	})
	layout.AddColumn(&t, "Charged", true, bounds, func(b Bound) layout.Cell {
		return layout.Words(prose.Cost(float64(b.Charged.Epsilon)), string(b.Charged.Claim), fmt.Sprintf("%s, %s, delta %v", b.Charged.Unit, b.Charged.Relation, float64(b.Charged.Delta)))
	})
	layout.AddColumn(&t, "Confidence", true, bounds, func(b Bound) layout.Cell { return layout.Words(fmt.Sprintf("%.4g", b.Confidence)) })
	layout.AddColumn(&t, "Power", true, bounds, func(b Bound) layout.Cell {
		if b.Power == nil || b.HalfPower == nil {
			return layout.Cell{}
		}
		return layout.Words("", fmt.Sprintf("%.3f at half the noise", float64(*b.HalfPower)), fmt.Sprintf("%.3f at 0.8 of it", float64(*b.Power)))
	})
	layout.AddColumn(&t, "Finding", false, bounds, func(b Bound) layout.Cell { return layout.Words(sentence(b.Verdict)) })
	return t
}

func membershipTable(f membership.Found) layout.Table {
	t := layout.Table{ID: "membership-h"}
	layout.AddColumn(&t, "Attack", false, f.Attacks, func(a membership.Attack) layout.Cell { return layout.Words(a.Attack, a.How()) })
	layout.AddColumn(&t, "AUC", true, f.Attacks, func(a membership.Attack) layout.Cell {
		if a.AUC == nil {
			return layout.Cell{}
		}
		c := layout.Words(fmt.Sprintf("%.3f", float64(a.AUC.Value)))
		if c.Strong = true; a.AUC.Low != nil && a.AUC.High != nil {
			c.Small = []string{fmt.Sprintf("%.3f to %.3f", float64(*a.AUC.Low), float64(*a.AUC.High))}
		}
		return c
	})
	for k := range f.Attacks[0].Rates {
		layout.AddColumn(&t, fmt.Sprintf("Found at %v", float64(f.Attacks[0].Rates[k].At)), true, f.Attacks, func(a membership.Attack) layout.Cell {
			r := a.Rates[k]
			return layout.Words(fmt.Sprintf("%.3f", float64(r.TruePositive)), fmt.Sprintf("%.3f to %.3f", float64(r.Low), float64(r.High)))
		})
	}
	return t
}

func inversionTable(i audit.Inspection) layout.Table {
	t := layout.Table{ID: "inversion-h"}
	number := func(n *event.Number) layout.Cell {
		return layout.Words(prose.Optional(n, func(n event.Number) string { return prose.Rounded(float64(n)) }))
	}
	layout.AddColumn(&t, "Attack", false, i.Attacks, func(f audit.Finding) layout.Cell { return layout.Words(f.Attack, f.Fault) })
	layout.AddColumn(&t, "PSNR", true, i.Attacks, func(f audit.Finding) layout.Cell { return number(f.PSNR) })
	layout.AddColumn(&t, "SSIM", true, i.Attacks, func(f audit.Finding) layout.Cell { return number(f.SSIM) })
	layout.AddColumn(&t, "Relative error", true, i.Attacks, func(f audit.Finding) layout.Cell { return number(f.Error) })
	layout.AddColumn(&t, "Cosine", true, i.Attacks, func(f audit.Finding) layout.Cell {
		if f.Fault != "" {
			return layout.Cell{}
		}
		return number(&f.Cosine)
	})
	layout.AddColumn(&t, "Recovered", false, i.Attacks, func(f audit.Finding) layout.Cell {
		if f.Recovered {
			return layout.Words("yes")
		}
		return layout.Words("no")
	})
	return t
}
