package inversion

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestInversionSmoke: rows, strips and charts for both attacks, a page, and cells
// that are remembered.
func TestInversionSmoke(t *testing.T) {
	l := labtest.New(t, dlg, labtest.Options(t, lab.Smoke))
	s, err := runDLG(l)
	if err != nil {
		t.Fatal(err)
	}
	plan := effortOf(lab.Smoke)
	cells, _ := filepath.Glob(filepath.Join(l.Out, "cells", "*.json"))
	if want := len(plan.noise) * len(plan.networks); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	if want := 3*len(plan.noise)*3 + 3; len(s.Rows) != want { // three tables of three measures, and the control
		t.Errorf("%d rows, want %d", len(s.Rows), want)
	}
	if len(s.Strips) != 3 || len(s.Charts) != 2 || len(s.Charts[0].Series) != 3 {
		t.Errorf("%d strips, %d charts", len(s.Strips), len(s.Charts))
	}
	exact := rowOf(s, "closed form: "+denseTitle, "nu 0", "recovered")
	if exact == nil || *exact.Measured != 1 {
		t.Errorf("a linear first layer without noise: %+v", exact)
	}
	if err := study.WritePage(filepath.Join(l.Out, "report.html"), s); err != nil {
		t.Error(err)
	}
	// What is remembered is believed, so a second run gives the same figures.
	if err := os.WriteFile(cells[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := runDLG(l)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range again.Rows {
		if *r.Measured != *s.Rows[i].Measured {
			t.Errorf("%s, %s: %v, then %v", r.Section, r.Label, *s.Rows[i].Measured, *r.Measured)
		}
	}
}

func rowOf(s study.Study, section, label, metric string) *study.Row {
	for i, r := range s.Rows {
		if r.Section == section && r.Label == label && r.Metric == metric {
			return &s.Rows[i]
		}
	}
	return nil
}

// TestInversionVerdicts holds figures of our own making against the papers' prose.
func TestInversionVerdicts(t *testing.T) {
	var claims papersClaims
	if err := lab.Expected("dlg.json", &claims); err != nil {
		t.Fatal(err)
	}
	verdict := func(nu, psnr, ssim float64) study.Verdict {
		rows, _, _ := rowsOf(network{name: "lenet"}, attackDLG, nu, []attackScore{{PSNR: psnr, SSIM: ssim}})
		claims.apply(rows, nu)
		out := study.NoNumber
		for _, r := range rows {
			if r.Verdict != study.NoNumber {
				if out != study.NoNumber {
					t.Errorf("nu %v has two verdicts", nu)
				}
				out = r.Verdict
			}
		}
		return out
	}
	for _, c := range []struct {
		nu, psnr, ssim float64
		want           study.Verdict
	}{
		{0, 40, 1, study.Agrees}, {0.001, 40, 1, study.Agrees}, {0.001, 20, 0.8, study.Differs},
		{0.1, 15, 0.5, study.Agrees}, {0.1, 5, 0.1, study.Differs}, {0.01, 5, 0.1, study.Differs},
		{1, 5, 0.1, study.Agrees}, {1, 30, 0.9, study.Differs}, {1, 9, 0.5, study.Differs}, {15, 5, 0.1, study.Agrees}, {100, 5, 0.1, study.NoNumber},
	} {
		if got := verdict(c.nu, c.psnr, c.ssim); got != c.want {
			t.Errorf("nu %v, %v dB, SSIM %v: %s, want %s", c.nu, c.psnr, c.ssim, got, c.want)
		}
	}
}

// TestAuditPages are such that the report accepts them.
func TestAuditPages(t *testing.T) {
	n, label := event.Number(20), 3
	picture := make([]float64, 784)
	pages := []study.Study{
		InspectionPage(audit.Inspection{Kind: "pictures", Attacks: []audit.Finding{
			{Attack: audit.NameDLG, PSNR: &n, SSIM: &n, Label: &label, TrueLabel: &label, Original: picture, Found: picture},
			{Attack: audit.NameClosedForm, Fault: "no linear layer"},
		}}, "test", "test"),
		InspectionPage(audit.Inspection{Kind: "rows", Attacks: []audit.Finding{{Attack: audit.NameDLG, Error: &n}}}, "test", "test"),
		SurveyPage(audit.Survey{Samples: 1, Attacks: []audit.SurveyAttack{{Attack: audit.NameDLG}}, Trials: []audit.Trial{
			{Picture: audit.Picture{Pixels: picture}, Closed: &audit.Recovered{Picture: picture}, DLG: &audit.Recovered{Picture: picture}},
		}}, "test"),
	}
	for i, p := range pages {
		if err := study.WritePage(filepath.Join(t.TempDir(), "page.html"), p); err != nil {
			t.Errorf("page %d: %v", i, err)
		}
		if len(p.Rows) == 0 {
			t.Errorf("page %d has no rows", i)
		}
	}
}
